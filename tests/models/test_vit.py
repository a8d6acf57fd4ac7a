"""The paper's ViTs: their sizes to the printed digit, and that they run."""

import pytest
import torch

from shiftsort import mixers
from shiftsort.models import ViT, count_parameters, vit_cifar10, vit_cifar100, vit_s16

SMALL = {
    "image_size": 16,
    "patch_size": 4,
    "classes": 5,
    "dim": 16,
    "depth": 2,
    "heads": 2,
    "mlp_dim": 32,
}


@pytest.mark.parametrize(
    ("make", "width", "mha", "csp", "wide"),
    [
        (vit_cifar10, 512, "9.52", "6.38", "9.52"),
        (vit_cifar100, 512, "9.65", "6.50", "9.65"),
        (vit_s16, 384, "22.05", "18.50", "22.05"),
    ],
)
def test_parameters_are_the_papers(make, width, mha, csp, wide):
    def millions(*arguments, **options):
        with torch.device("meta"):
            return f"{count_parameters(make(*arguments, **options)) / 1e6:.2f}"

    assert millions("mha") == mha
    assert millions("csp") == millions("shift") == millions("sort") == csp
    assert millions("csp", mixer_options={"channels": 2 * width}) == wide


def test_a_patch_is_a_square_of_the_image():
    torch.manual_seed(0)
    vit = ViT(**SMALL).eval()
    convolution = torch.nn.Conv2d(3, 16, 4, stride=4)
    with torch.no_grad():
        convolution.weight.copy_(vit.patches.weight.view(16, 3, 4, 4))
        convolution.bias.copy_(vit.patches.bias)
    image = torch.randn(2, 3, 16, 16)
    seen = []
    vit.layers[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    vit(image)
    expected = convolution(image).flatten(2).transpose(1, 2) + vit.positions
    torch.testing.assert_close(seen[0], expected)


def test_layers_normalise_before_each_part_and_the_mean_is_normalised():
    torch.manual_seed(0)
    vit = ViT(**{**SMALL, "depth": 1}).eval()
    (layer,) = vit.layers
    for norm in (layer.mixer_norm, layer.mlp[0], vit.norm):
        torch.nn.init.normal_(norm.weight)
    image, seen = torch.randn(2, 3, 16, 16), []
    layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    logits = vit(image)
    x = seen[0] + layer.mixer(layer.mixer_norm(seen[0]))
    _, up, _, _, down, _ = layer.mlp
    x = x + down(torch.nn.functional.gelu(up(layer.mlp[0](x))))
    torch.testing.assert_close(logits, vit.head(vit.norm(x.mean(dim=1))))


@pytest.mark.parametrize("mixer", mixers.names())
def test_runs_and_learns_with_every_mixer(mixer):
    torch.manual_seed(0)
    vit = ViT(mixer=mixer, **SMALL)
    logits = vit(torch.randn(3, 3, 16, 16))
    assert logits.shape == (3, 5)
    logits.logsumexp(-1).sum().backward()
    for name, parameter in vit.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, f"{name} gets no gradient"
            assert torch.isfinite(parameter.grad).all(), name


def test_saves_loads_and_compiles(tmp_path):
    torch.manual_seed(0)
    vit, other = ViT(mixer="csp", **SMALL).eval(), ViT(mixer="csp", **SMALL).eval()
    torch.save(vit.state_dict(), tmp_path / "vit.pt")
    other.load_state_dict(torch.load(tmp_path / "vit.pt", weights_only=True))
    image = torch.randn(2, 3, 16, 16)
    assert torch.equal(other(image), vit(image))
    compiled = torch.compile(vit, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(image), vit(image))


def test_wrong_images_and_patches_are_named():
    with pytest.raises(ValueError, match=r"images must be \(batch, 3, 16, 16\), got shape"):
        ViT(**SMALL)(torch.zeros(1, 3, 8, 8))
    with pytest.raises(ValueError, match="patch_size must divide image_size=16, got 5"):
        ViT(**{**SMALL, "patch_size": 5})
