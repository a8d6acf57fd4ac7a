"""The stack of state-space layers, with mixers that need no length."""

import pytest
import torch

from shiftsort.models import Stack, count_parameters

SMALL = {
    "vocabulary": 9,
    "classes": 3,
    "samples": 20,
    "dim": 8,
    "depth": 2,
    "mixer": "mha",
    "mixer_options": {"heads": 2},
}
LENGTHS = torch.tensor([20, 7, 1])


def build(**options):
    torch.manual_seed(0)
    return Stack(**{**SMALL, **options})


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("prenorm", [True, False])
@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_padding_changes_nothing(norm, prenorm, training):
    stack = build(norm=norm, prenorm=prenorm).train(training)
    tokens = torch.randint(0, 9, (3, 20))
    others = torch.where(torch.arange(20) < LENGTHS[:, None], tokens, 8 - tokens)
    torch.testing.assert_close(stack(others, LENGTHS), stack(tokens, LENGTHS))
    if norm == "layer":
        torch.testing.assert_close(stack(tokens, LENGTHS)[1], stack(tokens[1:2, :7])[0])


@pytest.mark.parametrize("prenorm", [True, False])
def test_a_block_is_a_norm_a_mixer_and_the_way_round_it(prenorm):
    stack = build(prenorm=prenorm, norm="layer", depth=1).eval()
    tokens = torch.randint(0, 9, (2, 5))
    x, block = stack.embedding(tokens), stack.layers[0]
    read = block.norm(x, None) if prenorm else x
    x = x + block.inner(read)
    x = stack.norm(x, None) if prenorm else block.norm(x, None)
    torch.testing.assert_close(stack(tokens), stack.head(x.mean(dim=1)))


def test_the_embedding_can_be_normalised():
    stack = build(norm="layer", embedding_norm=True).eval()
    seen = []
    stack.layers[0].register_forward_pre_hook(lambda module, arguments: seen.append(arguments[0]))
    stack(torch.randint(0, 9, (3, 20)), LENGTHS)
    torch.testing.assert_close(seen[0].mean(dim=-1), torch.zeros(3, 20), atol=1e-5, rtol=0)
    assert build().embedding_norm is None


def test_two_towers_meet_in_four_parts():
    stack = build(towers=2).eval()
    tokens, lengths = torch.randint(0, 9, (3, 2, 20)), torch.tensor([[20, 3], [7, 7], [1, 20]])
    a, b = (stack.encode(tokens[:, i], lengths[:, i]) for i in (0, 1))
    features = torch.cat((a, b, a - b, a * b), dim=-1)
    torch.testing.assert_close(stack(tokens, lengths), stack.head.layers(features))
    mega = build(towers=2, hidden=6).eval()
    assert count_parameters(mega.head) == 16 * 6 + 6 + 6 * 3


def test_pixels_are_numbers_and_have_no_padding():
    stack = build(vocabulary=None, pixels=(0.25, 0.5)).eval()
    tokens = torch.randint(0, 256, (3, 20))
    assert torch.equal(stack(tokens, LENGTHS), stack(tokens))
    stack.embedding.register_forward_hook(lambda module, args, out: seen.append(args[0]))
    seen = []
    stack(tokens)
    torch.testing.assert_close(seen[0][..., 0], (tokens / 255 - 0.25) / 0.5)


def test_tied_dropout_drops_a_channel_at_all_samples():
    x = torch.ones(4, 20, 8)
    tied, free = (build(dropout=0.5, tied_dropout=t).layers[0].dropout(x) for t in (True, False))
    assert torch.equal(tied, tied[:, :1].expand_as(tied))
    assert not torch.equal(free, free[:, :1].expand_as(free))
    assert {0.0, 2.0} == set(tied.unique().tolist())


def test_a_feed_forward_part_stands_behind_each_mixer():
    plain, fed = build(norm="layer"), build(norm="layer", mlp_dim=12)
    part = 8 * 12 + 12 + 12 * 8 + 8 + 2 * 8
    assert count_parameters(fed) - count_parameters(plain) == 2 * part
    fed(torch.zeros(2, 20, dtype=torch.int64), torch.tensor([20, 3])).sum().backward()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"norm": "group"}, "norm must be one of layer, scale, rms, batch, syncbatch, got 'group'"),
        ({"towers": 3}, "towers must be one of 1, 2, got 3"),
    ],
)
def test_wrong_options_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        build(**wrong)
    with pytest.raises(ValueError, match="up to 20 samples, got 21; build the model with a larger"):
        build()(torch.zeros(1, 21, dtype=torch.int64))
