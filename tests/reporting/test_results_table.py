"""`shiftsort results`: what is read, what is averaged, and what is said of bad files."""

import json

import pytest
from made_runs import make_run, result
from typer.testing import CliRunner

from shiftsort.cli.app import app
from shiftsort.reporting import runs, summary, table


def run(*arguments):
    return CliRunner().invoke(app, ["results", *map(str, arguments)])


def write(folder, *results):
    for number, content in enumerate(results):
        (folder / f"{number}.json").write_text(json.dumps(content))
    return folder


def top1(value):
    return {"top1": value, "top5": None, "loss": 0.5}


def read(folder):
    return summary.experiments(runs.read_results(folder))


def test_seeds_are_one_line_with_mean_and_deviation(tmp_path):
    made = [result(seed=seed, test=top1(84.0 + seed)) for seed in range(3)]
    (experiment,) = read(write(tmp_path, *made))
    assert [run.seed for run in experiment.runs] == [0, 1, 2]
    assert experiment.test("top1") == summary.Spread(85.0, 1.0)
    assert experiment.test("top1").text() == "85.00 ± 1.00"
    assert experiment.test("top5") is None


def test_one_seed_has_no_deviation(tmp_path):
    (experiment,) = read(write(tmp_path, result()))
    assert experiment.test("top1").text() == "84.00"


def test_of_two_runs_with_one_seed_the_newer_counts(tmp_path):
    older = result(test=top1(10.0), date="2026-01-01T00:00:00+00:00")
    (experiment,) = read(write(tmp_path, result(), older))
    assert experiment.test("top1").mean == 84.0


@pytest.mark.parametrize(
    "change",
    [{"steps": 100}, {"overrides": {"dim": 64}}, {"chosen_on": "validation"}, {"parameters": 7},
     {"precision": "32-true"}],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_what_was_run_differently_is_not_averaged(tmp_path, change):
    assert len(read(write(tmp_path, result(), result(seed=1, **change)))) == 2


def test_a_seed_given_by_hand_is_not_a_change(tmp_path):
    made = [result(seed=seed, overrides={"seed": seed}) for seed in range(2)]
    (experiment,) = read(write(tmp_path, *made))
    assert experiment.changed == ""


def test_epochs_that_steps_have_put_out_are_no_change(tmp_path):
    (experiment,) = read(write(tmp_path, result(overrides={"epochs": None, "steps": 9})))
    assert experiment.changed == "steps=9"


def test_names_are_as_short_as_they_can_be():
    def named(*changes):
        made = [summary.Experiment((runs._run("x", result(**change)),)) for change in changes]
        return summary.names(made)

    assert named({}, {"row": "mha"}) == ["csp", "mha"]
    assert named({"recipe": "a"}, {"recipe": "b"}) == ["a", "b"]
    assert named({}, {"overrides": {"dim": 64}}) == [
        "cifar10/csp, as published", "cifar10/csp, dim=64",
    ]  # fmt: skip
    assert named({}, {}) == ["cifar10/csp, as published (1)", "cifar10/csp, as published (2)"]


def test_the_table_holds_the_paper_beside_ours(tmp_path):
    write(tmp_path, result(steps=39_100), result(row="mha", recipe="cifar10/mha", paper=None))
    found = run("--dir", tmp_path, "--markdown").output
    assert (
        "| cifar10 | csp | cifar10/csp | 84.81 | 84.00 | 99.35 | 99.20 | 6,377,994 | 1 "
        "| 39,100 of 78,200 (50 %) | test |" in found
    )
    assert "| cifar10 | mha | cifar10/mha |  | 84.00 |" in found


def test_a_column_without_anything_is_left_out(tmp_path):
    write(tmp_path, result(paper={"top1": 40.0, "top5": None}, test=top1(37.5)))
    found = run("--dir", tmp_path).output
    assert "37.50" in found
    assert "top-5" not in found
    assert "changed" not in found


def test_one_table_can_be_asked_for(tmp_path):
    write(tmp_path, result(), result(table="lra", task="listops"))
    both = run("--dir", tmp_path).output
    assert "listops" in both
    assert "listops" not in run("cifar10", "--dir", tmp_path).output


def test_an_unknown_table_is_answered_with_the_nearest(tmp_path):
    found = run("cifar", "--dir", write(tmp_path, result()))
    assert found.exit_code == 2
    assert "did you mean 'cifar10'?" in " ".join(found.output.replace("│", " ").split())


def test_other_json_in_the_folder_is_passed_over(tmp_path):
    write(tmp_path, {"bench": "operator", "results": []}, [1], result())
    assert len(read(tmp_path)) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "0.json cannot be read as JSON"),
        (json.dumps(result(format=2)), "expected a result with format 1, got 2"),
        (json.dumps(result(seed="1")), "the field 'seed' cannot be '1'"),
        (json.dumps(result(test={"loss": 1})), "test.top1 must be a number"),
        (
            json.dumps(result(chosen_on="luck")),
            "chosen_on must be one of validation, test, nothing",
        ),
        (json.dumps({"format": 1, "recipe": "a"}), "the field 'table' is missing"),
    ],
)
def test_a_file_that_is_no_result_is_named_with_the_reason(tmp_path, content, message):
    (tmp_path / "0.json").write_text(content)
    found = run("--dir", tmp_path)
    assert found.exit_code == 1
    assert message in " ".join(found.output.split())
    assert len(found.output.splitlines()) <= 2


def test_an_empty_or_missing_folder_is_said(tmp_path):
    assert "has no result of a run" in run("--dir", tmp_path).output
    missing = run("--dir", tmp_path / "none")
    assert missing.exit_code == 1
    assert "is not a folder" in missing.output


def test_a_run_folder_brings_its_curves(tmp_path):
    curves = runs.read_run(make_run(tmp_path / "run")).curves
    assert curves["train_loss"][0] == (50, 2.15608)
    assert [step for step, _ in curves["validation_top1"]] == list(range(200, 2001, 200))
    assert "lr" not in curves, "nothing was written there"


def test_a_line_that_was_cut_off_or_is_not_finite_leaves_a_gap(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text(
        "step,epoch,train_loss,train_top1\n1,0.1,2.0\n2,0.2,nan\n3,0.3,1.5,7\n,0.4,9\n4,0.5,1.2e"
    )
    curves = runs.read_curves(path)
    assert curves["train_loss"] == [(1, 2.0), (3, 1.5)]
    assert curves["train_top1"] == [(3, 7.0)]


def test_a_run_that_has_not_ended_is_told_from_one_that_is_not_there(tmp_path):
    with pytest.raises(runs.ReportError, match=r"has no result\.json.*--resume"):
        runs.read_run(tmp_path)
    with pytest.raises(runs.ReportError, match="does not exist"):
        runs.read_run(tmp_path / "none")


def test_a_bar_in_a_cell_does_not_break_the_markdown(tmp_path):
    (experiment,) = read(write(tmp_path, result(row="a|b")))
    assert r"a\|b" in table.markdown([experiment])


def test_markdown_names_the_command_of_each_run_and_where_it_ran(tmp_path):
    seeds = [
        result(seed=n, command=f"shiftsort train cifar10/csp --seed {n}", peak_memory_bytes=None)
        for n in range(2)
    ]
    found = run("--dir", write(tmp_path, *seeds, result(row="mha")), "--markdown").output
    assert (
        "- `shiftsort train cifar10/csp --seed 1` (NVIDIA H200, bf16-mixed, 120 steps a second, "
        f"2026-11-18, commit 0123456789): `{tmp_path.as_posix()}/1.json`" in found
    )
    assert "1,200 MB at most" in found


def test_what_has_no_result_is_listed_with_the_command(tmp_path):
    made = [("cifar10", "cifar10/csp"), ("lra", "lra/text/csp"), ("lra", "lra/text/mha"),
            ("lra", "lra/image/csp"), ("lra", "lra/listops/csp"), ("lra", "lra/listops/mha"),
            ("cifar10", "cifar10/mha")]  # fmt: skip
    lines = table.missing(made, read(write(tmp_path, result()))).splitlines()
    assert lines[2:] == [
        "| cifar10 | 1 of 2 | cifar10/mha | `shiftsort train cifar10/mha` |",
        "| lra | 0 of 5 | lra/{text, listops}/{csp, mha}, lra/image/csp | "
        "`shiftsort train lra/text/csp` |",
    ]


def test_missing_knows_the_recipes(tmp_path):
    write(tmp_path, result())
    found = run("cifar10", "--missing", "--dir", tmp_path).output
    assert "4 of 5" not in found
    assert "1 of 5 | cifar10/{mha, shift, sort, csp-wide}" in found
    assert "did you mean" in run("cifar", "--missing", "--dir", tmp_path).output
