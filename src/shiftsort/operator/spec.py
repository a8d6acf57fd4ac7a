"""The paper's definition, in the plainest torch: the law that every other path is held against.

    y_c = P_c v_c,    P_c = T_c S_{J_c},    T_c = BlkDiag(T_c^(1), ..., T_c^(K))

S_J shifts N samples circularly by J steps. T_c^(k) permutes the k-th group of channel c: to the
order that channel 1 has in that group (`order="reference"`, the paper), or into ascending order
(`order="ascending"`, the authors' released code). The first channel of the paper is channel 0 here.

Slow on purpose: one matrix for each channel of each sequence. Read it beside the paper.
"""

import torch
from torch import Tensor


def shift_matrix(samples: int, step: int) -> Tensor:
    """S_J: row n holds its one in column n - J (mod N), so that sample n comes from n - J."""
    s_nn = torch.zeros(samples, samples, dtype=torch.int64)
    for n in range(samples):
        s_nn[n, (n - step) % samples] = 1
    return s_nn


def order_of(values: Tensor) -> Tensor:
    """Where the sample of each rank stands. Ties keep their order, NaN ranks last, -0.0 == 0.0."""
    return torch.sort(values, stable=True).indices


def sort_matrix(values: Tensor, reference: Tensor | None) -> Tensor:
    """T^(k) of one group: the sample of rank r goes where the reference has rank r.

    With no reference it goes to place r: ascending order.
    """
    size = len(values)
    target = torch.arange(size) if reference is None else order_of(reference)
    source = order_of(values)
    t_gg = torch.zeros(size, size, dtype=torch.int64)
    for rank in range(size):
        t_gg[target[rank], source[rank]] = 1
    return t_gg


def permutation_matrices(
    v_nc: Tensor, steps: Tensor, group_size: int | None, order: str = "reference"
) -> Tensor:
    """P_c for each channel of one sequence without padding: (C, N, N), ones and zeros."""
    samples, channels = v_nc.shape
    size = group_size if group_size is not None else max(samples, 1)
    p_cnn = torch.zeros(channels, samples, samples, dtype=torch.int64)
    for c in range(channels):
        s_nn = shift_matrix(samples, int(steps[c]))
        if c == 0 and order == "reference":
            p_cnn[c] = s_nn  # steps[0] is 0, so this is P_1 = I
            continue
        shifted = apply(s_nn, v_nc[:, c])
        t_nn = torch.zeros(samples, samples, dtype=torch.int64)
        for start in range(0, samples, size):
            group = slice(start, min(start + size, samples))
            reference = v_nc[group, 0] if order == "reference" else None
            t_nn[group, group] = sort_matrix(shifted[group], reference)
        p_cnn[c] = t_nn @ s_nn
    return p_cnn


def apply(p_nn: Tensor, values: Tensor) -> Tensor:
    """P v. As a selection and not as sums of products, where 0 * inf would spread a NaN."""
    return values[p_nn.argmax(dim=1)] if len(values) else values


def csp_spec(
    v_bnc: Tensor,
    steps: Tensor,
    group_size: int | None = 2,
    *,
    order: str = "reference",
    lengths: Tensor | None = None,
) -> Tensor:
    """CSP of a batch of sequences. Samples past a sequence's length pass through untouched."""
    y_bnc = v_bnc.clone()
    for b in range(v_bnc.shape[0]):
        valid = v_bnc.shape[1] if lengths is None else int(lengths[b])
        p_cnn = permutation_matrices(v_bnc[b, :valid].detach(), steps, group_size, order)
        for c in range(v_bnc.shape[2]):
            y_bnc[b, :valid, c] = apply(p_cnn[c], v_bnc[b, :valid, c])
    return y_bnc
