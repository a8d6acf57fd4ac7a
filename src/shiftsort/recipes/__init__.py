"""Every row of the paper's tables as plain data, by a name one can type.

recipe = recipes.get("cifar10/csp")
recipe, changed = recipes.override(recipe, ["lr=3e-4", "depth=4"])
"""

import difflib
from collections.abc import Callable
from functools import partial

from .digits import ROWS as _DIGITS
from .digits import digits
from .lra import MIXERS as _MIXERS
from .lra import TASKS as _TASKS
from .lra import google, lra
from .mega import ROWS as _MEGA
from .mega import mega
from .mqar import ROWS as _MQAR
from .mqar import mqar
from .recipe import Encoder, Mega, Optimiser, Paper, Recipe, RecipeError, Schedule, Stack, ViT
from .settings import fields, from_plain, override, to_plain
from .ssm import ROWS as _SSM
from .ssm import ssm
from .vision import ANALYSIS_ROWS, analysis, cifar10, cifar100, imagenet
from .vision import ROWS as _VISION

__all__ = [
    "Encoder",
    "Mega",
    "Optimiser",
    "Paper",
    "Recipe",
    "RecipeError",
    "Schedule",
    "Stack",
    "ViT",
    "fields",
    "from_plain",
    "get",
    "names",
    "override",
    "to_plain",
]

_RECIPES: dict[str, Callable[[], Recipe]] = {
    **{f"digits/{row}": partial(digits, row) for row in _DIGITS},
    **{f"cifar10/{row}": partial(cifar10, row) for row in _VISION},
    **{f"cifar100/{row}": partial(cifar100, row) for row in _VISION},
    **{f"imagenet/{row}": partial(imagenet, row) for row in _VISION},
    **{f"analysis/{row}": partial(analysis, row) for row in ANALYSIS_ROWS},
    **{f"mqar/{row}": partial(mqar, row) for row in _MQAR},
    **{f"lra/{task}/{row}": partial(lra, task, row) for task in _TASKS for row in _MIXERS},
    **{f"lra/{task}/{row}": partial(ssm, task, row) for task in _TASKS for row in _SSM},
    **{f"mega/{task}/{row}": partial(mega, task, row) for task in _TASKS for row in _MEGA},
    **{f"google/{task}/{row}": partial(google, task, row) for task in _TASKS for row in _MIXERS},
}


def names(containing: str = "") -> tuple[str, ...]:
    """Every recipe whose name holds this."""
    return tuple(name for name in _RECIPES if containing in name)


def get(name: str) -> Recipe:
    """A recipe by name."""
    if name in _RECIPES:
        return _RECIPES[name]()
    near = difflib.get_close_matches(name, _RECIPES, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "see: shiftsort recipes"
    raise RecipeError(f"no recipe is called {name!r}; {hint}")
