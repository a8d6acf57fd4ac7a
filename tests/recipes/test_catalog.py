"""The bodies that `shiftsort models` lists are those that the recipes train."""

import pytest
import torch

from shiftsort import models, recipes, tasks
from shiftsort.models.catalog import Size, sizes
from shiftsort.training import build

pytest.importorskip("lightning")

_TASKS = {
    "CIFAR-10": "cifar10",
    "CIFAR-100": "cifar100",
    "ImageNet-1k": "imagenet",
    "ListOps": "listops",
    "Text": "text",
    "Retrieval": "retrieval",
    "Image": "image",
    "PathFind": "pathfinder",
    "Path-X": "pathx",
}


def _recipe(size: Size) -> str:
    task, attention = _TASKS[size.task], size.attention
    if size.body == "vit":
        return f"{task}/{attention.replace(', twice as wide', '-wide')}"
    if size.body == "encoder":
        return f"google/{task}/{attention}"
    if size.body == "mega":
        rows = {"csp": "csp"} | {f"{name}, chunks of {4096 if task == 'pathx' else 128}": "chunk"
                                 for name in ("softmax", "laplace")}  # fmt: skip
        return f"mega/{task}/{rows.get(attention, 'mega')}"
    return f"lra/{task}/{attention}"


#: There the paper's row is three times as wide as MEGA; the catalog has both in MEGA's width.
_WIDER = "mega/image/csp"


@pytest.mark.parametrize("size", [s for s in sizes() if _recipe(s) != _WIDER], ids=_recipe)
def test_the_catalog_has_the_body_of_the_recipe(size: Size) -> None:
    recipe = recipes.get(_recipe(size))
    with torch.device("meta"):
        model = build.model(recipe, tasks.get(recipe.task).facts())
    assert size.parameters() == models.count_parameters(model)
