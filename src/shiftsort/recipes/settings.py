"""Recipes to plain data and back, and single fields set from words, with their types checked."""

import ast
import dataclasses
import difflib
import types
import typing
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from .recipe import Encoder, Mega, Optimiser, Paper, Recipe, RecipeError, Schedule, Stack, ViT

_MODELS = {"vit": ViT, "encoder": Encoder, "mega": Mega, "stack": Stack}
#: They say which row of which table a recipe is, and are not to be set.
_FIXED = ("name", "table", "row", "about", "paper", "model.kind")


def to_plain(recipe: Recipe) -> dict[str, Any]:
    """What JSON can hold."""
    return dataclasses.asdict(recipe)


def from_plain(plain: dict[str, Any]) -> Recipe:
    """The recipe that `to_plain` wrote."""
    model = _MODELS[plain["model"]["kind"]]
    parts = {
        "model": model(**plain["model"]),
        "optimiser": Optimiser(**plain["optimiser"]),
        "schedule": Schedule(**plain["schedule"]),
        "paper": None if plain["paper"] is None else Paper(**plain["paper"]),
    }
    return Recipe(**{**plain, **parts})


def override(recipe: Recipe, words: Iterable[str]) -> tuple[Recipe, dict[str, Any]]:
    """The recipe with `field=value` applied, and what was set by its full name."""
    changed: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals:
            raise RecipeError(f"--set takes FIELD=VALUE, got {word!r}")
        path = _find(recipe, key.strip())
        changed[path] = _value(recipe, path, text.strip())
    # steps and epochs say the same: who sets one means it instead of the other.
    for one, other in (("steps", "epochs"), ("epochs", "steps")):
        if changed.get(one) is not None and other not in changed:
            changed[other] = None
    recipe = _apply(recipe, changed)
    return recipe, changed


def fields(recipe: Recipe) -> dict[str, Any]:
    """Every field that can be set, by its full name, with its value."""
    return {path: value for path, value, _ in _walk(recipe) if path not in _FIXED}


def _walk(node: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    hints = typing.get_type_hints(type(node))
    for field in dataclasses.fields(node):
        value, path = getattr(node, field.name), prefix + field.name
        if dataclasses.is_dataclass(value):
            yield from _walk(value, f"{path}.")
        else:
            yield path, value, hints[field.name]


def _find(recipe: Recipe, key: str) -> str:
    """The full name of a field, which may be given by its last part where only one has it."""
    known = fields(recipe)
    if key in known:
        return key
    group, _, option = key.rpartition(".")
    named = [path for path in known if path.rpartition(".")[2] == key]
    if len(named) == 1:
        return named[0]
    if len(named) > 1:
        raise RecipeError(f"--set {key} may mean {' or '.join(named)}; give the full name")
    for path, value in known.items():
        if isinstance(value, dict) and group in (path, path.rpartition(".")[2]):
            return f"{path}.{option}"
    short = {path.rpartition(".")[2]: path for path in known}
    near = difflib.get_close_matches(key, [*known, *short], n=1)
    if near:
        hint = f"did you mean {short.get(near[0], near[0])}?"
    else:
        hint = f"there are: {', '.join(known)}"
    raise RecipeError(f"no field is called {key!r}; {hint}")


def _value(recipe: Recipe, path: str, text: str) -> Any:
    hints = {known: hint for known, _, hint in _walk(recipe)}
    if path not in hints:  # an option in a table of options, which its reader checks
        return _literal(text)
    options = list(_options(hints[path]))
    for option in options:
        try:
            return _convert(option, text)
        except ValueError:
            continue
    expected = " or ".join(_describe(option) for option in options)
    raise RecipeError(f"--set {path}={text} was given, expected {expected}")


def _options(hint: Any) -> Iterator[Any]:
    if isinstance(hint, types.UnionType):
        # None first: "none" is also a string.
        yield from sorted(typing.get_args(hint), key=lambda option: option is not types.NoneType)
    else:
        yield hint


def _convert(kind: Any, text: str) -> Any:
    if kind is types.NoneType:
        if text.lower() in ("none", "null"):
            return None
    elif kind is bool:
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
    elif typing.get_origin(kind) is Literal:
        if text in typing.get_args(kind):
            return text
    elif kind is int:
        return int(text.replace("_", ""))
    elif kind in (float, str):
        return kind(text)
    elif isinstance(value := _literal(text), dict):
        return value
    raise ValueError(text)


def _describe(kind: Any) -> str:
    if typing.get_origin(kind) is Literal:
        return "one of " + ", ".join(typing.get_args(kind))
    words = {
        int: "an integer",
        float: "a number",
        str: "a word",
        bool: "true or false",
        types.NoneType: "none",
    }
    return words.get(kind, "a table as {'option': value}")


def _literal(text: str) -> Any:
    """None, numbers and tables as Python writes them; a word ("none" too) stays a word."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _apply(node: Any, changed: dict[str, Any]) -> Any:
    """The node with all changes at once, so that fields are compared when all are set."""
    groups: dict[str, dict[str, Any]] = {}
    values: dict[str, Any] = {}
    for path, value in changed.items():
        first, _, rest = path.partition(".")
        if rest:
            groups.setdefault(first, {})[rest] = value
        else:
            values[first] = value
    for first, inner in groups.items():
        if isinstance(node, dict):
            raise RecipeError(f"options have no parts, got {first}.{next(iter(inner))}")
        values[first] = _apply(values.get(first, getattr(node, first)), inner)
    return {**node, **values} if isinstance(node, dict) else dataclasses.replace(node, **values)
