"""Sinkformer and Synthesizer: maps that are written out."""

import pytest
import torch
from naive import agree, build, heads, parts

from shiftsort import mixers
from shiftsort.mixers.balance import balance

N = 9


def map_of(scores, valid):
    return scores.masked_fill(~valid[:, None, None], -torch.inf).softmax(dim=-1)


@pytest.mark.parametrize("lengths", [None, [N, 4]])
@pytest.mark.parametrize("kind", ["dense", "factorized_dense", "random", "factorized"])
def test_synthesizer_is_its_formula(kind, lengths):
    mixer = build("synthesizer", 12, kind=kind, rank=3)

    def definition(x, valid):
        (v,) = parts(mixer, x)
        if "dense" in kind:
            hidden = heads(x @ mixer.hidden.weight.T + mixer.hidden.bias).relu()
            scores = hidden @ mixer.rows.weight.T + mixer.rows.bias
            if kind == "factorized_dense":  # 12 samples: 4 times 3
                scores = torch.stack(
                    [scores[..., j // 3] * scores[..., 4 + j % 3] for j in range(N)], -1
                )
            scores = scores[..., :N]
        elif kind == "random":
            scores = mixer.map[None, :, :N, :N].expand(len(x), -1, -1, -1)
        else:
            product = torch.einsum("hnk,hkm->hnm", mixer.left, mixer.right)
            scores = product[None, :, :N, :N].expand(len(x), -1, -1, -1)
        return map_of(scores, valid) @ v

    agree(mixer, definition, N, lengths)


def test_synthesizer_has_no_queries_and_no_keys():
    mixer = mixers.build("synthesizer", dim=12, samples=N, heads=3, kind="random")
    assert {name: tuple(p.shape) for name, p in mixer.named_parameters()} == {
        "inner.weight": (12, 12),
        "map": (3, N, N),
        "out.weight": (12, 12),
        "out.bias": (12,),
    }


def test_an_unknown_kind_of_synthesizer_is_named():
    with pytest.raises(ValueError, match="kind must be one of dense, factorized_dense, random"):
        build("synthesizer", N, kind="x")


@pytest.mark.parametrize("lengths", [None, [N, 4]])
@pytest.mark.parametrize("iterations", [1, 2, 3])
def test_sinkformer_divides_rows_and_columns_in_turn(iterations, lengths):
    mixer = build("sinkformer", N, iterations=iterations)

    def definition(x, valid):
        q, k, v = parts(mixer, x)
        a = (q @ k.transpose(-1, -2) / 2.0).exp()
        a = a * valid[:, None, :, None] * valid[:, None, None, :]
        for iteration in range(iterations):
            total = a.sum(dim=-1 if iteration % 2 == 0 else -2, keepdim=True)
            a = a / total.clamp(min=1e-9)
        return a @ v

    agree(mixer, definition, N, lengths, rtol=1e-5, atol=1e-6)


def test_many_iterations_make_rows_and_columns_sum_to_one():
    torch.manual_seed(0)
    valid = torch.arange(N) < torch.tensor([N, 5])[:, None]
    a = balance(3 * torch.randn(2, N, N), 201, valid)
    torch.testing.assert_close(a.sum(dim=-1), valid.float())
    torch.testing.assert_close(a.sum(dim=-2), valid.float(), rtol=1e-4, atol=1e-4)
    assert (a >= 0).all()
