"""Linear attention, cosFormer and Performer against the quadratic form of their kernels."""

import math

import pytest
import torch
from naive import agree, build, parts, softmax_attention

from shiftsort.mixers.performer import orthogonal_directions

N = 11


def normalised(weights_bhnn, valid_bn):
    weights_bhnn = weights_bhnn * valid_bn[:, None, None]
    return weights_bhnn / weights_bhnn.sum(dim=-1, keepdim=True).clamp(min=1e-6)


@pytest.mark.parametrize("lengths", [None, [N, 4]])
def test_linear_is_its_quadratic_form(lengths):
    mixer = build("linear", N)

    def definition(x, valid):
        q, k, v = parts(mixer, x)
        phi_q, phi_k = (torch.where(t > 0, t + 1, t.exp()) for t in (q, k))
        return normalised(phi_q @ phi_k.transpose(-1, -2), valid) @ v

    agree(mixer, definition, N, lengths, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("lengths", [None, [N, 4]])
def test_cosformer_is_its_quadratic_form(lengths):
    mixer = build("cosformer", N)

    def definition(x, valid):
        q, k, v = parts(mixer, x)
        n = torch.arange(N, dtype=torch.float64)
        distance = n[:, None] - n
        longest = valid.sum(dim=1)[:, None, None, None]
        near = torch.cos(math.pi / 2 * distance / longest)
        return normalised(q.relu() @ k.relu().transpose(-1, -2) * near, valid) @ v

    agree(mixer, definition, N, lengths, rtol=1e-5, atol=1e-6)


def test_performer_converges_to_softmax_attention():
    def error(features):
        mixer = build("performer", N, features=features).float()
        x = torch.randn(2, N, 12, generator=torch.Generator().manual_seed(3))
        valid = torch.arange(N) < torch.tensor([N, 6])[:, None]
        exact = softmax_attention(*parts(mixer, x), valid[:, None, None]).transpose(1, 2)[valid]
        return (mixer.attend(x, valid).transpose(1, 2)[valid] - exact).norm() / exact.norm()

    few, many = error(16), error(16_384)
    assert many < few / 8  # 32 is expected: the error falls as 1 / sqrt(features)
    assert many < 0.02


def test_performers_features_keep_float32_under_autocast():
    """Their logarithms are large: rounded to bfloat16 they would be off by per cents."""
    mixer = build("performer", N).float()
    x = 4 * torch.randn(2, N, 12, generator=torch.Generator().manual_seed(3))
    projected = mixer.project(x)
    mixer.project = lambda _: projected
    with torch.autocast("cpu", torch.bfloat16):
        inside = mixer.attend(x, None)
    assert torch.equal(inside, mixer.attend(x, None))


def test_performers_directions_are_orthogonal_and_of_gaussian_length():
    torch.manual_seed(0)
    directions = orthogonal_directions(4 * 64, 64).double()
    for block in directions.split(64):
        gram = block @ block.T
        torch.testing.assert_close(
            gram, gram.diagonal().diag(), rtol=0, atol=1e-4, check_dtype=False
        )
    squares = directions.square().sum(dim=1)
    assert abs(squares.mean() - 64) < 4 * math.sqrt(2 * 64 / 256)
    assert squares.std() > 5


def test_performer_redraws_in_training_alone_and_only_when_asked():
    x = torch.randn(1, N, 12, dtype=torch.float64)
    for redraw, training, changes in (
        (True, True, True),
        (True, False, False),
        (False, True, False),
    ):
        mixer = build("performer", N, redraw=redraw).train(training)
        before = mixer.directions_fd.clone()
        mixer(x)
        assert torch.equal(mixer.directions_fd, before) != changes
