"""The loss of a step, and what it is told with."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from shiftsort import recipes, tasks
from shiftsort.tasks.vision import crop_and_flip
from shiftsort.training import computation


def _made(*words: str) -> computation.Computation:
    recipe, _ = recipes.override(recipes.get("digits/csp"), ["depth=1", "dim=16", *words])
    torch.manual_seed(0)
    return computation.Computation(recipe, tasks.get("digits").facts(), "float32")


def _batch() -> tuple[torch.Tensor, ...]:
    images = torch.randint(256, (6, 1, 8, 8), dtype=torch.uint8)
    return images, torch.full((6,), 64), torch.tensor([3, 1, 4, 1, 5, 9])


def test_sums_are_those_of_the_labels_that_count() -> None:
    images, lengths, labels = _batch()
    labels[2:] = tasks.NO_LABEL
    step = _made()
    loss, sums = step(images, lengths, labels, labels)
    logits = step.logits(images[:2], lengths[:2])
    torch.testing.assert_close(loss, cross_entropy(logits, labels[:2]))
    right = (logits.argmax(-1) == labels[:2]).sum()
    torch.testing.assert_close(sums, torch.stack((2 * loss.detach(), right, torch.tensor(2))))


def test_labels_are_smoothed_as_the_recipe_says() -> None:
    images, lengths, labels = _batch()
    step = _made("label_smoothing=0.2")
    expected = cross_entropy(step.logits(images, lengths), labels, label_smoothing=0.2)
    torch.testing.assert_close(step(images, lengths, labels, labels)[0], expected)


def test_samples_may_be_mixed() -> None:
    images, lengths, labels = _batch()
    step = _made()
    mixed = torch.rand(6, 10).softmax(-1)
    expected = cross_entropy(step.logits(images, lengths), mixed)
    torch.testing.assert_close(step(images, lengths, labels, mixed)[0], expected)


@pytest.mark.parametrize("augment", ["none", "crop-flip"])
def test_training_crops_and_judging_does_not(augment: str) -> None:
    images, lengths, labels = _batch()
    step = _made(f"augment={augment}")
    torch.manual_seed(7)
    loss, _ = step(images, lengths, labels, labels)
    cropped = crop_and_flip(images, torch.Generator().manual_seed(7))
    expected = cropped if augment == "crop-flip" else images
    torch.testing.assert_close(loss, cross_entropy(step.logits(expected, lengths), labels))
