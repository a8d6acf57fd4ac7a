"""The studies by name. Each is a module with `measure`, `draw`, and for a film `animate`.

`measure` returns a frozen dataclass whose `findings()` say the numbers in words, `draw` makes the
figure of it. A module with `MIXERS` looks at models: those of the runs that are named, before and
after training, or else fresh ones with these mixers.
"""

import difflib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from .. import recipes
from . import (
    anatomy,
    collapse,
    doubly_stochastic,
    maps,
    schedules,
    spectrum,
    style,
    subject,
    transport,
)

STUDIES: dict[str, ModuleType] = {
    "maps": maps,
    "schedules": schedules,
    "spectrum": spectrum,
    "collapse": collapse,
    "transport": transport,
    "doubly-stochastic": doubly_stochastic,
    "anatomy": anatomy,
}
#: Whose models are looked at where no run is named.
_FRESH = "digits/csp"


def get(name: str) -> ModuleType:
    """A study by name."""
    if name in STUDIES:
        return STUDIES[name]
    near = difflib.get_close_matches(name, STUDIES, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"no study is called {name!r}; {hint}there are: {', '.join(STUDIES)}")


def about(name: str) -> str:
    """What it looks at, in a line."""
    return (get(name).__doc__ or "").partition("\n")[0]


def takes_runs(name: str) -> bool:
    """Whether it looks at models."""
    return hasattr(get(name), "MIXERS")


def measure(name: str, runs: Sequence[Path] = (), data: Path | None = None) -> Any:
    """The data of a study."""
    study = get(name)
    if not takes_runs(name):
        if runs:
            raise ValueError(f"{name} looks at no run; leave --run out")
        return study.measure()
    subjects = [each for run in runs for each in subject.before_and_after(run, data)]
    for mixer in () if runs else study.MIXERS:
        recipe, _ = recipes.override(recipes.get(_FRESH), [f"mixer={mixer}"])
        subjects.append(subject.fresh(recipe, data))
    return study.measure(subjects)


def save(name: str, found: Any, folder: Path) -> list[Path]:
    """The figure as PNG and SVG, and the film if there is one."""
    study = get(name)
    paths = style.save(study.draw(found), folder, f"study-{name}")
    if hasattr(study, "animate"):
        paths.append(folder / f"study-{name}.gif")
        study.animate(found, paths[-1])
    return paths
