"""`shiftsort demo` and `python -m shiftsort.cli`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from browser import console_of, needs_a_browser
from shiftsort import recipes
from shiftsort.cli import demo
from shiftsort.cli.app import app


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_LENGTHS", (16, 32))
    monkeypatch.setattr(demo, "_BUDGET", 0.0)
    get = recipes.get
    monkeypatch.setattr(
        recipes, "get", lambda name: recipes.override(get(name), ["steps=4", "depth=1"])[0]
    )


@pytest.mark.usefixtures("quick")
def test_demo_trains_two_models_and_tells_where_the_page_is(tmp_path: Path) -> None:
    out = tmp_path / "new"
    for _ in range(2):  # a second time in the same folder too
        result = CliRunner().invoke(app, ["demo", "--out", str(out)])
        assert result.exit_code == 0, result.output
        rows = [line.split() for line in result.stdout.splitlines() if "%" in line]
        assert [row[0] for row in rows] == ["mha", "csp"]
        assert str(out / "index.html") in result.stdout.splitlines()[-1]
    assert (out / "shiftsort.png").exists()
    page = (out / "index.html").read_text()
    assert "<td>32</td>" in page
    assert page.count("<polyline") == 8, "accuracy and loss of two runs, held back and not"
    assert re.findall(r'(?:src|href)="(?!data:)', page) == [], "it needs no network"


@needs_a_browser
@pytest.mark.usefixtures("quick")
def test_a_browser_opens_the_page_without_a_complaint(tmp_path: Path) -> None:
    CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert console_of(tmp_path / "index.html") == []


@pytest.mark.usefixtures("quick")
def test_a_folder_that_is_no_runs_own_is_not_touched(tmp_path: Path) -> None:
    kept = tmp_path / "digits-mha" / "letters.txt"
    kept.parent.mkdir()
    kept.write_text("mine")
    CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert kept.read_text() == "mine"


def test_the_command_runs_as_a_module():
    command = [sys.executable, "-m", "shiftsort.cli", "bench", "operator", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "--lengths" in done.stdout
