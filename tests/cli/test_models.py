"""`shiftsort models` and the page it fills."""

import re
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from shiftsort import mixers
from shiftsort.cli.app import app
from shiftsort.mixers.mixer import About, HeadMixer, wipe_heads
from shiftsort.models.catalog import BODIES, sizes

PAGE = Path(__file__).parents[2] / "docs" / "mixers.md"


def run(*arguments):
    return CliRunner().invoke(app, ["models", *arguments], env={"COLUMNS": "400"})


def test_lists_every_mixer_and_model_with_what_is_to_be_known():
    out = run().output
    for name in mixers.names():
        about = mixers.about(name)
        row = next(line for line in out.splitlines() if line.startswith(f"│ {name} "))
        assert all(what in row for what in (about.complexity, about.source, about.row))
        assert about.left_out in row
    for body in BODIES.values():
        assert body.title in out
        assert body.source in out
    for count in ("9,523,722", "6,377,994", "18,502,504", "22,046,056"):
        assert count in out


def test_describes_one_mixer_with_its_options():
    out = run("reformer").output
    assert "Kitaev et al. 2020" in out
    assert "chunk, rounds, buckets" in out


def test_an_unknown_mixer_is_answered_with_the_nearest():
    result = run("refomer")
    assert result.exit_code == 2
    assert "did you mean 'reformer'?" in result.output


def test_the_pages_example_of_a_new_mixer_is_one():
    code = next(
        c for c in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S) if "Mean" in c
    )
    names = {"About": About, "HeadMixer": HeadMixer, "wipe_heads": wipe_heads}
    exec(code, names)
    mixer = names["Mean"](12, samples=9, heads=3)
    x_bnc, lengths = torch.randn(2, 9, 12), torch.tensor([9, 4])
    means = torch.stack([mixer.inner(x_bnc[b, :n]).mean(dim=0) for b, n in enumerate((9, 4))])
    torch.testing.assert_close(mixer(x_bnc, lengths)[:, 0], mixer.out(means))
    torch.testing.assert_close(mixer(x_bnc[1:, :4])[:, 0], mixer.out(means[1:]))


@pytest.mark.parametrize("size", list(sizes()), ids=lambda size: f"{size.body}-{size.task}")
def test_the_listed_sizes_can_be_built(size):
    assert size.parameters() > 20_000
