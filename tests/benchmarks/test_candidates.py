"""Every candidate moves the values as it says it does, and the bench notices one that does not."""

import pytest
import torch

import shiftsort
from shiftsort.benchmarks import attention, cub, permutations
from shiftsort.benchmarks.candidate import Unsupported, is_right
from shiftsort.benchmarks.case import LAYOUTS, Case
from shiftsort.benchmarks.permutations import plain_csp, sort_groups


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_seed_gives_the_same_values_in_every_layout(layout):
    case = Case(2, 5, 3)
    v = case.values(7, layout)
    v_bnc = v if layout == "token-major" else v.transpose(1, 2)
    assert torch.equal(v_bnc, case.values(7))
    assert not torch.equal(v_bnc, case.values(8))


def test_layouts_lie_in_memory_as_their_letters_say():
    case = Case(2, 5, 3)
    assert case.values(0, "token-major").stride() == (15, 3, 1)
    assert case.values(0, "channel-major").stride() == (15, 5, 1)
    assert case.values(0, "channel-outer").stride() == (5, 10, 1)


@pytest.mark.parametrize("group_size", [1, 2])
@pytest.mark.parametrize("order", ["reference", "ascending"])
@pytest.mark.parametrize("samples", [6, 7])
def test_what_torch_compile_gets_is_csp(group_size, order, samples):
    case = Case(2, samples, 4, group_size)
    v_bnc, steps = case.values(0), case.shift_steps()
    expected = shiftsort.csp(v_bnc, steps, group_size, order=order)
    assert torch.equal(plain_csp(v_bnc, steps, group_size, order == "ascending"), expected)


@pytest.mark.parametrize("group_size", [1, 2, 3, 5, 7, None])
def test_sorting_by_torch_is_csp_without_shift(group_size):
    v_bcn = Case(2, 7, 3).values(0, "channel-major")
    zeros = torch.zeros(3, dtype=torch.int64)
    expected = shiftsort.csp(v_bcn, zeros, group_size, order="ascending", dim=-1)
    assert torch.equal(sort_groups(v_bcn, group_size), expected)


@pytest.mark.parametrize("group_size", [1, 2, 3, None])
@pytest.mark.parametrize(
    "candidate",
    # Compiling takes long, and what is compiled has a test of its own.
    [c for c in permutations.candidates() if c.name != "torch.compile"],
    ids=lambda c: f"{c.name} {c.layout}",
)
def test_each_permutation_returns_what_it_must(candidate, group_size):
    case = Case(2, 7, 4, group_size)
    try:
        function = candidate.prepare(case)
    except Unsupported as reason:
        pytest.skip(str(reason))
    inputs = candidate.inputs(case, 0)
    assert is_right(function(*inputs), candidate.expected(case, inputs))


def test_plain_torch_beside_kernels_has_csps_gradient():
    case = Case(2, 7, 4, 3)
    v_bnc, other = case.values(0).requires_grad_(), case.values(0).requires_grad_()
    grad_y = case.values(1)
    shiftsort.csp(v_bnc, case.shift_steps(), 3).backward(grad_y)
    permutations._EagerCSP.apply(other, case.shift_steps(), 3, False).backward(grad_y)
    assert torch.equal(other.grad, v_bnc.grad)


def test_a_place_that_nobody_wrote_is_noticed():
    result = torch.tensor([1.0, torch.nan])
    assert not is_right(result, None)
    assert not is_right(result, torch.tensor([1.0, 2.0]))


def test_attention_is_not_begun_where_its_scores_do_not_fit():
    with pytest.raises(Unsupported, match="N x N scores need about"):
        attention.require("math", Case(64, 2**20, 512))


def test_attention_needs_whole_heads():
    with pytest.raises(Unsupported, match="60 channels do not split into 8 heads"):
        attention.require("flash", Case(1, 8, 60))


@pytest.mark.skipif(cub.find_nvcc() is None, reason="nvcc is not found")
def test_cub_compiles_for_every_length_it_promises(tmp_path, monkeypatch):
    import ctypes

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    library = ctypes.CDLL(str(cub.build(cub.find_nvcc(), "sm_90", torch.bfloat16)))
    lengths = {v.threads * v.items for v in cub.variants(library)}
    assert lengths == {1024, 2048, 4096, 8192, 16384}


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_cub_sorts(dtype):
    (candidate,) = cub.candidates()
    case = Case(2, 2048, 8, None, dtype, "cuda")
    try:
        sort = candidate.prepare(case)
    except Unsupported as reason:
        pytest.skip(str(reason))
    inputs = candidate.inputs(case, 0)
    assert is_right(sort(*inputs), candidate.expected(case, inputs))
