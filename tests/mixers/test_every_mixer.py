"""What holds for every mixer. Read this first: it is all that the models rely on.

A mixer lets the samples of a sequence see each other. It is built by name and called with a batch
of sequences, (batch, samples, dim), which may be padded on the right to a common length:

    mixer = mixers.build("csp", dim=16, samples=40)
    y_bnc = mixer(x_bnc, lengths_b)  # of the shape of x_bnc; lengths_b may be left out

Every test below runs for every name, and for options that change what a mixer does. Whether a
mixer computes what its paper says is in the other files of this folder, each beside a definition.
"""

import pytest
import torch

from largest_tensor import largest_tensor_of_a_step
from shiftsort import mixers

DIM, SAMPLES, DEPTH = 16, 40, 3
LENGTHS = torch.tensor([40, 1, 23])

# So that 40 samples are many blocks.
SMALL = {
    "local": {"block": 4},
    "longformer": {"window": 6},
    "bigbird": {"block": 4},
    "sinkhorn": {"block": 4},
    "reformer": {"chunk": 4},
    "spade": {"window": 6},
}

# The same mixer on another path.
VARIANTS = {
    "csp, a complete sort": ("csp", {"group_size": None, "shift": "exponential"}),
    "csp, as released": ("csp", {"order": "ascending"}),
    "longformer, nothing global": ("longformer", {"global_samples": 0}),
    "sparse, strided": ("sparse", {"pattern": "strided"}),
    "synthesizer, dense": ("synthesizer", {"kind": "dense"}),
    "synthesizer, factorized dense": ("synthesizer", {"kind": "factorized_dense"}),
    "synthesizer, random": ("synthesizer", {"kind": "random"}),
}

# Those that weigh values by a map, of which dropout drops some weights.
WITH_A_MAP = (
    "mha", "local", "reformer", "sinkformer", "sparse", "sparse, strided", "sinkhorn",
    "linformer", "synthesizer", "longformer", "bigbird", "luna",
)  # fmt: skip

# A rounding may put a sample into another place or bucket, and what comes out is then another.
CHOOSES = {"csp", "sort", "reformer"}


def build(name, samples=SAMPLES, **options):
    """A small mixer, the middle layer of three; the same weights whenever it is asked for."""
    kind, chosen = VARIANTS.get(name, (name, {}))
    torch.manual_seed(0)
    options = {"heads": 2, **SMALL.get(kind, {}), **chosen, **options}
    return mixers.build(kind, dim=DIM, samples=samples, layer=1, depth=DEPTH, **options).eval()


def inputs(batch=3, samples=SAMPLES):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(batch, samples, DIM, generator=generator)


def run(mixer, *arguments):
    """The same random choices in each call, for the methods that make some."""
    torch.manual_seed(2)
    return mixer(*arguments)


def all_finite(*tensors):
    return all(torch.isfinite(tensor).all() for tensor in tensors if tensor is not None)


every_mixer = pytest.mark.parametrize("name", [*mixers.names(), *VARIANTS])


@every_mixer
def test_maps_samples_to_samples_of_the_same_width(name):
    y_bnc = run(build(name), inputs())
    assert y_bnc.shape == (3, SAMPLES, DIM)
    assert all_finite(y_bnc)


@every_mixer
def test_lets_samples_see_each_other(name):
    """What comes out elsewhere depends on the first sample."""
    x_bnc = inputs(batch=1).requires_grad_()
    run(build(name), x_bnc)[0, 1:].square().sum().backward()
    assert x_bnc.grad[0, 0].abs().sum() > 0


@every_mixer
@pytest.mark.parametrize("samples", [1, 2, 7, 1000])
def test_gradients_are_finite_at_any_length(name, samples):
    mixer = build(name, samples=1000)
    x_bnc = inputs(batch=2, samples=samples).requires_grad_()
    run(mixer, x_bnc).square().sum().backward()
    assert x_bnc.grad.abs().sum() > 0
    assert all_finite(x_bnc.grad, *(p.grad for p in mixer.parameters()))


@every_mixer
def test_what_is_longer_than_it_was_made_for_is_refused_or_mixed(name):
    mixer = build(name, samples=9)
    try:
        outcome = run(mixer, inputs(samples=10))
    except ValueError as refusal:
        outcome = str(refusal)
    if isinstance(outcome, str):
        assert "made for up to 9 samples, got 10; build it with a larger samples=" in outcome
    else:
        assert all_finite(outcome)


@every_mixer
def test_what_is_in_the_padding_changes_no_valid_output_and_no_gradient(name):
    mixer = build(name)
    valid_bn = mixers.valid_samples(SAMPLES, LENGTHS)
    answers = []
    for garbage in (0.0, 1e4, torch.inf, torch.nan):
        mixer.zero_grad()
        x_bnc = inputs().masked_fill(~valid_bn[..., None], garbage).requires_grad_()
        y_bnc = run(mixer, x_bnc, LENGTHS)
        y_bnc[valid_bn].square().sum().backward()
        assert torch.equal(x_bnc.grad[~valid_bn], torch.zeros_like(x_bnc.grad[~valid_bn]))
        weights = [p.grad for p in mixer.parameters() if p.grad is not None]
        answers.append([y_bnc[valid_bn], x_bnc.grad[valid_bn], *weights])
    for other in answers[1:]:
        torch.testing.assert_close(other, answers[0])


@every_mixer
def test_a_padded_sequence_is_mixed_as_if_it_stood_alone(name):
    mixer = build(name)
    x_bnc = inputs()
    together = run(mixer, x_bnc, LENGTHS)
    for b, length in enumerate(LENGTHS.tolist()):
        alone = run(mixer, x_bnc[b : b + 1, :length])
        torch.testing.assert_close(together[b : b + 1, :length], alone, rtol=1e-4, atol=1e-5)


@every_mixer
def test_lengths_that_say_nothing_is_padded_change_nothing(name):
    mixer = build(name)
    full = torch.full((3,), SAMPLES)
    torch.testing.assert_close(run(mixer, inputs(), full), run(mixer, inputs()))


@every_mixer
def test_an_empty_sequence_poisons_nobody(name):
    mixer = build(name)
    lengths = torch.tensor([SAMPLES, 0, 5])
    y_bnc = run(mixer, inputs(), lengths)
    y_bnc[0].sum().backward()
    assert all_finite(y_bnc[0], *(p.grad for p in mixer.parameters()))


@every_mixer
@pytest.mark.parametrize("how", ["weights", "autocast"])
def test_bfloat16_is_near_float32(name, how):
    mixer, x_bnc = build(name), inputs()
    valid_bn = mixers.valid_samples(SAMPLES, LENGTHS)
    if how == "weights":
        # What is judged is the arithmetic: a rounded frequency or decay is another kernel.
        mixer, x_bnc = mixer.bfloat16().float(), x_bnc.bfloat16().float()
    exact = run(mixer, x_bnc, LENGTHS)[valid_bn]
    if how == "weights":
        mixer, x_bnc = mixer.bfloat16(), x_bnc.bfloat16()
    x_bnc.requires_grad_()
    with torch.autocast("cpu", torch.bfloat16, enabled=how == "autocast"):
        y_bnc = run(mixer, x_bnc, LENGTHS)
    y_bnc[valid_bn].float().sum().backward()
    assert y_bnc.dtype == torch.bfloat16
    assert all_finite(y_bnc[valid_bn], x_bnc.grad, *(p.grad for p in mixer.parameters()))
    if VARIANTS.get(name, (name,))[0] not in CHOOSES:
        assert (y_bnc[valid_bn] - exact).norm() < 0.02 * exact.norm()


@every_mixer
def test_compiles_as_one_graph(name):
    torch.compiler.reset()  # graphs of other tests count against the limit of this one's
    mixer, x_bnc = build(name), inputs()
    compiled = torch.compile(mixer, fullgraph=True, backend="aot_eager")
    for training, lengths in ((False, None), (True, LENGTHS)):
        mixer.train(training)
        expected = run(mixer, x_bnc, lengths)
        got = run(compiled, x_bnc, lengths)
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
        got.sum().backward()


@every_mixer
def test_may_be_called_twice_before_the_gradient(name):
    """As by two layers that share it."""
    mixer = build(name).train()
    run(mixer, run(mixer, inputs(), LENGTHS), LENGTHS).sum().backward()
    assert all_finite(*(p.grad for p in mixer.parameters()))


@pytest.mark.parametrize("name", WITH_A_MAP)
def test_dropout_drops_weights_of_the_map_in_training_alone(name):
    plain, mixer = build(name), build(name, dropout=0.5)
    if name == "sinkhorn":
        plain.noise = mixer.noise = False
    assert torch.equal(run(mixer, inputs()), run(plain, inputs()))
    assert not torch.allclose(run(mixer.train(), inputs()), run(plain.train(), inputs()))


@every_mixer
def test_the_state_dict_holds_all_that_matters(name):
    mixer, other = build(name), build(name)
    with torch.no_grad():
        for tensor in mixer.state_dict().values():
            if tensor.is_floating_point():
                tensor.add_(0.1 * torch.randn_like(tensor))
    other.load_state_dict(mixer.state_dict())
    assert torch.equal(run(other, inputs()), run(mixer, inputs()))


def largest_tensor(name, samples):
    """Of a training step on a padded batch; nothing is allocated."""

    def step():
        kind, options = VARIANTS.get(name, (name, {}))
        mixer = mixers.build(kind, dim=DIM, samples=samples, heads=1, **options)
        x_bnc = torch.randn(1, samples, DIM, requires_grad=True)
        return mixer, x_bnc, torch.tensor([samples])

    return largest_tensor_of_a_step(step)


def is_quadratic(name):
    return "N^2" in mixers.about(VARIANTS.get(name, (name,))[0]).complexity


@pytest.mark.parametrize("name", [n for n in (*mixers.names(), *VARIANTS) if not is_quadratic(n)])
def test_what_is_not_quadratic_builds_no_square_map(name):
    samples = 16_384
    largest = largest_tensor(name, samples)
    assert samples * DIM <= largest.numel <= samples**2 // 8, largest


def test_a_square_map_would_be_seen():
    assert largest_tensor("sinkformer", 1024).numel >= 1024**2


@pytest.mark.parametrize("name", mixers.names())
def test_says_where_it_comes_from_and_what_it_costs(name):
    about = mixers.about(name)
    assert all((about.complexity, about.source, about.row, about.left_out))


@pytest.mark.parametrize("name", mixers.names())
def test_takes_the_common_options_and_names_its_own_when_one_is_unknown(name):
    common = {"heads", "channels", "dropout", "bias", "out_bias"}
    assert common <= set(mixers.options_of(name))
    wide = build(name, channels=2 * DIM, dropout=0.5, bias=True, out_bias=False).train()
    assert run(wide, inputs(), LENGTHS).shape == (3, SAMPLES, DIM)
    with pytest.raises(TypeError, match=r"takes no option 'hedas'; it takes: heads"):
        build(name, hedas=2)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match=r"no mixer is called 'mah'; did you mean 'mha'\?"):
        build("mah")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"dim": 0}, "dim must be an integer of at least 1, got 0"),
        ({"samples": 2.5}, "samples must be an integer of at least 1, got 2.5"),
        ({"samples": True}, "samples must be an integer of at least 1, got True"),
        ({"layer": -1}, "layer must be an integer of at least 0, got -1"),
        ({"layer": 3, "depth": 3}, "layer must be below depth, got layer=3 with depth=3"),
    ],
)
def test_wrong_sizes_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        mixers.build("mha", **{"dim": DIM, "samples": SAMPLES, **wrong})
