"""`shiftsort train`: what it prints, and what its exit codes mean."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from shiftsort.cli.app import app

pytest.importorskip("lightning")

_TINY = ("depth=1", "dim=16", "mlp_dim=16", "heads=2", "steps=4")


def _train(*words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["train", *words])
    return result.exit_code, result.stdout, result.stderr


def test_a_recipe_is_trained(tmp_path: Path) -> None:
    settings = [word for setting in _TINY for word in ("--set", setting)]
    run = tmp_path / "run"
    code, out, err = _train(
        "digits/mha", *settings, "--seed", "3", "--data", str(tmp_path / "data"), "--out", str(run)
    )
    assert code == 0, err
    assert out.startswith("digits/mha: test top-1 ")
    assert str(run) in out
    assert '"seed": 3' in (run / "result.json").read_text()

    code, _, err = _train("digits/mha", "--data", str(tmp_path / "data"), "--out", str(run))
    assert code == 1
    assert "has a run that has ended" in err

    code, _, err = _train("digits/csp", "--resume", str(run))
    assert code == 1
    assert "a run of digits/mha, not of digits/csp" in err

    code, _, err = _train("--resume", str(run), "--data", str(tmp_path / "data"))
    assert code == 1
    assert "has ended" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name a recipe"),
        (["digits/cps"], "did you mean digits/csp"),
        (["digits/csp", "--set", "btach=2"], "did you mean batch"),
        (["digits/csp", "--set", "batch=two"], "expected an integer"),
        (["digits/csp", "--strategy", "magic"], "expected ddp or fsdp"),
        (["--resume", "somewhere", "--set", "batch=2"], "leave --set, --seed and --out out"),
    ],
)
def test_a_wrong_command_exits_with_2_and_says_why(words: list[str], message: str) -> None:
    code, _, err = _train(*words)
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) <= 2
    assert "Traceback" not in err


def test_a_mixer_without_such_an_option_is_a_wrong_command(tmp_path: Path) -> None:
    words = (
        "--set",
        "mixer_options.bogus=1",
        "--data",
        str(tmp_path),
        "--out",
        str(tmp_path / "r"),
    )
    code, _, err = _train("digits/csp", *words)
    assert code == 2
    assert "takes no option 'bogus'" in err
    assert not (tmp_path / "r").exists()


def test_a_folder_that_is_no_run_is_told(tmp_path: Path) -> None:
    code, _, err = _train("--resume", str(tmp_path))
    assert code == 1
    assert "is not a run folder" in err


def test_a_traceback_only_with_debug(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["train", "--resume", str(tmp_path), "--debug"])
    assert type(result.exception).__name__ == "RunError"


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ((), "interrupted\n"),
        (("recipe.json",), "interrupted before its first checkpoint; begin again with: "),
        (("recipe.json", "checkpoints/step-00000001"), "interrupted; go on with: "),
    ],
)
def test_an_interrupted_run_says_what_is_left_of_it(
    made: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        for name in made:
            (tmp_path / name).mkdir(parents=True)
        raise KeyboardInterrupt

    monkeypatch.setattr("shiftsort.training.train", interrupted)
    code, _, err = _train("digits/csp", "--out", str(tmp_path))
    assert code == 130
    assert words in err
