"""`shiftsort study`: figure, data and words, from one command."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shiftsort.cli.app import app
from shiftsort.studies import catalog

pytest.importorskip("lightning")

ROOT = Path(__file__).parents[2]


def run(*arguments):
    return CliRunner().invoke(app, ["study", *map(str, arguments)], env={"COLUMNS": "400"})


def test_without_a_name_it_lists_what_there_is():
    lines = run().output.splitlines()
    assert [line.split(":")[0].split(" ")[0] for line in lines] == list(catalog.STUDIES)
    assert "maps [--run RUN]:" in run().output


def test_writes_figure_and_data_and_says_them_again(tmp_path):
    done = run("schedules", "--out", tmp_path)
    assert done.exit_code == 0, done.output
    png, svg, data = (tmp_path / f"study-schedules.{kind}" for kind in ("png", "svg", "json"))
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "<svg" in svg.read_text()
    content = json.loads(data.read_text())
    assert {"study", "command", "date", "versions", "findings", "data"} <= content.keys()
    assert content["data"]["samples"] == 16_384
    assert all(said in done.output for said in content["findings"])
    again = run("--show", data).output
    assert again.splitlines() == [f"- {said}" for said in content["findings"]]


def test_looks_at_a_fresh_model_where_no_run_is_named_and_says_so(tmp_path):
    done = run("maps", "--out", tmp_path, "--data", tmp_path)
    assert done.exit_code == 0, done.output
    content = json.loads((tmp_path / "study-maps.json").read_text())
    assert content["runs"] == []
    assert content["data"]["subject"] == "digits, csp, fresh"
    assert "digits, csp, fresh" in (tmp_path / "study-maps.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["spectrm"], 2, "did you mean 'spectrum'?"),
        (["collapse", "--run", "x"], 1, "collapse looks at no run"),
        (["maps", "--run", "x"], 1, "x is not a run folder"),
        (["--show", "pyproject.toml"], 1, "cannot be read as the JSON of a study"),
    ],
)
def test_errors_take_a_line(arguments, code, told):
    done = run(*arguments)
    assert done.exit_code == code
    assert told in done.output
    assert len(done.output.splitlines()) == 1


def test_the_page_shows_each_study_with_what_its_file_says():
    page = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    for name in catalog.STUDIES:
        assert f"shiftsort study --show results/study-{name}.json" in page
        assert f"`shiftsort study {name}" in page
        assert f"(images/study-{name}." in page
    linked = re.findall(r"\((images/[^)]+)\)", page)
    assert [path for path in linked if not (ROOT / "docs" / path).exists()] == []
