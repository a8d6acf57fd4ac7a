"""`shiftsort data`, as it is typed."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from shiftsort.cli.app import app
from shiftsort.tasks.listops import ListOps

pytest.importorskip("numba")
pillow = pytest.importorskip("PIL.Image")

SETTINGS = ["--set", "train=30", "--set", "validation=5", "--set", "test=5"]


@pytest.fixture
def run(tmp_path):
    def call(*arguments):
        return CliRunner().invoke(app, ["data", *arguments, "--data", str(tmp_path)])

    return call


def test_make_check_show_and_list(run, tmp_path):
    made = run("make", "listops", *SETTINGS)
    assert made.exit_code == 0, made.output
    folder = tmp_path / "listops,train=30,validation=5,test=5"
    assert made.stdout.split() == ["made", str(folder)]
    assert "there already" in run("make", "listops", *SETTINGS).stdout
    assert (
        run("check", "listops", *SETTINGS)
        .stdout.strip()
        .endswith("is whole: train 30, validation 5, test 5")
    )
    shown = run("show", "listops", *SETTINGS, "--split", "test", "--count", "2").stdout
    assert shown.count("[") > 10
    assert "test 1: label" in shown
    listed = run("list").stdout
    assert "train 30" in listed
    assert "retrieval-synthetic" in listed


def test_force_makes_it_again(run, tmp_path):
    run("make", "listops", *SETTINGS)
    array = tmp_path / "listops,train=30,validation=5,test=5" / "inputs.npy"
    good = array.read_bytes()
    array.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    failed = run("check", "listops", *SETTINGS)
    assert failed.exit_code == 1
    assert "inputs.npy was altered" in failed.stderr
    assert run("make", "listops", *SETTINGS, "--force").exit_code == 0
    assert array.read_bytes() == good


def test_images_are_shown_as_one_picture(run, tmp_path):
    pictured = ["pathfinder", "--set", "samples=20"]
    run("make", *pictured)
    path = tmp_path / "some.png"
    shown = run("show", *pictured, "--count", "5", "--png", str(path))
    assert shown.exit_code == 0, shown.output
    picture = np.asarray(pillow.open(path))
    assert picture.shape == (200, 300, 3)  # 3 in a row, each 3 x 32 pixels and a frame of 2
    array = np.load(tmp_path / "pathfinder,samples=20" / "inputs.npy")[0].reshape(32, 32)
    assert (picture[2:98:3, 2:98:3, 0] == array).all()
    assert "label joined" in run("show", *pictured).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["make", "nothing"], 2, "task is 'nothing', expected one of listops"),
        (["make", "listops", "--set", "seed"], 2, "expected NAME=VALUE with NAME in"),
        (["make", "listops", "--set", "colour=3"], 2, "expected NAME=VALUE with NAME in"),
        (["make", "listops", "--set", "seed=x"], 2, "expected int"),
        (["make", "listops", "--set", "train=-1"], 2, "train=-1 was given, expected int of 0"),
        (["make", "image", "--set", "black_is_padding=1"], 2, "expected bool"),
        (["check", "listops"], 1, "make it with: shiftsort data make listops"),
        (["show", "listops"], 1, "make it with: shiftsort data make listops"),
        (["make", "retrieval"], 1, "new_aan_pairs.train.tsv is missing"),
    ],
)
def test_what_goes_wrong_is_one_line(run, arguments, code, message):
    failed = run(*arguments)
    assert failed.exit_code == code
    assert message in failed.stderr
    assert len(failed.stderr.splitlines()) == 1


def test_a_picture_that_cannot_be_written_is_one_line(run, tmp_path):
    pytest.importorskip("sklearn")
    run("make", "digits")
    failed = run("show", "digits", "--png", str(tmp_path / "nowhere" / "x.png"))
    assert failed.exit_code == 1
    assert len(failed.stderr.splitlines()) == 1
    assert "nowhere/x.png" in failed.stderr


@pytest.mark.parametrize("content", ["{}", "[]", '{"format": 1}', '{"format": 1, "splits": 3}'])
def test_one_broken_set_does_not_hide_the_others(run, tmp_path, content):
    run("make", "listops", *SETTINGS)
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "manifest.json").write_text(content)
    listed = run("list")
    assert listed.exit_code == 0
    assert "broken manifest" in listed.stdout
    assert "train 30" in listed.stdout


def test_a_sample_cannot_command_the_terminal(run, monkeypatch):
    run("make", "listops", *SETTINGS)
    monkeypatch.setattr(ListOps, "describe", lambda *_: "caf\u00e9\n\x1b[2Jbye")
    assert "\ncaf\u00e9\n?[2Jbye\n" in run("show", "listops", *SETTINGS).stdout


def test_no_picture_of_what_is_none(run, tmp_path):
    run("make", "listops", *SETTINGS)
    failed = run("show", "listops", *SETTINGS, "--png", str(tmp_path / "x.png"))
    assert "--png was given for a task without images" in failed.stderr


def test_bench_data_writes_its_speeds(tmp_path):
    path = tmp_path / "data.json"
    result = CliRunner().invoke(
        app, ["bench", "data", "--device", "cpu", "--quick", "--json", str(path)]
    )
    assert result.exit_code == 0, result.output
    rows = {
        (row["candidate"], row["workers"]): row["samples_per_s"]
        for row in json.loads(path.read_text())["results"]
    }
    assert rows["generate pathfinder 32 hard", 1] > 250
    assert rows["crop and flip 3 x 32 x 32", None] > 0
