"""Pixels are only moved, and red decides where to."""

import pytest
import torch
from PIL import Image

from shiftsort.studies import anatomy


@pytest.fixture
def photo():
    return torch.rand(4, 6, 3)


def test_each_channel_keeps_its_values_and_red_its_places(photo):
    found = anatomy.measure(photo)
    assert found.steps == [0, 8, 16]
    assert found.group_sizes == [0, 1, 6, 24]
    for size in found.group_sizes:
        mixed = anatomy.mixed(photo, found.steps, size)
        assert torch.equal(mixed[..., 0], photo[..., 0])
        assert torch.equal(
            mixed.flatten(0, 1).sort(dim=0).values, photo.flatten(0, 1).sort(dim=0).values
        )
    assert found.agreements[-1] == pytest.approx(1)
    assert found.agreements[1] < 0.9


def test_picture_and_film(photo, tmp_path):
    found = anatomy.measure(photo)
    assert len(anatomy.draw(found).axes) == 16
    film = tmp_path / "film.gif"
    anatomy.animate(found, film)
    with Image.open(film) as frames:
        assert (
            frames.n_frames == 1 + 8 + 5 + 1
        )  # as it is; shifted; by 2, 4, 8, 16 and all 24; the end


def test_the_photograph_is_at_hand():
    photo = anatomy.photograph()
    assert photo.shape == (48, 72, 3)
    assert 0 <= photo.min() < 0.1 < 0.9 < photo.max() <= 1
