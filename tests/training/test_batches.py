"""Which samples each update sees, on which device, and what is drawn for it."""

import pytest
import torch

from shiftsort import tasks
from shiftsort.training import batches, computation


def _order(**options: int) -> batches.Order:
    return batches.Order(**{"samples": 50, "batch": 12, "seed": 3, **options})


def test_an_epoch_sees_each_sample_once_at_most_and_the_next_in_another_order() -> None:
    epochs = {0: [], 1: []}
    for epoch, indices in _order().share(0, 8):
        epochs[epoch] += indices.tolist()
    assert all(len(set(seen)) == len(seen) == 48 for seen in epochs.values())
    assert epochs[0] != epochs[1]


def test_devices_and_parts_share_the_same_batches() -> None:
    shares = [list(_order(parts=2, rank=rank, world=3).share(2, 6)) for rank in range(3)]
    assert [len(share) for share in shares] == [8, 8, 8]
    for update, (_, whole) in enumerate(_order().share(2, 6)):
        parts = [share[2 * update + part][1] for share in shares for part in range(2)]
        assert sorted(torch.cat(parts).tolist()) == sorted(whole.tolist())


@pytest.mark.parametrize("world", [1, 2, 3])
def test_every_sample_is_judged_once(world: int) -> None:
    shares = [list(batches.evaluation_share(23, 4, rank, world)) for rank in range(world)]
    assert len({len(share) for share in shares}) == 1
    counted = [i for share in shares for place, kept in share for i in place[kept].tolist()]
    assert sorted(counted) == list(range(23))


def test_indices_are_where_the_samples_are() -> None:
    """A copy of each batch's indices to a GPU would wait for all work before it."""
    split = tasks.Split(torch.empty(50, 4), torch.empty(50), torch.empty(50)).to("meta")
    seen = []
    split.batch = lambda indices: seen.append(indices.device.type) or (indices,) * 3
    list(batches.TrainBatches(split, _order(), 0, 2))
    list(batches.EvaluationBatches(split, 12, 0, 1))
    assert seen == ["meta"] * 7


@pytest.mark.parametrize(
    "device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)], ids=lambda name: name
)
def test_a_step_is_seeded_as_torch_seeds(device: str) -> None:
    where = torch.empty(0, device=device).device
    drawn = []
    for set_seed in (torch.manual_seed, lambda number: computation.set_seed(where, number)):
        torch.rand(5, device=device)
        set_seed(2**55 + 1)
        drawn.append((torch.rand(3, device=device), torch.rand(3)))
    assert all(torch.equal(one, other) for one, other in zip(*drawn, strict=True))
