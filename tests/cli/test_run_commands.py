"""`shiftsort recipes`, `evaluate` and `predict`."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from shiftsort import recipes, tasks, training
from shiftsort.cli.app import app

pytest.importorskip("lightning")


def _call(*words: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict]:
    folder = tmp_path_factory.mktemp("trained")
    words = ["depth=1", "steps=60", "every=60"]
    recipe, changed = recipes.override(recipes.get("digits/csp"), words)
    result = training.train(
        recipe,
        folder / "run",
        data=folder / "data",
        machine=training.Machine(bar=False),
        overrides=changed,
        say=lambda line: None,
    )
    return folder / "run", folder / "data", result


def test_evaluate_says_what_the_result_says(trained: tuple[Path, Path, dict]) -> None:
    run, data, result = trained
    code, out, err = _call("evaluate", run, "--data", data)
    assert code == 0, err
    test = result["test"]
    expected = f"test: top-1 {test['top1']:.2f} %, top-5 {test['top5']:.2f} %, loss "
    assert out.startswith(expected)
    code, out, _ = _call("evaluate", run, "--data", data, "--split", "validation")
    assert out.startswith(f"validation: top-1 {result['validation']['top1']:.2f} %")


def test_predict_gives_each_sample_its_likeliest_classes(
    trained: tuple[Path, Path, dict], tmp_path: Path
) -> None:
    run, data, result = trained
    test = tasks.get("digits").open(data).split("test")
    np.save(tmp_path / "digits.npy", test.inputs.numpy())
    code, out, err = _call("predict", run, tmp_path / "digits.npy")
    assert code == 0, err
    lines = out.splitlines()
    assert len(lines) == len(test)
    first_guesses = [int(line.split(": ")[1].split()[0]) for line in lines]
    right = np.mean(np.array(first_guesses) == test.labels.numpy())
    assert 100 * right == pytest.approx(result["test"]["top1"])
    assert all(line.count("%") == 5 for line in lines)


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_what_is_no_run_or_no_file_is_said_in_a_line(
    command: str, trained: tuple[Path, Path, dict], tmp_path: Path
) -> None:
    file = [tmp_path / "none.npy"] if command == "predict" else []
    code, _, err = _call(command, tmp_path, *file)
    assert code == 1
    assert "is not a run folder" in err
    run = tmp_path / "begun"
    shutil.copytree(trained[0], run)
    (run / "weights.safetensors").unlink()
    code, _, err = _call(command, run, *file)
    assert code == 1
    assert "has not ended; go on with it" in err
    if command == "predict":
        code, _, err = _call(command, trained[0], *file)
        assert code == 1
        assert "none.npy is not a file" in err


def test_recipes_lists_the_papers_number_and_ours(
    trained: tuple[Path, Path, dict], tmp_path: Path
) -> None:
    results = tmp_path / "results"
    results.mkdir()
    csp = {**trained[2], "recipe": "cifar10/csp", "overrides": {}, "steps": 800}
    for name, content in {
        "0": csp,
        "1": {**csp, "seed": 1, "test": {**csp["test"], "top1": csp["test"]["top1"] + 1}},
        "short": {**csp, "recipe": "cifar10/mha", "steps": 400},
        "changed": {**csp, "recipe": "cifar10/sort", "overrides": {"optimiser.lr": 1.0}},
    }.items():
        (results / f"{name}.json").write_text(json.dumps(content))
    code, out, err = _call("recipes", "cifar10/", "--dir", results)
    assert code == 0, err
    rows = {line.split()[0]: line for line in out.splitlines() if "cifar10/" in line}
    assert len(rows) == 5
    mean = csp["test"]["top1"] + 0.5
    assert rows["cifar10/csp"].split()[-4:] == ["84.81", f"{mean:.2f}", "±", "0.71"]
    assert "(50 % of the steps)" in rows["cifar10/mha"]
    assert rows["cifar10/sort"].rstrip().endswith("79.41"), "it was not trained as published"


def test_recipes_shows_all_of_one(tmp_path: Path) -> None:
    code, out, _ = _call("recipes", "lra/listops/csp", "--dir", tmp_path / "none")
    assert code == 0
    for name in recipes.fields(recipes.get("lra/listops/csp")):
        assert name in out
    assert "The paper prints 37.65 %." in out


def test_a_filter_that_nothing_has_is_a_wrong_command() -> None:
    code, _, err = _call("recipes", "lra/listops/cps")
    assert code == 2
    assert "did you mean lra/listops/csp" in err
