"""What README and the page on training promise: their examples and commands run, in their order."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shiftsort import recipes, tasks
from shiftsort.cli import demo
from shiftsort.cli.app import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TRAINING = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")

_SHORT = ("--set", "steps=4", "--set", "every=2", "--set", "depth=1")
_SMALL_LISTOPS = "task_settings={'train': 8, 'validation': 4, 'test': 4, 'max_length': 520}"
#: What makes a command small enough for a test. A command of the pages that no line here begins
#: has no test, and fails.
_SMALLER = {
    "train digits/csp": _SHORT,
    "train digits/mha": (),  # it is short as it stands
    "train lra/listops/csp": (*_SHORT, "--set", "batch=2", "--set", _SMALL_LISTOPS),
    "train cifar10/csp --set": (*_SHORT, "--set", "task=digits", "--set", "patch_size=2"),
    "train --resume": (),
    "recipes": (),
    "evaluate": (),
    "predict": (),
    "report": (),
    "results": (),
    "demo": (),
    "doctor": (),
    "data list": (),
    "models": (),
    "study": (),
    "bench operator": ("--quick", "--shape", "1x16x4", "--groups", "2", "--only", "csp"),
    "bench layer": ("--quick", "--shape", "1x16x8", "--groups", "2", "--only", "csp"),
    "bench lra": ("--quick", "--lengths", "16", "--only", "csp"),
}
#: They need several GPUs or machines; two processes are tested in training/test_devices.py.
_ELSEWHERE = ("--devices 8",)
#: What these end with where it is not 0.
_CODES = {"train --resume": 1}  # the run has ended


def _commands(page: str) -> list[str]:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    plain = "".join(block for language, block in blocks if not language)
    lines = plain.replace("\\\n", " ").splitlines()
    return [line.split("  #")[0].strip() for line in lines if line.startswith("shiftsort ")]


@pytest.fixture
def a_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with results/ and a picture, where the demo is quick."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHIFTSORT_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(demo, "_LENGTHS", (16, 32))
    monkeypatch.setattr(demo, "_BUDGET", 0.0)
    monkeypatch.setattr(demo, "_RECIPES", ("digits/mha",))
    (tmp_path / "results").symlink_to(ROOT / "results")
    tasks.get("digits").make()
    shown = CliRunner().invoke(
        app, ["data", "show", "digits", "--count", "1", "--png", "digit.png"]
    )
    assert shown.exit_code == 0, shown.output
    return tmp_path


@pytest.mark.parametrize("page", [README, TRAINING], ids=["README", "training"])
def test_every_command_runs(page: str, a_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = _commands(page)
    assert len(commands) >= 9
    monkeypatch.setattr(demo, "_train", _quick(demo._train))
    for command in commands:
        words = shlex.split(command)[1:]
        if any(part in command for part in _ELSEWHERE):
            recipes.get(words[1])
            continue
        known = [start for start in _SMALLER if " ".join(words).startswith(start)]
        assert known, f"no test for: {command}"
        start = max(known, key=len)
        result = CliRunner().invoke(app, [*words, *_SMALLER[start]])
        assert result.exit_code == _CODES.get(start, 0), f"{command}\n{result.output}"
        assert result.output.strip(), command


def _quick(train):
    def trained(name: str, out: Path):
        with pytest.MonkeyPatch.context() as patch:
            get = recipes.get
            patch.setattr(recipes, "get", lambda n: recipes.override(get(n), ["steps=4"])[0])
            return train(name, out)

    return trained


@pytest.mark.parametrize("page", [README, TRAINING], ids=["README", "training"])
def test_the_examples_run_one_after_the_other(page: str, a_place: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(examples) >= 2
    if page is TRAINING:
        CliRunner().invoke(app, ["train", "digits/csp", "--set", "steps=4"])
    names: dict[str, object] = {}
    for example in examples:
        exec(compile(example.replace("epochs=2", "epochs=0.2"), "page", "exec"), names)


def test_what_it_links_to_and_lists_is_there():
    paths = re.findall(r"\]\(([^)]+)\)|^\| `([^`]+)`", README, flags=re.MULTILINE)
    assert len(paths) > 8
    # Git keeps no empty folder, so a checkout may have no results yet.
    missing = [p for p in map("".join, paths) if p != "results/" and not (ROOT / p).exists()]
    assert missing == []


def test_every_page_of_the_docs_is_named():
    pages = {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}
    assert pages <= set(re.findall(r"\]\(([^)]+)\)", README))


def test_the_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    targets = re.findall(r"^make ([a-z]+)", README + contributing, flags=re.MULTILINE)
    assert {"demo", "test", "check"} <= set(targets)
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
