"""How far tokens are from being all the same: the paper's rank-1 residual, exactly.

eps(X) = X - 1 x^T, with the x that makes a norm of the residual least. ||eps(X)||_{1,inf} is the
root of its least 1-norm (largest column sum) times its least infinity-norm (largest row sum), each
with an x of its own. The 1-norm's is the median of each column. The infinity-norm's is the answer
to a linear program: the middle of each column's range is it for a single channel, but for several
the largest sums of different rows pull against each other.

Shapes in names: n samples, c channels.
"""

import numpy as np
from scipy import sparse
from scipy.optimize import linprog
from torch import Tensor


def residual(x_nc: Tensor) -> float:
    """||eps(X)||_{1,inf}."""
    return (residual_1(x_nc) * residual_inf(x_nc)) ** 0.5


def residual_1(x_nc: Tensor) -> float:
    """The least ||X - 1 x^T||_1."""
    median = x_nc.quantile(0.5, dim=0, interpolation="lower")
    return float((x_nc - median).abs().sum(0).max())


def residual_inf(x_nc: Tensor) -> float:
    """The least ||X - 1 x^T||_inf."""
    x = x_nc.double().numpy()
    samples, channels = x.shape
    d = x - (x.max(0) + x.min(0)) / 2
    scale = np.abs(d).max()
    if scale == 0:
        return 0.0
    d = d / scale  # the solver's tolerance is absolute
    # Least t with |d_nc - x_c| <= e_nc and sum_c e_nc <= t, over t, x and e.
    none = sparse.csr_array((samples * channels, 1))
    x_of_row = sparse.kron(np.ones((samples, 1)), sparse.eye_array(channels))
    e = sparse.eye_array(samples * channels)
    sums = sparse.kron(sparse.eye_array(samples), np.ones((1, channels)))
    rows = sparse.block_array(
        [
            [none, -x_of_row, -e],
            [none, x_of_row, -e],
            [sparse.csr_array(-np.ones((samples, 1))), None, sums],
        ]
    )
    bounds = np.concatenate((-d.ravel(), d.ravel(), np.zeros(samples)))
    cost = np.zeros(rows.shape[1])
    cost[0] = 1
    solution = linprog(cost, rows.tocsr(), bounds, bounds=(None, None))
    if not solution.success:
        raise RuntimeError(f"the linear program was not solved: {solution.message}")
    return float(solution.fun * scale)
