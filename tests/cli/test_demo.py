"""`shiftsort demo` and `python -m shiftsort.cli`."""

import subprocess
import sys

from typer.testing import CliRunner

from shiftsort.cli import demo
from shiftsort.cli.app import app


def test_demo_says_in_one_line_where_the_picture_is(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "_LENGTHS", (16, 32))
    monkeypatch.setattr(demo, "_BUDGET", 0.0)
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "new")])
    assert result.exit_code == 0, result.output
    (line,) = result.output.splitlines()
    assert str(tmp_path / "new" / "index.html") in line
    assert (tmp_path / "new" / "shiftsort.png").exists()
    assert "<td>32</td>" in (tmp_path / "new" / "index.html").read_text()


def test_the_command_runs_as_a_module():
    command = [sys.executable, "-m", "shiftsort.cli", "bench", "operator", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "--lengths" in done.stdout
