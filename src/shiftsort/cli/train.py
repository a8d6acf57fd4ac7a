"""`shiftsort train`: a recipe becomes a run folder."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import errors, making
from .options import DataOption, DebugOption

if TYPE_CHECKING:
    from shiftsort.recipes import Recipe


def _complete(incomplete: str) -> list[str]:
    from shiftsort import recipes

    return [name for name in recipes.names() if name.startswith(incomplete)]


def train(
    recipe: Annotated[
        str | None,
        typer.Argument(help="See `shiftsort recipes`.", autocompletion=_complete),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Change a field; may be repeated."),
    ] = None,
    data: DataOption = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The run folder (default: runs/RECIPE-SEED)."),
    ] = None,
    devices: Annotated[int, typer.Option(min=1, help="GPUs (or processes) of a node.")] = 1,
    nodes: Annotated[int, typer.Option(min=1, help="Machines, under SLURM or torchrun.")] = 1,
    strategy: Annotated[
        str, typer.Option(help="ddp, or fsdp to spread the weights over the devices.")
    ] = "ddp",
    compiled: Annotated[bool, typer.Option("--compile", help="torch.compile the model.")] = False,
    graphs: Annotated[
        bool | None,
        typer.Option("--graphs/--no-graphs", help="CUDA graphs (default: wherever they can be)."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of weights, order and dropout (default: the recipe's).")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Go on with a run that was stopped.")
    ] = None,
    debug: DebugOption = False,
) -> None:
    """Train a recipe, or go on with a run.

    The run folder has the recipe, the environment, metrics.csv, TensorBoard's events, checkpoints,
    and at the end weights.safetensors and result.json.

    Exit codes: 0 done, 1 it could not be done, 2 the command is wrong, 130 interrupted.
    """
    with errors.one_line("train", debug=debug, code=errors.WRONG):
        from shiftsort import recipes

        if strategy not in ("ddp", "fsdp"):
            raise ValueError(f"--strategy is {strategy!r}, expected ddp or fsdp")
        words = list(settings or ())
        if seed is not None:
            words.append(f"seed={seed}")
        if resume is None and recipe is None:
            raise ValueError("name a recipe (see: shiftsort recipes), or a run with --resume RUN")
        if resume is not None and (words or out is not None):
            raise ValueError(
                "--resume takes the run as it was begun; leave --set, --seed and --out out"
            )
        chosen, overrides = (None, {})
        if recipe is not None:
            chosen, overrides = recipes.override(recipes.get(recipe), words)

    with errors.one_line("train", debug=debug):
        run = resume or out or _default_run(chosen)
        machine = (devices, nodes, strategy, compiled, graphs)
        try:
            result = _train(chosen, overrides, data, run, resume is not None, machine)
        except KeyboardInterrupt:
            errors.say(f"shiftsort train: interrupted{_again(run)}")
            raise typer.Exit(errors.INTERRUPTED) from None
        if result is not None:
            _tell(run, result)


def _again(run: Path) -> str:
    if not (run / "recipe.json").exists():
        return ""
    saved = any((run / "checkpoints").glob("step-*"))
    how = "; go on" if saved else " before its first checkpoint; begin again"
    return f"{how} with: shiftsort train --resume {run}"


def _default_run(recipe: "Recipe") -> Path:
    return Path("runs") / f"{recipe.name.replace('/', '-')}-{recipe.seed}"


def _train(
    recipe: "Recipe | None",
    overrides: dict[str, Any],
    data: Path | None,
    run: Path,
    begun: bool,
    machine: tuple[int, int, str, bool, bool | None],
) -> dict[str, Any] | None:
    """The result, in the first process of several."""
    from shiftsort import training

    common = {
        "data": data,
        "machine": training.Machine(*machine, bar=sys.stderr.isatty()),
        "say": errors.say,
    }
    with making.bar("making the data") as heard:
        if begun:
            expected = None if recipe is None else recipe.name
            result = training.resume(run, expected=expected, making=heard, **common)
        else:
            assert recipe is not None
            command = "shiftsort " + shlex.join(sys.argv[1:])
            result = training.train(
                recipe, run, overrides=overrides, command=command, making=heard, **common
            )
    return result if training.is_first_process() else None


def _tell(run: Path, result: dict[str, Any]) -> None:
    test, paper = result["test"], result["paper"]
    words = [f"test top-1 {test['top1']:.2f} %"]
    if test["top5"] is not None:
        words.append(f"top-5 {test['top5']:.2f} %")
    if paper is not None:
        words.append(f"the paper {paper['top1']:.2f} %")
    words.append(f"{result['parameters']:,} parameters")
    words.append(f"{result['steps_per_second']:.1f} steps/s")
    print(f"{result['recipe']}: {', '.join(words)}")
    print(f"in {run}")
