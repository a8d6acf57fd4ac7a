"""Pathfinder: labels that a flood fill confirms, the published geometry, the same bytes always."""

import hashlib

import numpy as np
import pytest

from shiftsort import tasks
from shiftsort.tasks.chunks import in_order
from shiftsort.tasks.pathfinder import Pathfinder, PathX
from shiftsort.tasks.pathfinder_tables import GEOMETRIES, tables

pytest.importorskip("numba")
ndimage = pytest.importorskip("scipy.ndimage")

IN_PLANE = np.zeros((3, 3, 3), bool)
IN_PLANE[1] = True


def flood(pictures, places):
    """Which connected patch of light is at the place (y, x) of each picture; 0 in the dark."""
    patches, _ = ndimage.label(pictures > 0, IN_PLANE)
    return patches[np.arange(len(pictures)), places[:, 0], places[:, 1]]


@pytest.mark.parametrize("size", GEOMETRIES)
def test_a_flood_fill_confirms_the_labels(size):
    task = Pathfinder(size=size)
    labels = []
    for drawn in in_order(lambda chunk: task.draw(chunk, plain=True), range(4), workers=2):
        places = drawn.tips * (drawn.plains.shape[-1] // size)
        first, last = (
            np.stack([flood(drawn.plains[:, contour], places[:, tip]) for contour in (0, 1)])
            for tip in (0, 1)
        )
        joined = ((first > 0) & (first == last)).any(0)
        # A marker where the contours happen to cross is on both of them and decides nothing.
        clear = ((first > 0).sum(0) == 1) & ((last > 0).sum(0) == 1)
        assert clear.mean() > 0.98
        assert (joined == drawn.labels)[clear].all()
        labels.append(drawn.labels)
    labels = np.concatenate(labels)
    assert len(labels) == 1000
    assert labels.mean() == pytest.approx(0.5, abs=0.01)


def test_without_crossings_one_picture_of_both_contours_tells_the_label():
    drawn = Pathfinder(crossings=False).draw(0, plain=True)
    both = drawn.plains.max(axis=1)
    places = drawn.tips * (both.shape[-1] // 32)
    assert ((flood(both, places[:, 0]) == flood(both, places[:, 1])) == drawn.labels).all()


@pytest.mark.parametrize(("size", "light"), [(32, 20.16), (256, 2.945)])
def test_images_are_as_bright_as_the_published_ones(size, light):
    # Means of 2,000 and 60 images of the published generator.
    images = np.concatenate([Pathfinder(size=size).draw(chunk).images for chunk in range(4)])
    assert images.mean() == pytest.approx(light, rel=0.03)
    assert (images.reshape(len(images), -1).max(1) == 255).all()


def test_markers_are_the_brightest_spots():
    drawn = Pathfinder().draw(0)
    rows = np.arange(len(drawn.images))
    for tip in (0, 1):
        y, x = drawn.tips[:, tip].T
        assert (drawn.images[rows, y, x] > 200).all()


@pytest.mark.parametrize("size", GEOMETRIES)
def test_tables_are_drawn_as_they_ever_were(size):
    """Another Pillow that draws or blurs another way must not pass unseen."""
    digest = hashlib.sha256()
    for margin in GEOMETRIES[size].margins:
        made = tables(GEOMETRIES[size], margin)
        for array in (made.paddles, made.mask_pixels, made.markers):
            digest.update(array.tobytes())
    assert digest.hexdigest()[:16] == GOLDEN_TABLES[size]


GOLDEN_TABLES = {
    32: "1fdc6cfff49c87b7",
    64: "d41af3ef3e3d6428",
    128: "cdcf6e4d597ea6f4",
    256: "d2743fecaa6fcfb3",
}


def test_a_seed_is_a_promise():
    """Raise Pathfinder.version together with these."""
    images = Pathfinder().draw(0).images
    assert hashlib.sha256(images.tobytes()).hexdigest()[:16] == "50a517854c945413"


def test_the_same_bytes_for_any_number_of_workers(tmp_path):
    task = tasks.get("pathfinder", samples=1100)
    task.make(tmp_path / "one", workers=1)
    task.make(tmp_path / "four", workers=4)
    one, four = task.open(tmp_path / "one"), task.open(tmp_path / "four")
    assert one.manifest == four.manifest
    assert one.sizes == {"train": 880, "validation": 110, "test": 110}
    seen = [sample.inputs.numpy().tobytes() for split in one.splits.values() for sample in split]
    assert len(set(seen)) == 1100


def test_black_pixels_are_padding_only_on_request(tmp_path):
    tasks.get("pathfinder", samples=20).make(tmp_path)
    plain = tasks.load("pathfinder", tmp_path, samples=20)
    assert 250 < plain.manifest["notes"]["pairs of snakes grown for an image"] < 400
    masked = tasks.load("pathfinder", tmp_path, samples=20, black_is_padding=True)
    tokens = plain.split("train").batch([0, 1]).inputs
    assert plain.valid(tokens).all()
    assert (masked.valid(tokens) == (tokens > 0)).all()
    assert 0 < masked.valid(tokens).sum() < tokens.numel()


def test_path_x_is_pathfinder_at_128():
    assert PathX().facts().length == 16_384
    assert PathX().facts().image == Pathfinder(size=128).facts().image


@pytest.mark.parametrize("wrong", [{"size": 48}, {"difficulty": "harder"}])
def test_wrong_settings_name_the_right_ones(wrong):
    with pytest.raises(ValueError, match=r"expected size in \[32, 64, 128, 256\].*'hard'"):
        Pathfinder(**wrong)
