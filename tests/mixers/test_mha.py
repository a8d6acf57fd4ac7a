"""MHA against the formula."""

import pytest
import torch

from shiftsort import mixers


@pytest.mark.parametrize("lengths", [None, torch.tensor([9, 4])])
def test_is_softmax_attention(lengths):
    torch.manual_seed(0)
    mixer = mixers.build("mha", dim=12, samples=9, heads=3, bias=True).double()
    x_bnc = torch.randn(2, 9, 12, dtype=torch.float64)
    q, k, v = mixer.qkv(x_bnc).chunk(3, dim=-1)
    heads = []
    for h in range(3):
        block = slice(4 * h, 4 * h + 4)
        scores_bnn = q[..., block] @ k[..., block].transpose(1, 2) / 2.0
        if lengths is not None:
            padding_bn = torch.arange(9) >= lengths[:, None]
            scores_bnn = scores_bnn.masked_fill(padding_bn[:, None], -torch.inf)
        heads.append(scores_bnn.softmax(-1) @ v[..., block])
    expected = mixer.out(torch.cat(heads, dim=-1))
    got = mixer(x_bnc, lengths)
    valid_bn = mixers.valid_samples(9, lengths if lengths is not None else torch.tensor([9, 9]))
    torch.testing.assert_close(got[valid_bn], expected[valid_bn])


def test_heads_must_divide_the_channels():
    with pytest.raises(ValueError, match=r"heads must divide the 12 channels, got heads=5"):
        mixers.build("mha", dim=12, samples=9, heads=5)
