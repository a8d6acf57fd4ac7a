"""CSP, shift and sort as mixers: the operator's definition, then the projection back."""

import pytest
import torch

from seen_operators import SeenOperators
from shiftsort import mixers, shift_steps
from shiftsort.operator.spec import csp_spec

N, DIM = 13, 8


def expected(mixer, x_bnc, steps, group_size, order="reference", lengths=None):
    v_bnc = x_bnc @ mixer.csp.weight.T
    return mixer.out(csp_spec(v_bnc, steps, group_size, order=order, lengths=lengths))


@pytest.mark.parametrize("order", ["reference", "ascending"])
@pytest.mark.parametrize("shift", ["linear", "exponential", "heads", "none"])
@pytest.mark.parametrize("group_size", [1, 2, 5, None])
@pytest.mark.parametrize("channels", [DIM, 2 * DIM])
def test_csp_is_the_operator_between_two_projections(order, shift, group_size, channels):
    torch.manual_seed(0)
    options = {"order": order, "shift": shift, "group_size": group_size, "channels": channels}
    mixer = mixers.build("csp", dim=DIM, samples=N, layer=1, depth=2, heads=4, **options)
    x_bnc, lengths = torch.randn(2, N, DIM), torch.tensor([N, 6])
    steps = shift_steps(shift, N, channels, layer=1, depth=2, heads=4)
    got, want = mixer(x_bnc, lengths), expected(mixer, x_bnc, steps, group_size, order, lengths)
    valid_bn = mixers.valid_samples(N, lengths)
    torch.testing.assert_close(got[valid_bn], want[valid_bn])


def test_shift_by_channel_is_the_third_row_of_the_papers_analysis():
    """S_{(c-1) mod N} v_c for c = 1, ..., C, where N is at most C."""
    mixer = mixers.build("shift", dim=16, samples=4)
    x_bnc = torch.randn(2, 4, 16)
    v_bnc = x_bnc @ mixer.csp.weight.T
    rolled = torch.stack([v_bnc[..., c].roll(c % 4, dims=1) for c in range(16)], dim=-1)
    torch.testing.assert_close(mixer(x_bnc), mixer.out(rolled))


def test_shift_by_head_is_the_second_row_of_the_papers_analysis():
    """S_{C(m-1)/D} V_m for m = 1, ..., M: head m rolls by M (m - 1)."""
    mixer = mixers.build("shift", dim=16, samples=64, heads=4, shift="heads")
    x_bnc = torch.randn(2, 64, 16)
    v_bnc = x_bnc @ mixer.csp.weight.T
    rolled = torch.cat([v_bnc[..., 4 * m : 4 * m + 4].roll(4 * m, dims=1) for m in range(4)], -1)
    torch.testing.assert_close(mixer(x_bnc), mixer.out(rolled))


@pytest.mark.parametrize("group_size", [2, None])
def test_sort_does_not_shift(group_size):
    mixer = mixers.build("sort", dim=DIM, samples=N, group_size=group_size)
    x_bnc = torch.randn(2, N, DIM)
    steps = torch.zeros(DIM, dtype=torch.int64)
    torch.testing.assert_close(mixer(x_bnc), expected(mixer, x_bnc, steps, group_size))


@pytest.mark.parametrize(("name", "option"), [("shift", "group_size"), ("sort", "shift")])
def test_the_halves_refuse_the_other_halfs_options(name, option):
    with pytest.raises(TypeError, match=f"mixer '{name}' takes no option '{option}'"):
        mixers.build(name, dim=DIM, samples=N, **{option: 2})


@pytest.mark.parametrize("samples", [12, 5], ids=["channel-outer", "token-major"])
def test_the_bias_is_added_by_the_projection_back(samples, monkeypatch):
    """And not in a pass of its own, over what a GPU's projection writes channel-outer."""
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    mixer = mixers.build("csp", dim=6, samples=samples, bias=True, out_bias=True)
    with SeenOperators() as seen:
        mixer(torch.randn(2, samples, 6))
    assert seen.names.count("aten.addmm") == 2
    assert not {"aten.add", "aten.add_", "aten.clone", "aten.copy_"} & set(seen.names)
