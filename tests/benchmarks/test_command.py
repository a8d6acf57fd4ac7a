"""`shiftsort bench`, as it is typed."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from shiftsort.benchmarks import memory, permutations
from shiftsort.cli.app import app


def run(*arguments):
    # Wide enough that no name of a file is broken over two lines.
    return CliRunner().invoke(app, ["bench", *arguments], env={"COLUMNS": "400"})


def test_operator_writes_where_its_numbers_come_from(tmp_path):
    path, picture = tmp_path / "new" / "run.json", tmp_path / "run.png"
    result = run(
        "operator", "--device", "cpu", "--shape", "2x16x8", "--shape", "2x32x8", "--groups",
        "2,all", "--quick", "--only", "csp", "--only", "flash", "--commit", "abc",
        "--json", str(path), "--plot", str(picture),
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "B = 2, N = 32, C = 8" in result.output
    found = json.loads(path.read_text())
    assert set(found) == {
        "bench", "device", "versions", "commit", "date", "command", "settings", "warnings",
        "results",
    }  # fmt: skip
    assert (found["bench"], found["commit"]) == ("operator", "abc")
    assert found["settings"] == {
        "device": "cpu", "dtype": "float32", "steps": "linear", "order": "reference", "heads": 8,
        "quick": True,
    }  # fmt: skip
    rows = {
        (r["candidate"], r["layout"], r["shape"][1], r["group_size"]): r for r in found["results"]
    }
    pairs = rows["csp", "token-major", 32, 2]
    assert set(pairs["ms"]) == {"forward", "saving", "backward", "both"}
    assert pairs["saved_bytes"] > 0
    assert pairs["copies"]["forward"] > 0
    # values read and written, and what is kept of the permutation
    moved = 2 * 2 * 32 * 8 * 4 + pairs["saved_bytes"]
    expected = moved / pairs["ms"]["backward"]["median"] / 1e6
    assert pairs["gb_per_s"]["backward"] == pytest.approx(expected, rel=1e-3)
    assert rows["csp, plain torch", "token-major", 32, 2]["failed"]
    assert rows["copy", "token-major", 16, "any"]["of_copy"] == {"forward": 1.0}
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_layer_compares_with_attention_and_a_bare_projection(tmp_path):
    path, picture = tmp_path / "layer.json", tmp_path / "layer.png"
    only = ["--only", "csp", "--only", "flash", "--only", "cudnn"]
    result = run(
        "layer", "--device", "cpu", "--shape", "1x16x16", "--quick", *only,
        "--json", str(path), "--plot", str(picture),
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    rows = {(r["candidate"], r["group_size"]): r for r in json.loads(path.read_text())["results"]}
    for group in (2, "all"):
        assert rows["csp layer", group]["of_attention"]["both"] > 0
        assert rows["projection + csp", group]["of_projection"]["forward"] > 0
    assert rows["attention layer, cudnn", "any"]["failed"]
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shape", "8x1024"], "--shape must be batch x length x channels, as 8x1024x512, got"),
        (["--lengths", "8,x"], "--lengths must be positive integers with commas, got '8,x'"),
        (["--groups", "0"], "--groups must be positive integers with commas, got '0'"),
        (["--dtype", "int8"], "--dtype must be one of float32, bfloat16"),
        (["--steps", "cubic"], "--steps must be one of linear, exponential, heads, none"),
        (["--order", "falling"], "--order must be one of reference, ascending, got 'falling'"),
        (["--device", "tpu"], "--device must be cpu, or cuda where torch sees a GPU, got 'tpu'"),
        (["--only", "nobody"], "--only nobody names none of these candidates: copy; clone; csp"),
    ],
)
def test_bad_options_are_named(arguments, message):
    result = run("operator", "--device", "cpu", *arguments)
    assert result.exit_code == 2
    said = " ".join(result.output.replace("│", " ").split())
    assert message in said


def test_the_script_for_a_gpu_asks_for_what_there_is(tmp_path):
    """Its commands, noted by what stands in for Python, are parsed and not run."""
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$*" >> "$0.log"\n')
    python.chmod(0o755)
    script = Path(__file__).parents[2] / ".ci" / "gpu"
    environment = os.environ | {"PYTHON": str(python), "COMMIT": "abc"}
    done = subprocess.run([script, tmp_path / "out", "operator", "layer"], env=environment)
    assert done.returncode == 0
    bench = typer.main.get_command(app).commands["bench"]
    asked = [line.split() for line in (tmp_path / "python.log").read_text().splitlines()]
    assert len(asked) == 7
    for module, which, group, name, *options in asked:
        assert (module, which, group) == ("-m", "shiftsort.cli", "bench")
        bench.commands[name].make_context(name, options)
    silent = subprocess.run(
        [script, tmp_path / "out", "tests"], env=environment, capture_output=True, text=True
    )
    assert (silent.returncode, "no tests were found" in silent.stdout) == (1, True)
    unknown = subprocess.run([script, tmp_path / "out", "nothing"], env=environment)
    assert unknown.returncode == 2


def test_the_script_for_a_gpu_stops_a_part_at_its_limit(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 60\n")
    python.chmod(0o755)
    script = Path(__file__).parents[2] / ".ci" / "gpu"
    environment = os.environ | {"PYTHON": str(python), "LIMIT": "1"}
    done = subprocess.run(
        [script, tmp_path, "layer"], env=environment, capture_output=True, text=True, timeout=50
    )
    assert done.returncode == 1
    assert "stopped at the limit" in done.stdout
    assert "no time left for" in done.stdout


def test_what_a_bench_has_measured_stays_when_it_is_stopped(tmp_path, monkeypatch):
    path = tmp_path / "run.json"
    prepare = permutations._prepare_copy

    def stop_at_the_second_shape(case):
        if case.samples == 32:
            raise KeyboardInterrupt
        return prepare(case)

    monkeypatch.setattr(permutations, "_prepare_copy", stop_at_the_second_shape)
    shapes = ["--shape", "1x16x4", "--shape", "1x32x4", "--groups", "1"]
    result = run("operator", "--device", "cpu", *shapes, "--quick", "--only", "csp",
                 "--json", str(path))  # fmt: skip
    assert result.exit_code != 0
    assert {r["shape"][1] for r in json.loads(path.read_text())["results"]} == {16}


def test_short_names_of_dtypes(tmp_path):
    path = tmp_path / "run.json"
    options = ["--shape", "1x8x4", "--groups", "1", "--dtype", "bf16", "--quick", "--only", "csp"]
    result = run("operator", "--device", "cpu", *options, "--json", str(path))
    assert result.exit_code == 0, result.output
    assert json.loads(path.read_text())["settings"]["dtype"] == "bfloat16"


def test_what_was_written_is_shown_again(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "keep_freed_memory", lambda: True)  # it lasts, for other tests too
    path = tmp_path / "lra.json"
    measured = run("lra", "--lengths", "16", "--batch", "1", "--only", "csp", "--device", "cpu",
                   "--quick", "--json", str(path))  # fmt: skip
    assert measured.exit_code == 0, measured.output
    shown = run("show", str(path))
    assert measured.output.strip() in shown.output
    rows = [
        line for line in run("show", str(path), "--markdown").output.splitlines() if "|" in line
    ]
    assert rows[0].startswith("| model | N | steps / s |")
    assert rows[1].startswith("| --- | --: |")
    assert len(rows) == 4
    assert "\x1b" not in "".join(rows)


@pytest.mark.parametrize("content", ["{", "{}", None])
def test_a_file_that_is_no_bench_is_named(content, tmp_path):
    path = tmp_path / "a.json"
    if content is not None:
        path.write_text(content)
    result = run("show", str(path))
    assert result.exit_code == 2
    assert "a.json" in result.output
