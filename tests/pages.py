"""The generated parts of the pages: what a command prints, between two comments.

    <!-- made by: shiftsort results cifar10 --markdown -->
    ...
    <!-- end -->

`make pages` writes them anew; a test fails where one is stale.
"""

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from shiftsort.cli.app import app

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))

_BLOCK = re.compile(r"(<!-- made by: shiftsort (.*?) -->\n)(.*?)(?=^<!-- end -->)", re.S | re.M)


def commands(page: Path) -> list[str]:
    """What makes the parts of a page."""
    return [command for _, command, _ in _BLOCK.findall(page.read_text(encoding="utf-8"))]


def renewed(page: Path) -> str:
    """The page as it should be. Commands run in the root of the checkout."""
    return _BLOCK.sub(
        lambda block: f"{block[1]}{_output(block[2])}\n", page.read_text(encoding="utf-8")
    )


def _output(command: str) -> str:
    done = CliRunner().invoke(app, shlex.split(command))
    if done.exit_code:
        raise RuntimeError(f"shiftsort {command} ended with {done.exit_code}:\n{done.output}")
    return done.stdout.strip()


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(renewed(page), encoding="utf-8")
