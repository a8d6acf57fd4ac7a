"""MHA against the formula."""

import pytest
from naive import agree, build, parts, softmax_attention

from shiftsort import mixers


@pytest.mark.parametrize("lengths", [None, [9, 4]])
def test_is_softmax_attention(lengths):
    mixer = build("mha", 9)
    agree(
        mixer,
        lambda x, valid: softmax_attention(*parts(mixer, x), valid[:, None, None]),
        9,
        lengths,
    )


def test_heads_must_divide_the_channels():
    with pytest.raises(ValueError, match=r"heads must divide the 12 channels, got heads=5"):
        mixers.build("mha", dim=12, samples=9, heads=5)
