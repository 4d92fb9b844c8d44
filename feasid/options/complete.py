"""Completes and checks a caller's options, and generates signatures and documentation from the
tables.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sized
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar, get_type_hints

from feasid.core.errors import InputError, did_you_mean
from feasid.core.text import quote
from feasid.options.option import Option
from feasid.options.tables import GROUPS

OPTIONS_ENTRY = re.compile(r"\*\*(?:options|bounds)\n(?:(?: .*)?(?:\n|\Z))*")
"""A docstring's line ``**options``, whatever it calls them, with its indented text."""

Function = TypeVar("Function", bound=Callable[..., Any])


@cache
def option_table(options: type) -> dict[str, Option]:
    """The options of a typed dictionary by name, in order."""
    hints = get_type_hints(options, include_extras=True)
    return {name: replace(hint.__metadata__[-1], annotation=hint) for name, hint in hints.items()}


def option_groups(options: type) -> dict[str, dict[str, Option]]:
    """The options of a typed dictionary by the groups of `feasid.options.tables.GROUPS`."""
    groups: dict[str, dict[str, Option]] = {"estimate": {}, **{title: {} for title in GROUPS}}
    for name, option in option_table(options).items():
        homes = (t for t, parts in GROUPS.items() if any(name in option_table(p) for p in parts))
        groups[next(homes, "estimate")][name] = option
    return {title: table for title, table in groups.items() if table}


ELSEWHERE = {
    **{k: f": use load_robot(path, {k}=...)" for k in ("lock", "gravity", "floating", "ignore")},
    **{k: f": use fit.{k}(path) of the result" for k in ("save", "report")},
    **{"out": ": use fit.write(path) of the result", "test": ": use fit.errors(log) of the result"},
}
"""Where what users take for options is set."""


def check_options(options: type, given: Mapping[str, Any], function: str) -> dict[str, Any]:
    """The given options with every value validated; defaults are not added.

    Raises InputError: for an unknown name (with the nearest known one), a value out of range (with
    what was expected), and an option that has no effect together with another.
    """
    table = option_table(options)
    for name in given:
        if name not in table:
            hint = ELSEWHERE.get(name) or did_you_mean(name, table)
            raise InputError(f"{function} has no option {name!r}{hint}", option=name)
    values = {name: table[name].check(name, value) for name, value in given.items()}
    for name, value in values.items():
        needs = table[name].needs
        asks_nothing = value is None or (isinstance(value, Sized) and not len(value))
        if needs is None or asks_nothing or _is_default(value, table[name].default):
            continue
        needed_option, those = needs
        has = values.get(needed_option, table[needed_option].default)
        some = ... in those and has is not None  # an ellipsis stands for any value
        if not (some or any(_is_default(has, one) for one in those)):
            spelled = text if len(text := f"{name}={quote(value)}") <= 60 else name
            stated = [v for v in those if v is not ... and v is not None] or [None]
            alternatives = " or ".join(f"{needed_option}={v!r}" for v in stated)
            raise InputError(
                f"{spelled} has no effect without {alternatives} (here {needed_option} is "
                f"{has!r}): give that too, or leave {name} out",
                option=name,
            )
    return values


def _is_default(value: Any, default: Any) -> bool:
    """Whether a value is the default; an array never is."""
    # One equals True, and is no flag.
    return type(value) is type(default) and bool(value == default)


def complete_options(options: type, given: Mapping[str, Any], function: str) -> dict[str, Any]:
    """The options of `check_options`, with defaults for those that are not given."""
    defaults = {name: option.default for name, option in option_table(options).items()}
    return defaults | check_options(options, given, function)


def select_options(options: type, of: Mapping[str, Any]) -> dict[str, Any]:
    """The options that belong to one table."""
    return {name: value for name, value in of.items() if name in option_table(options)}


def document_options(options: type) -> Callable[[Function], Function]:
    """Give a function the table's options as its signature and at the end of its docstring.

    The docstring's entry ``**options`` is replaced by one entry per option.
    """

    def decorate(function: Function) -> Function:
        table = option_table(options)
        signature = inspect.signature(function)
        parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        names = {p.name for p in parameters}
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option.default)
            for name, option in table.items()
            if name not in names
        ]
        function.__signature__ = signature.replace(parameters=[*parameters, *more])  # type: ignore[attr-defined]
        lines = []
        for name, option in table.items():
            lines.append(f"{name} : {option.describe_domain()}; default {option.default!r}")
            lines.append(f"    {option.doc}{f' [{option.unit}]' if option.unit else ''}.")
        text = inspect.getdoc(function) or ""
        if entry := OPTIONS_ENTRY.search(text):
            listed = "\n".join(lines)
            function.__doc__ = f"{text[: entry.start()]}{listed}\n{text[entry.end() :]}"
        return function

    return decorate
