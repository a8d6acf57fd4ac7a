"""What the tests of single mixers share: dense attention, and a comparison of two definitions."""

import torch

from shiftsort import mixers

DIM, HEADS, BATCH = 12, 3, 2


def build(name, samples, **options):
    torch.manual_seed(0)
    options = {"heads": HEADS, "bias": True, **options}
    return mixers.build(name, dim=DIM, samples=samples, **options).double().eval()


def heads(x_bnc):
    """(B, N, C) -> (B, H, N, D)."""
    return x_bnc.view(*x_bnc.shape[:-1], HEADS, -1).transpose(1, 2)


def parts(mixer, x_bnc):
    """What the fused projection holds: queries, keys, values."""
    return [heads(part) for part in mixer.inner(x_bnc).chunk(mixer.parts, dim=-1)]


def softmax_attention(q_bhnd, k_bhnd, v_bhnd, keep=None):
    """With the whole map written out. `keep`: which pairs there are, broadcast to (B, H, N, N)."""
    scores = q_bhnd @ k_bhnd.transpose(-1, -2) / q_bhnd.shape[-1] ** 0.5
    if keep is not None:
        scores = scores.masked_fill(~keep, -torch.inf)
    return scores.softmax(dim=-1) @ v_bhnd


def agree(mixer, definition, samples, lengths=None, **tolerance):
    """The mixer equals `out(definition(x))` in its valid outputs and in every gradient.

    `definition(x_bnc, valid_bn)` gives (B, H, N, D).
    """
    torch.manual_seed(1)
    x_bnc = torch.randn(BATCH, samples, DIM, dtype=torch.float64, requires_grad=True)
    lengths = torch.full((BATCH,), samples) if lengths is None else torch.tensor(lengths)
    valid_bn = torch.arange(samples) < lengths[:, None]
    direction = torch.randn(int(valid_bn.sum()), DIM, dtype=torch.float64)

    def outcome(y_bnc):
        y = y_bnc[valid_bn]
        wanted = [x_bnc, *(p for p in mixer.parameters() if p.requires_grad)]
        return y, torch.autograd.grad((y * direction).sum(), wanted, allow_unused=True)

    torch.manual_seed(2)
    got = outcome(mixer(x_bnc, lengths))
    torch.manual_seed(2)
    wiped = x_bnc * valid_bn[..., None]
    want = outcome(mixer.out(definition(wiped, valid_bn).transpose(1, 2).flatten(2)))
    torch.testing.assert_close(got, want, **tolerance)
