"""The token mixers of the paper's tables, all with one signature.

    mixer = mixers.build("csp", dim=512, samples=1024, layer=0, depth=6)
    y_bnc = mixer(x_bnc, lengths_b)

A new mixer is a new file and a line in the table below.
"""

import difflib
import inspect
from typing import Any

from .bigbird import BigBird
from .ccnn import CCNN
from .cosformer import Cosformer
from .csp import CSPMixer
from .ets import ETS
from .linear import Linear
from .linformer import Linformer
from .local import Local
from .longformer import Longformer
from .luna import Luna
from .mha import MHA
from .mixer import About, Mixer, check_size, valid_samples
from .performer import Performer
from .reformer import Reformer
from .s4 import S4
from .s4d import S4D
from .s5 import S5
from .shift import Shift
from .sinkformer import Sinkformer
from .sinkhorn import Sinkhorn
from .sort import Sort
from .spade import Spade
from .sparse import Sparse
from .synthesizer import Synthesizer

_BY_NAME: dict[str, type[Mixer]] = {
    "mha": MHA,
    "csp": CSPMixer,
    "shift": Shift,
    "sort": Sort,
    "local": Local,
    "linear": Linear,
    "reformer": Reformer,
    "sinkformer": Sinkformer,
    "sparse": Sparse,
    "sinkhorn": Sinkhorn,
    "linformer": Linformer,
    "performer": Performer,
    "synthesizer": Synthesizer,
    "longformer": Longformer,
    "bigbird": BigBird,
    "cosformer": Cosformer,
    "luna": Luna,
    "s4": S4,
    "s4d": S4D,
    "spade": Spade,
    "s5": S5,
    "ets": ETS,
    "ccnn": CCNN,
}


def names() -> tuple[str, ...]:
    """Every mixer there is."""
    return tuple(_BY_NAME)


def about(name: str) -> About:
    """Where a mixer comes from, what it costs and what was left out."""
    return _class(name).about


def describe(name: str) -> str:
    """What a mixer does and what its own options mean."""
    return inspect.getdoc(_class(name)) or ""


def build(
    name: str, *, dim: int, samples: int | None, layer: int = 0, depth: int = 1, **options: Any
) -> Mixer:
    """A mixer by name.

    Args:
        name: one of `names()`.
        dim: width of what comes in and goes out.
        samples: the longest sequence that will come. Shorter ones may always come. None for "any",
            where the mixer is not made to a length.
        layer, depth: which layer of how many this is.
        options: what this mixer takes beyond that. Every one takes heads, channels, dropout, bias
            and out_bias.
    """
    kind = _class(name)
    if samples is None and kind.made_to_length:
        raise ValueError(f"mixer {name!r} is made to a length: samples must be given, got None")
    if samples is not None:
        check_size("samples", samples)
    check_size("dim", dim)
    check_size("depth", depth)
    check_size("layer", layer, 0)
    if layer >= depth:
        raise ValueError(f"layer must be below depth, got layer={layer} with depth={depth}")
    taken = options_of(name)
    for option in options:
        if option not in taken:
            raise TypeError(
                f"mixer {name!r} takes no option {option!r}; it takes: {', '.join(taken)}"
            )
    return kind(dim, samples=samples, layer=layer, depth=depth, **options)


def options_of(name: str) -> tuple[str, ...]:
    """What `build` takes for this mixer beyond dim, samples, layer and depth."""
    found: dict[str, None] = {}
    for ancestor in reversed(_class(name).__mro__):
        if issubclass(ancestor, Mixer) and "__init__" in vars(ancestor):
            for key, parameter in inspect.signature(ancestor).parameters.items():
                if parameter.kind is parameter.KEYWORD_ONLY:
                    found[key] = None
    withheld = {"samples", "layer", "depth", *_class(name).withheld}
    return tuple(key for key in found if key not in withheld)


def _class(name: str) -> type[Mixer]:
    if name in _BY_NAME:
        return _BY_NAME[name]
    near = difflib.get_close_matches(name, _BY_NAME, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"no mixer is called {name!r}; {hint}there are: {', '.join(_BY_NAME)}")


__all__ = ["About", "Mixer", "about", "build", "describe", "names", "options_of", "valid_samples"]
