"""Train a recipe into a run folder, go on with a run, and judge one again."""

import dataclasses
import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.utilities import rank_zero_only

from .. import recipes, tasks
from ..models import count_parameters
from . import build, checkpoints, folder, graph, shards
from .callbacks import Keeper, Recorder, Tested
from .data import TaskData, order_of, updates_of
from .errors import RunError
from .module import Scores, TrainingModule

#: Hears of samples that are made: how many, of how many.
Making = Callable[[int, int], None]

#: Rows of metrics.csv between two looks at the validation, and looks in a run.
_ROWS, _LOOKS = 5, 40


def _unseen(done: int, total: int) -> None:
    pass


def _unheard(message: str) -> None:
    pass


@dataclass(frozen=True)
class Machine:
    """Where a run happens; it decides nothing of what comes out but the last digits."""

    devices: int = 1
    nodes: int = 1
    strategy: str = "ddp"
    compiled: bool = False
    #: Whether steps are captured as CUDA graphs; None is wherever they can be.
    graphs: bool | None = None
    bar: bool = True

    @property
    def all_devices(self) -> int:
        """Of all nodes."""
        return self.devices * self.nodes


def train(
    recipe: recipes.Recipe,
    run: Path,
    *,
    data: Path | None = None,
    machine: Machine = Machine(),
    overrides: dict[str, Any] | None = None,
    command: str = "",
    say: Callable[[str], None] = print,
    making: Making = _unseen,
) -> dict[str, Any]:
    """Train from the start; returns what result.json says.

    `making` hears how far the data is, where it is made first.
    """
    opened = _open(recipe, data, machine, making)
    graphs = _graphs(recipe, opened, machine)
    if is_first_process():
        folder.require_fresh(run)
        checkpoints.require_room(run, _bytes(recipe, opened))
        folder.create(run, recipe, overrides or {}, command)
    return _run(recipe, run, opened, machine, graphs, None, overrides or {}, command, say)


def resume(
    run: Path,
    *,
    expected: str | None = None,
    data: Path | None = None,
    machine: Machine = Machine(),
    say: Callable[[str], None] = print,
    making: Making = _unseen,
) -> dict[str, Any]:
    """Go on with a run from its newest whole checkpoint, or from its start if there is none."""
    recipe, overrides = folder.read_recipe(run)
    command = folder.read_command(run)
    if expected not in (None, recipe.name):
        raise RunError(f"{run} is a run of {recipe.name}, not of {expected}")
    if (run / folder.RESULT).exists():
        raise RunError(
            f"{run} has ended: it has a {folder.RESULT}; judge it with: shiftsort evaluate {run}"
        )
    opened = _open(recipe, data, machine, making)
    graphs = _graphs(recipe, opened, machine)
    if is_first_process():
        checkpoints.require_room(run, _bytes(recipe, opened))
    else:
        say = _unheard
    checkpoint = checkpoints.newest(run, say)
    step = 0 if checkpoint is None else checkpoint.step
    say(f"{run}: going on behind update {step}" if step else f"{run}: starting again")
    return _run(recipe, run, opened, machine, graphs, checkpoint, overrides, command, say)


def is_first_process() -> bool:
    """True in the one of several processes that writes and speaks."""
    return rank_zero_only.rank == 0


def evaluate(
    run: Path,
    *,
    data: Path | None = None,
    split: str = "test",
    machine: Machine = Machine(),
) -> Scores:
    """The scores of a run's weights on a split."""
    recipe, _ = folder.read_recipe(run)
    weights = final_weights(run)
    opened = _open(recipe, data, machine)
    opened = dataclasses.replace(opened, splits={**opened.splits, "test": opened.split(split)})
    module = TrainingModule(
        recipe, opened.facts, steps=1, updates_per_epoch=1, precision=precision_of(recipe)
    )
    trainer = _trainer(machine, callbacks=[Tested(weights)])
    trainer.test(module, datamodule=TaskData(recipe, opened, 0, 0), verbose=False)
    assert module.scores is not None
    return module.scores


def precision_of(recipe: recipes.Recipe) -> str:
    """What "auto" is here."""
    if recipe.precision != "auto":
        return recipe.precision
    return "bfloat16" if torch.cuda.is_available() else "float32"


def _open(
    recipe: recipes.Recipe, data: Path | None, machine: Machine, making: Making = _unseen
) -> tasks.Data:
    """The recipe's samples, made now if they can be, when model and batch fit the task."""
    try:
        task = tasks.get(recipe.task, **recipe.task_settings)
        with torch.device("meta"):
            build.model(recipe, task.facts())
    except (TypeError, ValueError) as error:
        raise recipes.RecipeError(f"{recipe.name}: {error}") from None
    task.make(data, progress=making)
    opened = task.open(data, choose_on=recipe.choose_on)
    try:
        order_of(recipe, len(opened.split("train")), 0, machine.all_devices)
    except ValueError as error:
        raise recipes.RecipeError(f"{recipe.name}: {error}") from None
    return opened


def _bytes(recipe: recipes.Recipe, opened: tasks.Data) -> int:
    """Of the weights."""
    with torch.device("meta"):
        return 4 * count_parameters(build.model(recipe, opened.facts))


def _run(
    recipe: recipes.Recipe,
    run: Path,
    opened: tasks.Data,
    machine: Machine,
    graphs: bool,
    checkpoint: checkpoints.Checkpoint | None,
    overrides: dict[str, Any],
    command: str,
    say: Callable[[str], None],
) -> dict[str, Any]:
    samples = len(opened.split("train"))
    order = order_of(recipe, samples)
    steps = updates_of(recipe, samples)
    first = 0 if checkpoint is None else checkpoint.step
    every = recipe.every or max(steps // _LOOKS, 1)
    module = TrainingModule(
        recipe,
        opened.facts,
        steps=steps,
        updates_per_epoch=order.updates_per_epoch,
        first=first,
        precision=precision_of(recipe),
        compiled=machine.compiled,
    )
    module.capture_steps(graphs)
    parameters = count_parameters(module.model)
    keeper = Keeper(run, every, recipe.ema)
    if checkpoint is not None:
        keeper.resume(checkpoint)
    recorder = Recorder(run, max(every // _ROWS, 1), first, keeper, None if machine.bar else say)
    trainer = _trainer(
        machine,
        callbacks=[keeper, recorder, Tested(run / folder.WEIGHTS)],
        max_steps=steps - first,
        accumulate_grad_batches=recipe.accumulate,
        gradient_clip_val=recipe.clip or None,
        val_check_interval=every * recipe.accumulate if module.validates else 1.0,
        check_val_every_n_epoch=None if module.validates else 1,
        limit_val_batches=1.0 if module.validates else 0,
    )
    loaders = TaskData(recipe, opened, first, steps)
    if trainer.is_global_zero:
        where = f"{machine.all_devices} x " if machine.all_devices > 1 else ""
        say(
            f"{recipe.name}: {parameters:,} parameters, {steps - first:,} steps of {recipe.batch} "
            f"samples, {module.precision} on {where}{folder.device_name()}"
            f"{', as CUDA graphs' if graphs else ''}; in {run}"
        )
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    if first < steps:
        try:
            trainer.fit(module, datamodule=loaders)
        except SystemExit:  # what Lightning makes of Ctrl-C
            if trainer.interrupted:
                raise KeyboardInterrupt from None
            raise
    peak = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else None
    if trainer.is_global_zero:
        checkpoints.save_weights(run / folder.WEIGHTS, keeper.chosen)
    trainer.test(module, datamodule=loaders, verbose=False)
    about = folder.environment(command)
    result = {
        "format": 1,
        "recipe": recipe.name,
        "table": recipe.table,
        "row": recipe.row,
        "task": recipe.task,
        "paper": None if recipe.paper is None else vars(recipe.paper),
        "parameters": parameters,
        "seed": recipe.seed,
        "test": vars(module.scores),
        "validation": keeper.best,
        "chosen_on": recipe.choose_on,
        "steps": steps,
        "steps_published": updates_of(recipes.get(recipe.name), samples),
        "epochs": steps / order.updates_per_epoch,
        "steps_per_second": recorder.steps_per_second,
        "peak_memory_bytes": peak,
        "device": about["device"],
        "precision": module.precision,
        "date": about["date"],
        "versions": about["versions"],
        "commit": about["commit"],
        "command": command,
        "overrides": overrides,
    }
    if trainer.is_global_zero:
        folder.write_json(run / folder.RESULT, result)
    return result


def _graphs(recipe: recipes.Recipe, opened: tasks.Data, machine: Machine) -> bool:
    """Whether this run's steps are captured as CUDA graphs."""
    if machine.graphs is False:
        return False
    with torch.device("meta"):
        model = build.model(recipe, opened.facts)
    reason = graph.reason_against(
        model,
        torch.device("cuda" if torch.cuda.is_available() else "cpu"),
        devices=machine.all_devices,
        accumulate=recipe.accumulate,
        compiled=machine.compiled,
    )
    if machine.graphs and reason is not None:
        raise RunError(f"--graphs was given, and {reason}; leave it out")
    return reason is None


def _trainer(machine: Machine, **options: Any) -> pl.Trainer:
    _quiet()
    return pl.Trainer(
        accelerator="auto",
        devices=machine.devices,
        num_nodes=machine.nodes,
        strategy=_strategy(machine),
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
        **options,
    )


def _strategy(machine: Machine) -> Any:
    if machine.all_devices == 1:
        return "auto"
    if machine.strategy == "fsdp":
        return shards.strategy(machine.devices, machine.nodes)
    return machine.strategy


def final_weights(run: Path) -> Path:
    """The weights that a run ended with."""
    if not (run / folder.WEIGHTS).exists():
        folder.read_recipe(run)
        raise RunError(f"{run} has not ended; go on with it with: --resume {run}")
    return run / folder.WEIGHTS


def _quiet() -> None:
    """Lightning's advertisements and notes on its own settings; its errors stay."""
    for name in ("lightning.pytorch", "lightning.fabric", "pytorch_lightning"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module=r"lightning\..*")
