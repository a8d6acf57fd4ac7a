"""Reformer: samples attend to those that hash into their bucket.

Shapes in names: r rounds of hashing, n samples, k chunks, m samples in a chunk, w = 2m keys.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import dropout, normalize, pad

from .mixer import About, HeadMixer, check_size

_SELF = -1e5


class Reformer(HeadMixer):
    """LSH attention: shared queries and keys, hashed by random rotations, sorted by bucket.

    The sorted samples are cut into chunks. A sample attends to those of its bucket that stand in
    its chunk or the one before it, to itself only if there is none, and in several rounds to the
    union. In evaluation the rotations are those last drawn in training.

    Args:
        chunk: samples in a chunk.
        rounds: rounds of hashing.
        buckets: 1, or an even number; default two for each chunk of the longest sequence.
    """

    about = About(
        complexity="C N log N",
        source="Kitaev et al. 2020, Reformer: the efficient transformer",
        row="LRA: Reformer",
        left_out="the causal form; reversible layers (a matter of the model, not of the mixer)",
    )
    made_to_length = True
    parts = 2

    def __init__(
        self,
        dim: int,
        *,
        chunk: int = 64,
        rounds: int = 4,
        buckets: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(dim, **options)
        self.chunk = check_size("chunk", chunk)
        self.rounds = check_size("rounds", rounds)
        buckets = check_size("buckets", buckets or 2 * -(-self.samples // chunk))
        if buckets > 1 and buckets % 2:
            raise ValueError(f"buckets must be 1 or even, got {buckets}")
        # Many buckets are two hashes of few: else the work would grow as N times N / chunk.
        root = 2 * math.ceil(buckets**0.5 / 2)
        self.factors = (buckets,) if buckets <= 128 else (root, root)
        self.padding = math.prod(self.factors)
        width = self.channels // self.heads
        for i, factor in enumerate(self.factors):
            shape = (self.heads, width, rounds, factor // 2)
            self.register_buffer(f"rotation_{i}", torch.randn(shape))

    def attend(self, x_bnc: Tensor, valid_bn: Tensor | None) -> Tensor:
        """Hash, sort, attend within chunks, put back, and weigh the rounds."""
        samples = x_bnc.shape[1]
        qk_bhnd, v_bhnd = self.project(x_bnc)
        bucket_bhrn = self._hash(qk_bhnd)
        if valid_bn is not None:
            bucket_bhrn = bucket_bhrn.masked_fill(~valid_bn[:, None, None], self.padding)
        missing = -samples % self.chunk
        bucket_bhrn = pad(bucket_bhrn, (0, missing), value=self.padding)
        qk_bhnd, v_bhnd = (pad(x, (0, 0, 0, missing)) for x in (qk_bhnd, v_bhnd))

        order_bhrn = bucket_bhrn.argsort(dim=-1, stable=True)
        place_bhrn = order_bhrn.argsort(dim=-1)
        y_bhrnd, weight_bhrn = self._attend_sorted(
            qk_bhnd, v_bhnd, bucket_bhrn, order_bhrn, place_bhrn
        )
        y_bhrnd = y_bhrnd.gather(3, _wide(place_bhrn, y_bhrnd.shape[-1]))
        weight_bhrn = weight_bhrn.gather(3, place_bhrn).softmax(dim=2)
        return (y_bhrnd * weight_bhrn[..., None].to(y_bhrnd.dtype)).sum(dim=2)[:, :, :samples]

    def _hash(self, qk_bhnd: Tensor) -> Tensor:
        bucket_bhrn = torch.zeros((), dtype=torch.int64, device=qk_bhnd.device)
        bucket_bhrn = bucket_bhrn.expand(*qk_bhnd.shape[:2], self.rounds, qk_bhnd.shape[2])
        for i, factor in enumerate(self.factors):
            rotation = self.get_buffer(f"rotation_{i}")
            if self.training:
                rotation.normal_()
            if factor > 1:
                turned = torch.einsum("bhnd,hdrf->bhrnf", qk_bhnd.detach(), rotation.to(qk_bhnd))
                bucket = torch.cat((turned, -turned), dim=-1).argmax(dim=-1)
                bucket_bhrn = bucket_bhrn * factor + bucket
        return bucket_bhrn

    def _attend_sorted(
        self,
        qk_bhnd: Tensor,
        v_bhnd: Tensor,
        bucket_bhrn: Tensor,
        order_bhrn: Tensor,
        place_bhrn: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Attention of each round in its own order, and the logarithm of its sum of weights."""
        rounds = self.rounds

        def in_chunks(x_bhrn: Tensor) -> Tensor:
            return x_bhrn.unflatten(3, (-1, self.chunk))

        def look_back(x: Tensor, fill: int = 0) -> Tensor:
            """Keys of a chunk: those of the one before it, then its own."""
            before = pad(x[:, :, :, :-1], (0, 0) * (x.dim() - 4) + (1, 0), value=fill)
            return torch.cat((before, x), dim=4)

        def in_order(x_bhnd: Tensor) -> Tensor:
            x_bhrnd = x_bhnd[:, :, None].expand(-1, -1, rounds, -1, -1)
            return in_chunks(x_bhrnd.gather(3, _wide(order_bhrn, x_bhnd.shape[-1])))

        q = in_order(qk_bhnd)
        k = look_back(normalize(q.float(), dim=-1, eps=1e-6).to(q.dtype))
        scores = (q @ k.transpose(-1, -2)).float() * q.shape[-1] ** -0.5  # b h r k m w

        # A pair that meets in several rounds counts once: its weight is shared among them.
        meetings = torch.zeros_like(scores, dtype=torch.int32)
        meets_now = torch.zeros_like(scores, dtype=torch.bool)
        this_round = torch.arange(rounds, device=q.device)[:, None, None, None]
        for other in range(rounds):
            bucket, chunk = (
                in_chunks(x[:, :, other : other + 1].expand_as(x).gather(3, order_bhrn))
                for x in (bucket_bhrn, place_bhrn // self.chunk)
            )
            step = chunk[..., None] - look_back(chunk, -2)[..., None, :]
            same = bucket[..., None] == look_back(bucket, -1)[..., None, :]
            meets = same & (step >= 0) & (step <= 1)
            meetings += meets
            meets_now |= meets & (this_round == other)
        itself = (
            in_chunks(order_bhrn)[..., None] == look_back(in_chunks(order_bhrn), -1)[..., None, :]
        )
        scores = (scores - meetings.clamp(min=1).log()).masked_fill(itself, _SELF)
        scores = scores.masked_fill(~meets_now, -torch.inf)

        total = scores.logsumexp(dim=-1, keepdim=True)
        weights = dropout((scores - total).exp(), self.attention_dropout).to(v_bhnd.dtype)
        y = weights @ look_back(in_order(v_bhnd))
        return y.flatten(3, 4), total.flatten(3)


def _wide(index: Tensor, channels: int) -> Tensor:
    return index[..., None].expand(*index.shape, channels)
