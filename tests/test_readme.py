"""What the README promises: its examples run, its commands, files and folders exist."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shiftsort.cli.app import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_examples_run_one_after_the_other():
    examples = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(examples) >= 2
    names: dict[str, object] = {}
    for example in examples:
        exec(compile(example, "README.md", "exec"), names)


@pytest.mark.parametrize(
    "command", re.findall(r"^shiftsort ([a-z]+(?: [a-z]+)?) ", README, flags=re.MULTILINE)
)
def test_the_commands_exist(command):
    result = CliRunner().invoke(app, [*command.split(), "--help"])
    assert result.exit_code == 0, result.output


def test_what_it_links_to_and_lists_is_there():
    paths = re.findall(r"\]\(([^)]+)\)|^\| `([^`]+)`", README, flags=re.MULTILINE)
    assert len(paths) > 8
    # Git keeps no empty folder, so a checkout may have no results yet.
    missing = [p for p in map("".join, paths) if p != "results/" and not (ROOT / p).exists()]
    assert missing == []


def test_the_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    targets = re.findall(r"^make ([a-z]+)", README + contributing, flags=re.MULTILINE)
    assert {"demo", "test", "check"} <= set(targets)
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
