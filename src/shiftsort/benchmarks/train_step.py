"""Training steps a second and peak memory, of whole models.

A step is forward, loss, backward and Adam, with the dropout of training. It is timed by the wall's
clock, one step after the other as in training: what the host takes to launch kernels counts where
the device waits for it. With graphs, forward and backward are replayed as `shiftsort train` does.
The peak holds everything: parameters, gradients, what Adam keeps, and activations. Two rounds tell
whether the machine was quiet.
"""

import contextlib
import gc
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from shiftsort.training import graph

from . import clock, memory, record
from .measure import Effort
from .record import Row
from .trainees import Trainee

NORMAL = Effort(budget=2.0, least=5, most=200)
QUICK = Effort(budget=0.05, least=2, most=5)

_LEARNING_RATE = 1e-4
_CLASSES = 2  # what labels are drawn from: every model has as many


def measure(
    trainees: Iterable[Trainee],
    device: str,
    dtype: torch.dtype,
    effort: Effort,
    say: Callable[[str], None] = lambda text: None,
    graphs: bool = False,
) -> list[Row]:
    """One row for each; one that fails has the reason."""
    trainees = list(trainees)
    rows: list[Row] = [
        {
            "candidate": trainee.name,
            "layout": "",
            "shape": [trainee.batch, trainee.samples],
            "group_size": "any",
            "failed": None,
        }
        for trainee in trainees
    ]
    times: list[list[list[float]]] = [[] for _ in trainees]
    for number in range(effort.rounds):
        for trainee, row, by_round in zip(trainees, rows, times, strict=True):
            if row["failed"] is None:
                say(f"N = {trainee.samples}, round {number + 1}: {trainee.name}")
                row["failed"] = _attempt(trainee, row, by_round, device, dtype, effort, graphs)
    for row, by_round in zip(rows, times, strict=True):
        if row["failed"] is None:
            row["ms"] = {"step": record.summary(by_round)}
            row["steps_per_s"] = 1e3 / row["ms"]["step"]["median"]
            row["samples_per_s"] = row["steps_per_s"] * row["shape"][0]
    return rows


def _attempt(
    trainee: Trainee,
    row: Row,
    by_round: list[list[float]],
    device: str,
    dtype: torch.dtype,
    effort: Effort,
    graphs: bool,
) -> str | None:
    """The reason of a failure, if there is one."""
    try:
        if not by_round:
            _weigh(trainee, row, device, dtype, graphs)
        step = TrainStep(trainee, device, dtype, graphs)
        by_round.append(clock.sample_steps(step, device, effort.budget, effort.least, effort.most))
        return None
    except torch.OutOfMemoryError:
        return "out of memory"
    except Exception as error:  # whatever a model or a compiler throws is a result here
        first_line = (str(error).strip() or "no message").splitlines()[0]
        return f"{type(error).__name__}: {first_line[:160]}"
    finally:
        gc.collect()
        if device != "cpu":
            torch.cuda.empty_cache()


def _weigh(trainee: Trainee, row: Row, device: str, dtype: torch.dtype, graphs: bool) -> None:
    step = TrainStep(trainee, device, dtype, graphs)
    row["parameters"] = sum(p.numel() for p in step.model.parameters())
    step()  # what the first use of a kernel loads and keeps is not the model's
    loss = step().item()
    if not torch.isfinite(torch.tensor(loss)):
        raise ValueError(f"its loss is {loss}")
    del step

    def train() -> None:
        step = TrainStep(trainee, device, dtype, graphs)
        step()
        step()

    row["peak_bytes"] = {"step": memory.peak_bytes(train, device)}


class Loss(nn.Module):
    """A model's loss on a batch."""

    def __init__(self, model: nn.Module, device: str, dtype: torch.dtype) -> None:
        super().__init__()
        self.model = model
        self.precision = (
            contextlib.nullcontext()
            if dtype == torch.float32
            else torch.autocast(torch.device(device).type, dtype)
        )

    def forward(self, inputs: Tensor, labels_b: Tensor) -> Tensor:
        """Averaged over the batch."""
        with self.precision:
            return cross_entropy(self.model(inputs).float(), labels_b)


class TrainStep:
    """A model in training, and one batch."""

    def __init__(
        self, trainee: Trainee, device: str, dtype: torch.dtype, graphs: bool = False
    ) -> None:
        torch.manual_seed(0)
        self.model = trainee.build().to(device).train()
        inputs = trainee.inputs(self.model, trainee.batch).to(device)
        labels_b = torch.randint(_CLASSES, (trainee.batch,)).to(device)
        self.batch = (inputs, labels_b)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=_LEARNING_RATE, fused=True)
        self.loss = Loss(self.model, device, dtype)
        if graphs:
            reason = graph.reason_against(self.model, torch.device(device))
            if reason is not None:
                raise ValueError(reason)
            graph.capture(self.loss, self.batch)

    def __call__(self) -> Tensor:
        """The loss."""
        loss = self.loss(*self.batch)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()
