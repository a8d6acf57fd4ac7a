"""One training step and one judgement of a batch, for Lightning.

What is random in a step follows from the seed and the step's number: a run that goes on draws what
the uninterrupted one would have drawn.
"""

from dataclasses import dataclass
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from .. import recipes, tasks
from . import build, graph, schedule, shards
from .batches import Counted, seed_of
from .computation import Computation, set_seed


@dataclass(frozen=True)
class Scores:
    """Loss, and accuracies in percent; top-5 means nothing with five classes or fewer."""

    loss: float
    top1: float
    top5: float | None


class TrainingModule(pl.LightningModule):
    """A recipe's model on its way from update `first` to `steps`."""

    def __init__(
        self,
        recipe: recipes.Recipe,
        facts: tasks.Facts,
        *,
        steps: int,
        updates_per_epoch: int,
        first: int = 0,
        precision: str = "float32",
        compiled: bool = False,
    ) -> None:
        super().__init__()
        self.recipe, self.facts = recipe, facts
        self.steps, self.updates_per_epoch, self.first = steps, updates_per_epoch, first
        self.precision = precision
        torch.manual_seed(recipe.seed)
        self.computation = Computation(recipe, facts, precision)
        if compiled:
            self.model.compile()
        self._to_capture = False
        self.validates = recipe.choose_on != "nothing"
        self.scores: Scores | None = None
        self._mix: Any = None
        if recipe.augment == "mix":
            from ..tasks import imagenet

            self._mix = imagenet.mix(facts.classes)

    @property
    def model(self) -> nn.Module:
        """What is trained, without its loss."""
        return self.computation.model

    def capture_steps(self, wanted: bool) -> None:
        """Whether the steps of the next training become CUDA graphs, at the first of them."""
        self._to_capture = wanted

    @property
    def step(self) -> int:
        """Updates done since the run began, before it was interrupted too."""
        return self.first + self.trainer.global_step

    def forward(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        """Logits of a task's batch."""
        return self.computation.logits(inputs, lengths)

    def configure_model(self) -> None:
        """Spread the model over the devices, where the strategy asks for it."""
        if self.device_mesh is not None:
            shards.spread(self.model, self.device_mesh)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam, its rate set before each step."""
        wanted = self.recipe.optimiser
        groups = build.parameter_groups(self.model, wanted)
        self._rates = [group["lr"] for group in groups]
        return torch.optim.AdamW(
            groups,
            betas=(wanted.beta1, wanted.beta2),
            eps=wanted.eps,
            fused=self.device.type == "cuda",
        )

    def rate(self, highest: float) -> float:
        """The learning rate of the update that is next, for a group with this one."""
        return schedule.rate(
            self.recipe.schedule, highest, self.step, self.steps, self.updates_per_epoch
        )

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        """Set what the step draws from, and its learning rate."""
        self._seed_step(batch_idx)
        groups = self.trainer.optimizers[0].param_groups
        for group, highest in zip(groups, self._rates, strict=True):
            group["lr"] = self.rate(highest)

    def _seed_step(self, batch_idx: int) -> None:
        part = batch_idx % self.recipe.accumulate
        number = seed_of("step", self.recipe.seed, self.step, part, self.global_rank)
        set_seed(self.device, number)

    def training_step(self, batch: tasks.Batch, batch_idx: int) -> dict[str, Tensor]:
        """The loss, and what it adds to the course of the training."""
        inputs, targets = batch.inputs, batch.labels
        if self._mix is not None:
            inputs, targets = self._mix(inputs, targets)
        arguments = (inputs, batch.lengths, batch.labels, targets)
        if self._to_capture:
            graph.capture(self.computation, arguments)
            self._to_capture = False
            # As if nothing had been drawn while it was captured.
            self._seed_step(batch_idx)
        loss, sums = self.computation(*arguments)
        # Lightning divides what it calls the loss by the parts of a batch; the sums stay. A graph
        # makes them ask for a gradient, and added up they would keep every step.
        return {"loss": loss, "sums": sums.detach()}

    def on_validation_epoch_start(self) -> None:
        self._begin()

    def on_test_epoch_start(self) -> None:
        self._begin()

    def validation_step(self, batch: Counted, batch_idx: int) -> None:
        self._judge(batch)

    def test_step(self, batch: Counted, batch_idx: int) -> None:
        self._judge(batch)

    def on_validation_epoch_end(self) -> None:
        self._finish()

    def on_test_epoch_end(self) -> None:
        self._finish()

    def _begin(self) -> None:
        # Some mixers draw when they are judged too.
        torch.manual_seed(seed_of("judge", self.recipe.seed))
        self._sums = torch.zeros(4, dtype=torch.float64, device=self.device)

    def _judge(self, batch: Counted) -> None:
        logits = self(batch.inputs, batch.lengths).float()
        labels = batch.labels.clone()
        labels[~batch.counted] = tasks.NO_LABEL
        logits, labels = logits.flatten(0, -2), labels.flatten()
        places = logits.topk(min(5, logits.shape[-1]), dim=-1).indices == labels[:, None]
        self._sums += torch.stack(
            (
                cross_entropy(logits, labels, reduction="sum", ignore_index=tasks.NO_LABEL),
                places[:, 0].sum(),
                places.sum(),
                (labels != tasks.NO_LABEL).sum(),
            )
        )

    def _finish(self) -> None:
        sums = self.trainer.strategy.reduce(self._sums, reduce_op="sum")
        loss, top1, top5, total = sums.tolist()
        self.scores = Scores(
            loss / total,
            100 * top1 / total,
            100 * top5 / total if self.facts.classes > 5 else None,
        )
