"""The learning rate where schedules go wrong: first, last, around the end of the warm-up."""

import math

import pytest
import torch

from shiftsort.recipes import Schedule
from shiftsort.training import schedule

STEPS, LR = 100, 0.5


def _rates(*, updates_per_epoch: int = 10, **options: object) -> list[float]:
    wanted = Schedule(**options)
    return [schedule.rate(wanted, LR, step, STEPS, updates_per_epoch) for step in range(STEPS)]


def test_a_warm_up_ends_at_the_whole_rate() -> None:
    rates = _rates(kind="constant", warmup=20)
    assert rates[:3] == pytest.approx([LR / 20, 2 * LR / 20, 3 * LR / 20])
    assert rates[18] < LR
    assert rates[19:] == [LR] * 81
    assert _rates(kind="constant", warmup_epochs=2) == rates, "epochs are passes"
    assert _rates(kind="constant") == [LR] * STEPS


def test_a_warm_up_may_rise_as_a_power() -> None:
    rates = _rates(kind="constant", warmup=20, warmup_power=2.0)
    assert rates[9] == pytest.approx(LR / 4)
    assert rates[19:] == [LR] * 81


def test_the_root_is_long_range_arenas() -> None:
    rates = _rates(kind="rsqrt", warmup=20)
    expected = [
        LR * min(1, number / 20) / math.sqrt(max(number, 20)) for number in range(1, STEPS + 1)
    ]
    assert rates == pytest.approx(expected)


def test_a_line_falls_from_the_whole_rate_to_nothing_behind_the_last_update() -> None:
    rates = _rates(kind="linear", warmup=20)
    assert rates[19:] == pytest.approx([LR, *(LR * (1 - k / 80) for k in range(80))])


def test_a_cosine_without_warm_up_is_torchs() -> None:
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=LR)
    torchs = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS)
    expected = []
    for _ in range(STEPS):
        expected.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        torchs.step()
    assert _rates(kind="cosine") == pytest.approx(expected)
    behind_warmup = _rates(kind="cosine", warmup=20)[20:]
    assert behind_warmup[0] == LR
    assert behind_warmup[40] == pytest.approx(LR / 2)
    assert 0 < behind_warmup[-1] < LR / 1000


def test_more_warm_up_than_updates_is_a_rise_alone() -> None:
    """As in a run that was made short for a try."""
    assert _rates(kind="cosine", warmup=200) == pytest.approx(
        [LR * number / 200 for number in range(1, STEPS + 1)]
    )
