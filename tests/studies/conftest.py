"""Subjects so small that a study of them takes no time."""

from collections.abc import Callable

import pytest
import torch

from shiftsort.models import ViT
from shiftsort.studies.subject import Subject


@pytest.fixture
def tiny() -> Callable[..., Subject]:
    def make(mixer: str, *, trained: bool = False, **options: object) -> Subject:
        sizes = {"image_size": 8, "patch_size": 2, "colours": 1, "classes": 10, "depth": 2}
        model = ViT(mixer=mixer, dim=12, heads=2, mlp_dim=12, mixer_options=options, **sizes)
        return Subject("tiny", mixer, trained, model.eval(), (torch.randn(3, 1, 8, 8),))

    return make
