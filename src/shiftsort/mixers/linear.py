"""Linear attention: a kernel in place of the softmax, so that keys and values are summed once."""

from torch import Tensor
from torch.nn.functional import elu

from .mixer import About, HeadMixer, wipe_heads

_EPSILON = 1e-6


class Linear(HeadMixer):
    """phi(Q) (phi(K)^T V), each row divided by its sum of weights; phi(x) = elu(x) + 1."""

    about = About(
        complexity="C N D",
        source="Katharopoulos et al. 2020, Transformers are RNNs",
        row="LRA: LinearTrans",
        left_out="the causal form; attention dropout (there is no map to drop from)",
    )

    def attend(self, x_bnc: Tensor, valid_bn: Tensor | None) -> Tensor:
        """Sum phi(k) v^T over the samples once, read it out with every phi(q)."""
        q_bhnd, k_bhnd, v_bhnd = self.project(x_bnc)
        return kernel_attention(elu(q_bhnd) + 1, wipe_heads(elu(k_bhnd) + 1, valid_bn), v_bhnd)


def kernel_attention(q_bhnf: Tensor, k_bhnf: Tensor, v_bhnd: Tensor) -> Tensor:
    """Attention with the weights q k^T of nonnegative features f; padded keys are zero."""
    summed_bhfd = k_bhnf.transpose(-1, -2) @ v_bhnd
    weight_bhn1 = q_bhnf @ k_bhnf.sum(dim=-2)[..., None]
    return (q_bhnf @ summed_bhfd) / weight_bhn1.clamp(min=_EPSILON)
