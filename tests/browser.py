"""What a browser says of a page, where one is installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
needs_a_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium is installed to open the page with"
)


def console_of(page: Path) -> list[str]:
    """What a browser writes into its console when it opens a page."""
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
         "--no-first-run", "--disable-background-networking", "--enable-logging=stderr",
         "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "</html>" in done.stdout
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]
