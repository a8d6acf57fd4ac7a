"""How far each channel shifts."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shiftsort import shift_steps
from shiftsort.operator.schedule import KINDS

sizes = st.integers(1, 20_000), st.integers(1, 600)


@pytest.mark.parametrize("kind", KINDS)
@given(samples=st.integers(0, 3000), channels=st.integers(1, 300), depth=st.integers(1, 12))
def test_steps_lie_inside_the_sequence_and_channel_0_stays(
    kind: str, samples: int, channels: int, depth: int
) -> None:
    for layer in {0, depth - 1}:
        steps = shift_steps(kind, samples, channels, layer=layer, depth=depth)
        assert steps.shape == (channels,)
        assert steps.dtype == torch.int64
        assert steps[0] == 0
        assert int(steps.min()) >= 0
        assert int(steps.max()) <= max(samples - 1, 0)


@given(*sizes)
def test_linear(samples: int, channels: int) -> None:
    stride = (samples + channels - 1) // channels
    expected = [c * stride % samples for c in range(channels)]
    assert shift_steps("linear", samples, channels).tolist() == expected


@given(samples=st.integers(1, 20_000), channels=st.integers(2, 64), depth=st.integers(1, 8))
def test_exponential_rises_from_0_to_the_last_sample_over_all_layers(
    samples: int, channels: int, depth: int
) -> None:
    layers = [
        shift_steps("exponential", samples, channels, layer=layer, depth=depth)
        for layer in range(depth)
    ]
    # channel 0 of each layer is the reference, and leaves the curve
    moved = torch.cat([steps[1:] for steps in layers])
    assert bool((moved.diff() >= 0).all())
    assert layers[0][0] == 0
    assert layers[-1][-1] == samples - 1


def test_exponential_by_hand() -> None:
    # 256 ** (g / 8) - 1 = 2 ** g - 1 for the 9 channels of 3 layers
    layers = [shift_steps("exponential", 256, 3, layer=layer, depth=3) for layer in range(3)]
    assert [steps.tolist() for steps in layers] == [[0, 1, 3], [0, 15, 31], [0, 127, 255]]


def test_exponential_is_not_the_printed_formula_that_shifts_nothing() -> None:
    assert int(shift_steps("exponential", 1024, 64).max()) == 1023


@pytest.mark.parametrize("heads", [1, 4, 8])
def test_heads_are_the_paper_s_s_of_c_m_minus_1_over_d(heads: int) -> None:
    samples, channels = 64, 512
    width = channels // heads
    expected = [(channels * m // width) % samples for m in range(heads) for _ in range(width)]
    assert shift_steps("heads", samples, channels, heads=heads).tolist() == expected


def test_none() -> None:
    assert shift_steps("none", 9, 4).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("linaer", 8, 4), ValueError, "'linaer' is unknown; choose one of linear, exponential"),
        (("linear", -1, 4), ValueError, "samples must be at least 0, got -1"),
        (("linear", 8, 0), ValueError, "channels must be at least 1, got 0"),
        (("linear", 8.0, 4), TypeError, "samples must be an integer, got float"),
        (("linear", 8, True), TypeError, "channels must be an integer, got bool"),
    ],
)
def test_bad_arguments(arguments: tuple[object, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        shift_steps(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer": 2, "depth": 2}, "layer must be below depth, got layer=2 with depth=2"),
        ({"layer": -1}, "layer must be at least 0, got -1"),
        ({"depth": 0}, "depth must be at least 1, got 0"),
        ({"heads": 0}, "heads must be at least 1, got 0"),
    ],
)
def test_bad_options(options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shift_steps("linear", 8, 4, **options)
