"""What a recipe is: plain data that says everything about a run but where it happens."""

from dataclasses import dataclass, field
from typing import Any, Literal


class RecipeError(ValueError):
    """A recipe asks for what cannot be: no such name or field, a wrong type, what does not fit."""


@dataclass(frozen=True)
class Paper:
    """What the paper prints for the row, in percent."""

    top1: float
    top5: float | None = None


@dataclass(frozen=True)
class ViT:
    """Sizes of `shiftsort.models.ViT`; the task gives the images and the classes."""

    patch_size: int
    dim: int
    depth: int
    heads: int
    mlp_dim: int
    mixer: str = "mha"
    mixer_options: dict[str, Any] = field(default_factory=dict)
    bias: bool = False
    dropout: float = 0.1
    embedding_dropout: float = 0.0
    kind: Literal["vit"] = "vit"


@dataclass(frozen=True)
class Encoder:
    """Sizes of `shiftsort.models.Encoder`; the task gives vocabulary, length and classes."""

    dim: int
    depth: int
    heads: int
    mlp_dim: int
    #: Width of queries, keys and values; None is `dim`.
    channels: int | None = None
    mixer: str = "mha"
    mixer_options: dict[str, Any] = field(default_factory=dict)
    positions: str = "sinusoidal"
    pool: str = "cls"
    dropout: float = 0.1
    attention_dropout: float = 0.1
    kind: Literal["encoder"] = "encoder"


@dataclass(frozen=True)
class Mega:
    """Sizes of `shiftsort.models.Mega`."""

    dim: int
    depth: int
    hidden: int
    z: int
    attention: str = "softmax"
    chunk: int | None = None
    #: group_size, shift and order, where `attention` is csp.
    csp: dict[str, Any] = field(default_factory=dict)
    norm: str = "layer"
    prenorm: bool = False
    truncation: int | None = 1024
    dropout: float = 0.1
    #: Gray values as numbers instead of tokens.
    pixels: bool = False
    kind: Literal["mega"] = "mega"


@dataclass(frozen=True)
class Stack:
    """Sizes of `shiftsort.models.Stack`."""

    dim: int
    depth: int
    mixer: str
    mixer_options: dict[str, Any] = field(default_factory=dict)
    norm: str = "batch"
    momentum: float = 0.1
    prenorm: bool = True
    final_norm: bool = True
    embedding_norm: bool = False
    mlp_dim: int | None = None
    hidden: int | None = None
    dropout: float = 0.0
    tied_dropout: bool = True
    #: Gray values as numbers instead of tokens.
    pixels: bool = False
    kind: Literal["stack"] = "stack"


def _apart() -> dict[str, float | None]:
    return {"A": None, "dt": None}


@dataclass(frozen=True)
class Optimiser:
    """Adam with decoupled weight decay; without decay that is plain Adam."""

    lr: float
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0
    #: Kinds of parameters, as mixers and norms name them, that do not decay; each has a rate of its
    #: own, on the same schedule, or with None that of all others.
    apart: dict[str, float | None] = field(default_factory=_apart)


@dataclass(frozen=True)
class Schedule:
    """How the learning rate goes, by the number of the update.

    "rsqrt" is lr / sqrt(max(step, warmup)) behind its warm-up, as Long Range Arena has it: its lr
    is not the highest rate that is reached. "linear" decays to 0, as "cosine" does in half a wave.
    """

    kind: Literal["constant", "cosine", "linear", "rsqrt"] = "constant"
    #: Updates that rise; with `warmup_epochs`, passes over the data instead.
    warmup: int = 0
    warmup_epochs: float = 0.0
    #: The rise is linear to the power of this.
    warmup_power: float = 1.0


@dataclass(frozen=True)
class Recipe:
    """A run: `shiftsort train NAME --set field=value`."""

    name: str
    #: The table it belongs to, and its row there.
    table: str
    row: str
    task: str
    model: ViT | Encoder | Mega | Stack
    optimiser: Optimiser
    #: Samples of one update, over all devices and all accumulated parts.
    batch: int
    paper: Paper | None = None
    #: Where the settings come from, and why they differ from the row they vary.
    about: str = ""
    schedule: Schedule = field(default_factory=Schedule)
    task_settings: dict[str, Any] = field(default_factory=dict)
    #: Updates; or passes over the training data, where `steps` is None.
    steps: int | None = None
    epochs: float | None = None
    #: Parts that each device's share of a batch is taken in, one after the other.
    accumulate: int = 1
    choose_on: Literal["validation", "test", "nothing"] = "validation"
    #: "crop-flip" is what CIFAR is trained with, "mix" is DeiT's MixUp or CutMix.
    augment: Literal["none", "crop-flip", "mix"] = "none"
    label_smoothing: float = 0.0
    #: The largest norm of the gradient; 0 is no limit.
    clip: float = 0.0
    #: Decay of an average of the weights, which is then what is tested; 0 is none.
    ema: float = 0.0
    #: "auto" is bfloat16 where there is a GPU and float32 elsewhere.
    precision: Literal["auto", "bfloat16", "float32"] = "auto"
    #: Updates from one look at the validation, and one checkpoint, to the next; None is a fortieth
    #: of the run.
    every: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.epochs is None):
            raise RecipeError(
                f"{self.name}: either steps or epochs must be given, got steps={self.steps} with "
                f"epochs={self.epochs}; set the other one to none"
            )
        for name, least in (("batch", 1), ("accumulate", 1), ("steps", 1), ("every", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise RecipeError(f"{name} must be at least {least}, got {value}")
        if self.epochs is not None and self.epochs <= 0:
            raise RecipeError(f"epochs must be above 0, got {self.epochs}")
        if not 0 <= self.ema < 1:
            raise RecipeError(f"ema must be at least 0 and below 1, got {self.ema}")
        if self.optimiser.lr <= 0:
            raise RecipeError(f"optimiser.lr must be above 0, got {self.optimiser.lr}")
        for kind, lr in self.optimiser.apart.items():
            if lr is not None and not lr >= 0:
                raise RecipeError(f"optimiser.apart must hold rates or none, got {kind}={lr!r}")
