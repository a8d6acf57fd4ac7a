"""Attention to a few keys, against dense attention through the mask that says which."""

import pytest
import torch
from naive import BATCH, HEADS, agree, build, heads, parts, softmax_attention

from shiftsort import mixers
from shiftsort.mixers.balance import balance

SAMPLES = (1, 2, 7, 23)


def both_ways(samples):
    return [None, [samples, max(1, samples // 2)]]


def cases(test):
    every = [(samples, lengths) for samples in SAMPLES for lengths in both_ways(samples)]
    return pytest.mark.parametrize(("samples", "lengths"), every)(test)


def masked(mixer, allowed_nn):
    """Softmax attention to the valid ones among the allowed keys; `allowed_nn` may have heads."""

    def definition(x, valid):
        keep = allowed_nn & valid[:, None, None]
        # Queries in the padding may be left without keys, and do not matter.
        keep = keep | (~valid[:, None, :, None] & torch.eye(x.shape[1], dtype=torch.bool))
        return softmax_attention(*parts(mixer, x)[:3], keep)

    return definition


def distance(samples):
    n = torch.arange(samples)
    return (n[:, None] - n).abs()


@cases
def test_local_attends_within_its_block(samples, lengths):
    n = torch.arange(samples)
    mixer = build("local", 23, block=4)
    agree(mixer, masked(mixer, n[:, None] // 4 == n // 4), samples, lengths)


@pytest.mark.parametrize("global_samples", [0, 1, 5])
@cases
def test_longformer_attends_to_its_window_and_the_first_samples(samples, lengths, global_samples):
    mixer = build("longformer", 23, window=6, global_samples=global_samples)
    n = torch.arange(samples)
    seen = (distance(samples) <= 3) | (n < global_samples)

    def definition(x, valid):
        y = masked(mixer, seen)(x, valid)
        if not global_samples:
            return y
        q = heads(mixer.global_query(x))
        k, v = (heads(part) for part in mixer.global_context(x).chunk(2, dim=-1))
        everything = softmax_attention(q, k, v, valid[:, None, None])
        return torch.where((n < global_samples)[:, None], everything, y)

    agree(mixer, definition, samples, lengths)


@pytest.mark.parametrize("random", [0, 2])
@cases
def test_bigbird_attends_to_window_ends_and_random_blocks(samples, lengths, random):
    """The last block is that of the sequence, whatever it is padded to."""
    size = 3
    mixer = build("bigbird", 23, block=size, random=random)
    block = torch.arange(samples) // size
    seen = torch.zeros(BATCH, HEADS, samples, samples, dtype=torch.bool)
    for b, length in enumerate(lengths or [samples] * BATCH):
        last = (length - 1) // size
        ends = (block == 0) | (block == last)
        seen[b] |= ((block[:, None] - block).abs() <= 1) | ends | ends[:, None]
        chosen, fresh = (
            x[0] for x in mixer._random_blocks(int(block[-1]) + 1, torch.tensor([last]))
        )
        for h in range(HEADS):
            for i in range(1, last):
                for target in chosen[h, i][fresh[h, i]]:
                    seen[b, h] |= (block[:, None] == i) & (block == target)
    agree(mixer, masked(mixer, seen), samples, lengths)


def test_bigbirds_random_blocks_are_new_ones_and_differ_from_head_to_head():
    mixer = build("bigbird", 96, block=3, random=3)
    lasts = torch.tensor([31, 20])
    chosen, fresh = mixer._random_blocks(32, lasts)
    for b, last in enumerate(lasts.tolist()):
        assert fresh[b, :, 1:last].all()
        for h in range(HEADS):
            for i in range(1, last):
                picks = set(chosen[b, h, i].tolist())
                assert len(picks) == 3
                assert picks <= set(range(1, last)) - {i - 1, i, i + 1}
    assert not torch.equal(chosen[0, 0], chosen[0, 1])
    again = build("bigbird", 96, block=3, random=3).bfloat16()
    assert torch.equal(chosen, again._random_blocks(32, lasts)[0])
    other = mixers.build("bigbird", dim=12, samples=96, heads=3, block=3, layer=1, depth=2)
    assert not torch.equal(chosen, other._random_blocks(32, lasts)[0])


@pytest.mark.parametrize("summary", [1, 2])
@cases
def test_sparse_fixed_attends_to_its_block_and_to_all_summaries(samples, lengths, summary):
    mixer = build("sparse", 23, stride=4, summary=summary)
    n = torch.arange(samples)
    seen = (n[:, None] // 4 == n // 4) | (n % 4 >= 4 - summary)
    agree(mixer, masked(mixer, seen), samples, lengths)


@cases
def test_sparse_strided_attends_to_neighbours_and_multiples_of_the_stride(samples, lengths):
    mixer = build("sparse", 23, pattern="strided", stride=4)
    apart = distance(samples)
    agree(mixer, masked(mixer, (apart < 4) | (apart % 4 == 0)), samples, lengths)


def test_sparse_takes_the_root_of_the_length_as_its_stride():
    assert build("sparse", 1024).stride == 32


@cases
def test_sinkhorn_attends_to_its_block_and_to_the_one_sorted_to_it(samples, lengths):
    size = 4
    mixer = build("sinkhorn", 23, block=size)
    blocks = -(-samples // size)

    def definition(x, valid):
        q, k, v = parts(mixer, x)
        k, v = (t * valid[:, None, :, None] for t in (k, v))
        y = torch.zeros_like(q)
        for b in range(BATCH):
            length = int(valid[b].sum())
            used = -(-length // size)
            filled = torch.zeros(2, HEADS, used * size, 4, dtype=x.dtype)
            filled[:, :, :length] = torch.stack((k[b], v[b]))[:, :, :length]
            kb, vb = filled.unflatten(2, (used, size))
            scores = kb.sum(dim=2) @ mixer.sort.weight.T
            p = balance(scores[..., :used] / 0.75, 16).to(x.dtype)
            for block in range(used):
                own = slice(block * size, min(length, (block + 1) * size))
                places = min(length, size)
                k_sorted, v_sorted = (
                    sum(p[:, i, block, None, None] * t[:, i, :places] for i in range(used))
                    for t in (kb, vb)
                )
                y[b, :, own] = softmax_attention(
                    q[b, :, own],
                    torch.cat((k[b, :, own], k_sorted), dim=1),
                    torch.cat((v[b, :, own], v_sorted), dim=1),
                )
        return y

    assert mixer.sort.out_features >= blocks
    agree(mixer, definition, samples, lengths, rtol=1e-5, atol=1e-6)


def test_sinkhorn_sorts_with_noise_in_training_alone_and_only_when_asked():
    x = torch.randn(1, 23, 12, dtype=torch.float64)
    for noise, training in ((True, True), (True, False), (False, True)):
        mixer = build("sinkhorn", 23, block=4, noise=noise).train(training)
        assert torch.equal(mixer(x), mixer(x)) != (noise and training)


@pytest.mark.parametrize("rounds", [1, 3])
def test_reformer_is_full_attention_when_one_bucket_and_one_chunk_hold_all(rounds):
    mixer = build("reformer", 23, chunk=32, buckets=1, rounds=rounds)

    def definition(x, valid):
        qk, v = parts(mixer, x)
        others = ~torch.eye(23, dtype=torch.bool)
        return softmax_attention(qk, qk / qk.norm(dim=-1, keepdim=True), v, others)

    agree(mixer, definition, 23, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("buckets", [2, 4, 200])
@pytest.mark.parametrize("rounds", [1, 3])
@cases
def test_reformer_attends_to_the_union_of_its_buckets(samples, lengths, rounds, buckets):
    chunk = 4
    mixer = build("reformer", 23, chunk=chunk, buckets=buckets, rounds=rounds)

    def hashed(qk_nd, h, r):
        total = 0
        for i, factor in enumerate(mixer.factors):
            turned = qk_nd @ mixer.get_buffer(f"rotation_{i}")[h, :, r]
            total = total * factor + torch.cat((turned, -turned), dim=-1).argmax(dim=-1)
        return total.tolist()

    def definition(x, valid):
        qk, v = parts(mixer, x)
        keep = torch.zeros(*qk.shape[:2], samples, samples, dtype=torch.bool)
        for b in range(BATCH):
            for h in range(HEADS):
                for r in range(rounds):
                    length = int(valid[b].sum())
                    bucket = hashed(qk[b, h, :length], h, r)
                    order = sorted(range(length), key=lambda n: bucket[n])
                    place = {n: p // chunk for p, n in enumerate(order)}
                    for i in range(length):
                        for j in range(length):
                            near = place[i] - place[j] in (0, 1)
                            keep[b, h, i, j] |= near and bucket[i] == bucket[j]
        itself = torch.eye(samples, dtype=torch.bool)
        alone = (keep & ~itself).sum(dim=-1, keepdim=True) == 0
        keep = torch.where(alone, itself, keep & ~itself)
        return softmax_attention(qk, torch.nn.functional.normalize(qk, dim=-1), v, keep)

    agree(mixer, definition, samples, lengths, rtol=1e-5, atol=1e-6)


def test_reformer_draws_its_rotations_in_training_alone():
    mixer, x = build("reformer", 23), torch.randn(1, 23, 12, dtype=torch.float64)
    for training in (False, True):
        before = mixer.rotation_0.clone()
        mixer.train(training)(x)
        assert torch.equal(mixer.rotation_0, before) != training


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("local", {"block": 0}, "block must be an integer of at least 1, got 0"),
        ("longformer", {"window": 5}, "window must be even, got 5"),
        ("sparse", {"pattern": "x"}, "pattern must be one of fixed, strided, got 'x'"),
        ("reformer", {"buckets": 3}, "buckets must be 1 or even, got 3"),
    ],
)
def test_wrong_options_are_named(name, options, message):
    with pytest.raises(ValueError, match=message):
        build(name, 23, **options)
