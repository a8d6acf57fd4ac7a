"""What happens beside the training: the average of the weights, checkpoints, records, the bar."""

import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.loggers import TensorBoardLogger
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text
from torch import Tensor
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)

from . import checkpoints, shards
from .checkpoints import Checkpoint
from .folder import Metrics
from .module import TrainingModule

#: Whole tensors on the CPU of rank 0, however the model is spread.
_WHOLE = StateDictOptions(full_state_dict=True, cpu_offload=True)
_SPREAD = StateDictOptions(full_state_dict=True)

#: Seconds: how long the bar remembers speeds, and after how many a log without a bar gets a line.
_PATIENCE, _SILENCE = 600, 60


def whole_weights(module: TrainingModule) -> dict[str, Tensor]:
    """A copy of the weights as they are, on rank 0."""
    weights = get_model_state_dict(module.model, options=_WHOLE)
    return {name: tensor.clone() for name, tensor in weights.items()}


def load_weights(module: TrainingModule, weights: dict[str, Tensor]) -> None:
    """The reverse, on every rank."""
    set_model_state_dict(module.model, weights, options=_SPREAD)


class Average:
    """An exponential moving average of the parameters, which the judgements see."""

    def __init__(self, decay: float) -> None:
        self.decay = decay
        self.tensors: dict[str, Tensor] = {}

    def begin(self, module: TrainingModule) -> None:
        """Start from the parameters, unless it goes on."""
        trained = {name: p for name, p in module.model.named_parameters() if p.requires_grad}
        self.tensors = {
            name: shards.like(self.tensors.get(name, parameter), parameter)
            for name, parameter in trained.items()
        }
        self._latest = list(trained.values())

    def whole(self) -> dict[str, Tensor]:
        """All of it on the CPU; every device must ask for it."""
        return {name: shards.whole(tensor).cpu() for name, tensor in self.tensors.items()}

    @torch.no_grad()
    def update(self) -> None:
        """One update more."""
        torch._foreach_lerp_(list(self.tensors.values()), self._latest, 1 - self.decay)

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange the average with what is in training."""
        for averaged, parameter in zip(self.tensors.values(), self._latest, strict=True):
            latest = parameter.clone()
            parameter.copy_(averaged)
            averaged.copy_(latest)


class Keeper(pl.Callback):
    """Checkpoints, the weights to be chosen, and going on from a checkpoint."""

    def __init__(self, run: Path, every: int, ema: float) -> None:
        self.run, self.every = run, every
        self.average = Average(ema) if ema else None
        #: The weights to be tested: the best ones on the validation with their scores and step, or
        #: the last ones where nothing is chosen.
        self.chosen: dict[str, Tensor] = {}
        self.best: dict[str, float | None] | None = None
        self.seconds = 0.0
        #: How many of them this process spent on checkpoints.
        self.saving = 0.0
        self._resumed: Checkpoint | None = None
        self._saved = -1

    def resume(self, checkpoint: Checkpoint) -> None:
        """Go on from here when the training starts."""
        self._resumed = checkpoint
        self._saved = checkpoint.step
        self.chosen, self.best = checkpoint.chosen, checkpoint.state["best"]
        self.seconds = checkpoint.state["seconds"]
        if self.average is not None:
            self.average.tensors = checkpoint.state["average"]

    def on_train_start(self, trainer: pl.Trainer, module: TrainingModule) -> None:
        self._began = time.monotonic() - self.seconds
        if self._resumed is not None:
            load_weights(module, self._resumed.weights)
            optimiser = self._resumed.state["optimiser"]
            set_optimizer_state_dict(
                module.model, trainer.optimizers[0], optimiser, options=_SPREAD
            )
            self._resumed = None
        if self.average is not None:
            self.average.begin(module)

    def on_train_batch_end(
        self, trainer: pl.Trainer, module: TrainingModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self.seconds = time.monotonic() - self._began
        if (batch_idx + 1) % module.recipe.accumulate:
            return
        if self.average is not None:
            self.average.update()
        last = module.step == module.steps
        if module.validates:
            if last:  # Lightning looks at multiples alone; this makes the end one
                trainer.val_check_batch = batch_idx + 1
        elif last:
            self._swap()
            self.chosen = whole_weights(module)
            self._swap()
            self._save(trainer, module)
        elif module.step % self.every == 0:
            self._save(trainer, module)

    def on_validation_start(self, trainer: pl.Trainer, module: TrainingModule) -> None:
        self._swap()

    def on_validation_end(self, trainer: pl.Trainer, module: TrainingModule) -> None:
        # The first of equals stays.
        if self.best is None or module.scores.top1 > self.best["top1"]:
            self.chosen = whole_weights(module)
            self.best = {"step": module.step, **vars(module.scores)}
        self._swap()
        self._save(trainer, module)

    def _swap(self) -> None:
        if self.average is not None:
            self.average.swap()

    def _save(self, trainer: pl.Trainer, module: TrainingModule) -> None:
        if module.step == self._saved:
            return
        self._saved = module.step
        _wait(module.device)  # what is still to be computed is training
        began = time.monotonic()
        weights = whole_weights(module)
        optimiser = get_optimizer_state_dict(module.model, trainer.optimizers[0], options=_WHOLE)
        average = {} if self.average is None else self.average.whole()
        if trainer.is_global_zero:
            state = {
                "optimiser": optimiser,
                "best": self.best,
                "seconds": self.seconds,
                "average": average,
            }
            checkpoints.write(self.run, Checkpoint(module.step, weights, self.chosen, state))
        self.saving += time.monotonic() - began


class Tested(pl.Callback):
    """What is tested is a file, which rank 0 has written."""

    def __init__(self, weights: Path) -> None:
        self.weights = weights

    def on_test_start(self, trainer: pl.Trainer, module: TrainingModule) -> None:
        trainer.strategy.barrier()
        load_weights(module, checkpoints.load_weights(self.weights))


class _Bar(Progress):
    """The bar, and below it what is new: in one line they do not fit into 80 columns."""

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        for task in self.tasks:
            yield Text(task.fields["news"], no_wrap=True, overflow="ellipsis")


class Recorder(pl.Callback):
    """metrics.csv, TensorBoard, and the progress bar, or lines where `say` is given."""

    def __init__(
        self,
        run: Path,
        every: int,
        first: int,
        keeper: Keeper,
        say: Callable[[str], None] | None,
    ) -> None:
        self.run, self.every, self.keeper, self.say = run, every, keeper, say
        self.logger = TensorBoardLogger(
            run, name="", version="tensorboard", purge_step=first + 1 if first else None
        )
        #: Updates a second of this process, judgements and checkpoints left out.
        self.steps_per_second = 0.0

    def on_train_start(self, trainer: pl.Trainer, module: TrainingModule) -> None:
        self._zero = trainer.is_global_zero
        if self._zero:
            self._metrics = Metrics(self.run, module.first)
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
            )
            # A step may take a minute, and two of them must be seen to tell the speed.
            self._progress = _Bar(
                *columns, console=Console(stderr=True), speed_estimate_period=_PATIENCE
            )
            if self.say is None:
                self._progress.start()
            self._line = self._progress.add_task(
                module.recipe.name, total=module.steps, completed=module.first, news=""
            )
        self._news = {"train": "", "validation": ""}
        self._sums = torch.zeros(3, device=module.device)
        self._steps = self._shown = 0
        self._busy = 0.0
        self._mark = self._window = self._now()
        self._said = self._began = time.monotonic()

    def on_train_batch_start(
        self, trainer: pl.Trainer, module: TrainingModule, batch: Any, batch_idx: int
    ) -> None:
        if batch_idx == module.recipe.accumulate:  # the first update warms up
            _wait(module.device)
            self._steps, self._busy, self._mark = 0, 0.0, self._now()

    def on_train_batch_end(
        self, trainer: pl.Trainer, module: TrainingModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self._sums += outputs["sums"]
        if (batch_idx + 1) % module.recipe.accumulate:
            return
        self._steps += 1
        self._shown += 1
        # At 1, 2, 4, ... too: where steps are slow, it is soon seen that it learns.
        early = module.step & (module.step - 1) == 0
        if early or module.step % self.every == 0 or module.step == module.steps:
            self._record(trainer, module)
        elif self._zero:
            self._show(module, False)

    def _record(self, trainer: pl.Trainer, module: TrainingModule) -> None:
        loss, right, total = trainer.strategy.reduce(self._sums, reduce_op="sum").tolist()
        now = self._now()
        self._busy += now - self._mark
        self._mark = now
        self.steps_per_second = self._steps / max(self._busy, 1e-9)
        speed = self._shown * module.recipe.batch / max(now - self._window, 1e-9)
        self._sums.zero_()
        self._shown, self._window = 0, now
        self._write(
            module,
            lr=module.trainer.optimizers[0].param_groups[0]["lr"],
            samples_per_second=speed,
            train_loss=loss / total,
            train_top1=100 * right / total,
        )
        self._news["train"] = (
            f"loss {loss / total:.3f}  accuracy {100 * right / total:.1f} %  {speed:,.0f} samples/s"
        )
        last = module.step == module.steps
        self._show(module, not module.validates and (last or module.step % self.keeper.every == 0))

    def on_validation_start(self, trainer: pl.Trainer, module: TrainingModule) -> None:
        _wait(module.device)
        self._busy += self._now() - self._mark

    def on_validation_end(self, trainer: pl.Trainer, module: TrainingModule) -> None:
        scores = module.scores
        self._write(
            module,
            validation_loss=scores.loss,
            validation_top1=scores.top1,
            validation_top5=scores.top5,
        )
        self._news["validation"] = f"validation {scores.top1:.1f} %"
        self._show(module, True)
        self._mark = self._window = self._now()
        self._shown = 0

    def on_train_end(self, trainer: pl.Trainer, module: TrainingModule) -> None:
        self._stop()

    def on_exception(
        self, trainer: pl.Trainer, module: TrainingModule, exception: BaseException
    ) -> None:
        self._stop()

    def _now(self) -> float:
        """Seconds of a clock that stands still while a checkpoint is written."""
        return time.monotonic() - self.keeper.saving

    def _stop(self) -> None:
        if getattr(self, "_zero", False):
            if self.say is None:
                self._progress.stop()
            self._metrics.close()

    def _show(self, module: TrainingModule, milestone: bool) -> None:
        if not self._zero:
            return
        news = "  ".join(text for text in self._news.values() if text)
        if self.say is None:
            self._progress.update(self._line, completed=module.step, news=news)
            return
        now = time.monotonic()
        if milestone or now - self._said > _SILENCE:
            self._said = now
            done, left = module.step - module.first, module.steps - module.step
            time_left = timedelta(seconds=round((now - self._began) / done * left))
            self.say(
                f"{module.recipe.name}: step {module.step:,} of {module.steps:,}  {news}"
                + (f"  {time_left} left" if left else "")
            )

    def _write(self, module: TrainingModule, **values: float | None) -> None:
        if self._zero:
            epoch = module.step / module.updates_per_epoch
            seconds = self.keeper.seconds
            self._metrics.write(step=module.step, epoch=epoch, seconds=seconds, **values)
            numbers = {name: value for name, value in values.items() if value is not None}
            self.logger.log_metrics({"epoch": epoch, **numbers}, step=module.step)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
