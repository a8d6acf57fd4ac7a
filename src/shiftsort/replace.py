"""CSP, or any other mixer, into somebody else's model."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from . import mixers
from .mixers.csp import CSPMixer
from .mixers.mixer import HeadMixer
from .models.count import count_parameters


@dataclass(frozen=True)
class Replaced:
    """One attention that was replaced."""

    name: str
    layer: int
    heads: int
    parameters_before: int
    parameters_after: int


@dataclass(frozen=True)
class Report:
    """What `replace_attention` did."""

    mixer: str
    replaced: tuple[Replaced, ...]
    parameters_before: int
    parameters_after: int

    def __str__(self) -> str:
        lines = [
            f"{one.name}: {one.heads} heads, {one.parameters_before:,} parameters -> {self.mixer}, "
            f"layer {one.layer} of {len(self.replaced)}, {one.parameters_after:,} parameters"
            for one in self.replaced
        ]
        total = f"model: {self.parameters_before:,} -> {self.parameters_after:,} parameters"
        return "\n".join([*lines, total])


def replace_attention(
    model: nn.Module,
    mixer: str = "csp",
    *,
    samples: int | None = None,
    keep_weights: bool = False,
    **options: Any,
) -> Report:
    """Replace every `torch.nn.MultiheadAttention` in a model, in place.

    Args:
        model: a `torch.nn.TransformerEncoder`, or any module that uses `nn.MultiheadAttention` as
            self-attention.
        mixer: one of `shiftsort.mixers.names()`.
        samples: the longest sequence that will come. CSP does without, but then shifts by the
            length of each input, padding included: with it, a padded sequence is mixed as if it
            stood alone.
        keep_weights: whether the new mixer begins with the value and output projections of the old
            (and with those of queries and keys, where it has them).
        options: what the mixer takes, such as group_size and shift for CSP. Heads, dropout and
            biases are as before unless they are given; layer and depth are filled in.

    Returns:
        A report of what was replaced; print it.

    Key padding masks go on working, wherever the padding stands. Attention that is not
    self-attention is refused: here, before anything is changed, where the model shows it, else when
    it is called. So are attention masks, causal ones too: a permutation has no weights to mask, and
    for the same reason None takes the place of the weights that attention returns.
    """
    if isinstance(model, nn.MultiheadAttention):
        raise ValueError("model is itself an attention; give the module that holds it")
    found = [
        (name, module)
        for name, module in model.named_modules(remove_duplicate=False)
        if isinstance(module, nn.MultiheadAttention)
    ]
    if not found:
        raise ValueError(
            f"there is no torch.nn.MultiheadAttention in this {type(model).__name__}; "
            "attention of other libraries is not replaced yet"
        )
    _refuse_what_is_no_self_attention(model, found)

    before = count_parameters(model)
    # An attention that is used in several places stays one that is.
    distinct = list(dict.fromkeys(module for _, module in found))
    new = {
        attention: _mixer_for(
            attention,
            mixer,
            keep_weights,
            {"samples": samples, "layer": layer, "depth": len(distinct), **options},
        )
        for layer, attention in enumerate(distinct)
    }
    replaced = {}
    for name, attention in found:
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, new[attention])
        replaced[attention] = Replaced(
            name,
            distinct.index(attention),
            attention.num_heads,
            count_parameters(attention),
            count_parameters(new[attention]),
        )
    for module in model.modules():
        if isinstance(module, nn.TransformerEncoder):
            module.use_nested_tensor = False  # its fast path reads the weights of attention
    return Report(mixer, tuple(replaced.values()), before, count_parameters(model))


class SelfAttention(nn.Module):
    """A mixer that is called as `nn.MultiheadAttention` is.

    Returns (output, None): there are no attention weights to return.
    """

    # What torch's encoder layers look at before they take a path around this module.
    in_proj_bias = None
    _qkv_same_embed_dim = False

    def __init__(self, mixer: mixers.Mixer, attention: nn.MultiheadAttention) -> None:
        super().__init__()
        self.mixer = mixer
        self.batch_first = attention.batch_first
        self.num_heads = attention.num_heads
        self.embed_dim = attention.embed_dim

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, None]:
        """Mix the query, which must be the key and the value too."""
        if key is not query or value is not query:
            raise ValueError(
                "this attention was replaced as self-attention, but its key or value is another "
                "tensor than its query; keep torch.nn.MultiheadAttention here"
            )
        if attn_mask is not None or is_causal:
            raise ValueError(
                "this attention was replaced, and what replaced it has no attention map that a "
                "causal or other attn_mask could mask; keep torch.nn.MultiheadAttention here"
            )
        if query.is_nested:
            raise ValueError(
                "this attention was replaced, and what replaced it takes no nested tensors; "
                "pad them and give a key padding mask"
            )
        x_bnc = query if self.batch_first or query.dim() == 2 else query.transpose(0, 1)
        if query.dim() == 2:
            x_bnc = x_bnc[None]
            key_padding_mask = None if key_padding_mask is None else key_padding_mask[None]
        y_bnc = self._mix(x_bnc, key_padding_mask)
        if query.dim() == 2:
            return y_bnc[0], None
        return (y_bnc if self.batch_first else y_bnc.transpose(0, 1)), None

    def _mix(self, x_bnc: Tensor, padding_bn: Tensor | None) -> Tensor:
        if padding_bn is None:
            return self.mixer(x_bnc)
        if padding_bn.is_floating_point():
            padding_bn = padding_bn.isneginf()
        # Mixers want the padding on the right. It may be anywhere here, so what is valid goes to
        # the left, in its order, and back.
        order_bn = padding_bn.to(torch.uint8).argsort(dim=1, stable=True)
        lengths_b = (~padding_bn).sum(dim=1)
        y_bnc = self.mixer(_rearrange(x_bnc, order_bn), lengths_b)
        return _rearrange(y_bnc, order_bn.argsort(dim=1))


def _rearrange(x_bnc: Tensor, order_bn: Tensor) -> Tensor:
    return x_bnc.gather(1, order_bn[..., None].expand(x_bnc.shape))


def _refuse_what_is_no_self_attention(
    model: nn.Module, found: list[tuple[str, nn.MultiheadAttention]]
) -> None:
    decoders = [
        name
        for name, module in model.named_modules(remove_duplicate=False)
        if isinstance(module, nn.TransformerDecoderLayer)
    ]
    for name, attention in found:
        inside = next((d for d in decoders if d == "" or name.startswith(d + ".")), None)
        if inside is not None:
            raise ValueError(
                f"{name} is part of a decoder, whose attention is causal or looks at another "
                "sequence; give the encoder alone"
            )
        if not attention._qkv_same_embed_dim:
            raise ValueError(
                f"{name} is cross-attention: its keys have width {attention.kdim} and its values "
                f"{attention.vdim}, its queries {attention.embed_dim}"
            )
        if attention.bias_k is not None or attention.add_zero_attn:
            raise ValueError(f"{name} adds a key of its own (add_bias_kv or add_zero_attn)")


def _mixer_for(
    attention: nn.MultiheadAttention, name: str, keep_weights: bool, options: dict[str, Any]
) -> SelfAttention:
    usual = {
        "heads": attention.num_heads,
        "dropout": attention.dropout,
        "bias": attention.in_proj_bias is not None,
        "out_bias": attention.out_proj.bias is not None,
    }
    mixer = mixers.build(name, dim=attention.embed_dim, **{**usual, **options})
    if keep_weights:
        _copy_weights(attention, mixer, name)
    weight = attention.out_proj.weight
    mixer.to(device=weight.device, dtype=weight.dtype).train(attention.training)
    return SelfAttention(mixer, attention)


def _copy_weights(attention: nn.MultiheadAttention, mixer: mixers.Mixer, name: str) -> None:
    dim = attention.embed_dim
    if isinstance(mixer, CSPMixer):
        inner, rows = mixer.csp, slice(2 * dim, None)
    elif isinstance(mixer, HeadMixer) and mixer.parts == 3:
        inner, rows = mixer.inner, slice(None)
    else:
        raise ValueError(
            f"keep_weights: {name!r} has no projections that match those of the attention"
        )
    pairs = (
        (inner.weight, attention.in_proj_weight[rows]),
        (inner.bias, None if attention.in_proj_bias is None else attention.in_proj_bias[rows]),
        (mixer.out.weight, attention.out_proj.weight),
        (mixer.out.bias, attention.out_proj.bias),
    )
    with torch.no_grad():
        for new, old in pairs:
            if (new is None) != (old is None) or (new is not None and new.shape != old.shape):
                raise ValueError(
                    "keep_weights needs projections of the same width and with the same biases; "
                    "leave channels, bias and out_bias as they are"
                )
            if new is not None:
                new.copy_(old)
