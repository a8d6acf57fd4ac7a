"""Runs as one HTML page that opens without a network: tables, curves, speed against accuracy."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template

from . import chart
from .runs import Run
from .summary import Experiment, experiments, names
from .table import columns, steps_text

_TEMPLATE = Path(__file__).with_suffix(".html")
#: The same in all lines of a section, or told elsewhere on the page.
_NOT_SHOWN = ("task", "recipe")
#: A column on data that was held back, and the one on data that was trained on.
_CURVES = {
    "Accuracy": ("percent right", "validation_top1", "train_top1"),
    "Loss": ("loss, lower is better", "validation_loss", "train_loss"),
}


def write(path: Path, runs: Sequence[Run], **around: str) -> None:
    """One page about these runs, its folder made if need be; see `page`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(runs, **around), encoding="utf-8")


def page(runs: Sequence[Run], *, title: str = "", before: str = "", after: str = "") -> str:
    """The same as text; `before` and `after` are HTML around what is told of the runs."""
    by_task: dict[tuple[str, str], list[Experiment]] = {}
    for experiment in experiments(runs):
        by_task.setdefault((experiment.first.table, experiment.first.task), []).append(experiment)
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape(
            title or f"What was trained: {', '.join(_task_name(*key) for key in by_task)}"
        ),
        before=before,
        after=after,
        sections="\n".join(_section(_task_name(*key), some) for key, some in by_task.items()),
        runs="\n".join(_origin(run) for some in by_task.values() for e in some for run in e.runs),
    )


def _task_name(table: str, task: str) -> str:
    return task if table == task else f"{table}, {task}"


def _section(name: str, some: Sequence[Experiment]) -> str:
    shown = dict(zip(names(some), some, strict=True))
    colours = {name: chart.COLOURS[i % len(chart.COLOURS)] for i, name in enumerate(shown)}
    parts = [f"<h2>{escape(name)}</h2>", _table(some), _curves(name, shown, colours)]
    return "\n".join([*parts, _speed(name, shown, colours)])


def _table(some: Sequence[Experiment]) -> str:
    shown = [column for column in columns(some) if column.heading not in _NOT_SHOWN]
    kinds = ["" if column.number else ' class="word"' for column in shown]
    heads = [f"<th{k}>{escape(c.heading)}</th>" for c, k in zip(shown, kinds, strict=True)]
    rows = [
        "<tr>"
        + "".join(f"<td{k}>{escape(c.cell(e))}</td>" for c, k in zip(shown, kinds, strict=True))
        + "</tr>"
        for e in some
    ]
    return (
        '<div class="wide"><table><thead><tr>'
        + "".join(heads)
        + f"</tr></thead><tbody>{''.join(rows)}</tbody></table></div>\n"
        f'<p class="note">{_words_about(some)}</p>'
    )


def _words_about(some: Sequence[Experiment]) -> str:
    """What a reader must know to read the table, and no word about what is not in it."""
    headings = {column.heading for column in columns(some)}
    said = ["<b>top-1</b>: percent of the test samples whose class was named right."]
    if "paper top-1" in headings:
        said.append("<b>paper</b> is the published number and <b>ours</b> was measured here.")
    if "ours top-5" in headings:
        said.append("<b>top-5</b>: the right class was among the first five guesses.")
    if any(len(e.runs) > 1 for e in some):
        said.append("Over several seeds, that is repetitions with other random numbers: mean ± "
                    "standard deviation.")  # fmt: skip
    if any(e.first.steps < e.first.steps_published for e in some):
        said.append("<b>steps</b>: where training was shorter than published, the two numbers do "
                    "not compare.")  # fmt: skip
    chosen = {e.first.chosen_on for e in some}
    if "validation" in chosen:
        said.append("<b>chosen on validation</b>: the weights that did best on data set aside for "
                    "this choice were tested.")  # fmt: skip
    if "test" in chosen:
        said.append("<b>chosen on test</b>: the weights that did best on the test data itself were "
                    "taken, as some publications do, which flatters them.")  # fmt: skip
    if "nothing" in chosen:
        said.append("<b>chosen on nothing</b>: the last weights were tested.")
    return " ".join(said)


def _curves(task: str, shown: Mapping[str, Experiment], colours: Mapping[str, str]) -> str:
    drawn, seen = [], []
    for title, (label, held_back, trained_on) in _CURVES.items():
        some = [
            line
            for name, experiment in shown.items()
            for run in experiment.runs
            for line in _lines(name, run, colours[name], held_back, trained_on)
        ]
        if some:
            seen += some
            svg = chart.lines(f"{title} on {task}", "training steps", label, some)
            drawn.append(f"<figure><figcaption>{title}</figcaption>{svg}</figure>")
    if not drawn:
        return ""
    said = []
    if not all(line.pale for line in seen):
        said.append("Strong lines: on data that was held back.")
    if any(line.pale for line in seen):
        said.append("Pale lines: on the data that was trained on.")
    if any(len(e.runs) > 1 for e in shown.values()):
        said.append("One line for each seed.")
    return (
        f"<h3>While it trained</h3>{_legend(colours)}"
        f'<div class="charts">{"".join(drawn)}</div><p class="note">{" ".join(said)}</p>'
    )


def _lines(name: str, run: Run, colour: str, held_back: str, trained_on: str) -> list[chart.Line]:
    told = f"{name}, seed {run.seed}"
    found = []
    if trained_on in run.curves:
        pale = run.curves[trained_on]
        found.append(chart.Line(f"{told}, on training data", colour, pale, pale=True))
    if held_back in run.curves:
        found.append(chart.Line(told, colour, run.curves[held_back]))
    return found


def _legend(colours: Mapping[str, str]) -> str:
    items = (
        f'<li><i style="border-color:{colour}"></i>{escape(name)}</li>'
        for name, colour in colours.items()
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def _speed(task: str, shown: Mapping[str, Experiment], colours: Mapping[str, str]) -> str:
    disks = [
        chart.Disk(
            name,
            colours[name],
            experiment.speed,
            experiment.test("top1").mean,
            experiment.memory,
            f"{name}: {experiment.test('top1').text()} %, {experiment.speed:.3g} steps a second, "
            f"{_memory(experiment.memory)}",
        )
        for name, experiment in shown.items()
    ]
    svg = chart.disks(
        f"Speed against accuracy on {task}",
        "training steps a second",
        "percent right (test)",
        disks,
    )
    said = ["Higher is more accurate, further right is faster."]
    if any(disk.area for disk in disks):
        sizes = "; ".join(f"{escape(disk.name)} {_memory(disk.area)}" for disk in disks)
        said.append(f"A disk's area is the most memory that training took: {sizes}.")
    if any(disk.area is None for disk in disks):
        said.append("A dashed ring: memory was not measured.")
    if len({e.first.device for e in shown.values()}) > 1:
        said.append("<b>These ran on different devices, so their speeds do not compare.</b>")
    return (
        f'<h3>Speed against accuracy</h3><figure class="single">{svg}</figure>'
        f'<p class="note">{" ".join(said)}</p>'
    )


def _memory(bytes_: float | None) -> str:
    if bytes_ is None:
        return "memory not measured"
    return f"{bytes_ / 1e9:.2f} GB" if bytes_ >= 1e9 else f"{bytes_ / 1e6:.0f} MB"


def _origin(run: Run) -> str:
    facts = {
        "device": f"{run.device}, {run.precision}",
        "steps": f"{steps_text(run.steps, run.steps_published)}, {run.epochs:.4g} passes over the "
        f"data, {run.steps_per_second:.3g} steps a second",
        "memory": _memory(run.peak_memory_bytes),
        "date": run.date,
        "versions": ", ".join(f"{name} {version}" for name, version in run.versions.items()),
        "commit": run.commit or "not known",
        "file": str(run.path),
    }
    listed = "".join(f"<dt>{key}</dt><dd>{escape(value)}</dd>" for key, value in facts.items())
    return (
        f"<details><summary>{escape(run.recipe)}, seed {run.seed}: <code>{escape(run.command)}"
        f"</code></summary><dl>{listed}</dl></details>"
    )
