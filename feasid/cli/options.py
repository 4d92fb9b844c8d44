"""Values of command line options."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from feasid.errors import InputError


def locks(entries: Sequence[str] | None) -> dict[str, float]:
    """``["gripper=0.1"]`` as a mapping."""
    out = {}
    for entry in entries or ():
        joint, sign, value = entry.partition("=")
        try:
            out[joint] = float(value) if sign else 0.0
        except ValueError:
            raise InputError(f"--lock {entry}: {value!r} is not a number") from None
    return out


def vector(text: str | None) -> tuple[float, ...] | None:
    """``"0,0,-9.81"`` as numbers."""
    if text is None:
        return None
    try:
        numbers = tuple(float(x) for x in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) != 3:
        raise InputError(f"--gravity needs three numbers such as 0,0,-9.81, not {text!r}")
    return numbers


def pairs(entries: Sequence[str] | None, option: str) -> dict[str, str]:
    """``["q=deg"]`` as a mapping."""
    out = {}
    for entry in entries or ():
        key, sign, value = entry.partition("=")
        if not (key and sign and value):
            raise InputError(f"{option} needs NAME=VALUE, not {entry!r}")
        out[key] = value
    return out


def settings(entries: Sequence[str] | None) -> dict[str, Any]:
    """``["delay=0.03", 'units={"q": "deg"}']`` as options of `feasid.fit`; values are JSON."""
    out: dict[str, Any] = {}
    for key, value in pairs(entries, "--option").items():
        try:
            out[key] = json.loads(value)
        except json.JSONDecodeError:
            out[key] = value
    return out


def as_settings(options: Mapping[str, Any]) -> str:
    """The inverse, as words of a shell command."""
    import shlex

    words = []
    for key, value in options.items():
        text = value if isinstance(value, str) else json.dumps(value, default=_plain)
        words.append(f"--option {shlex.quote(f'{key}={text}')}")
    return " ".join(words)


def _plain(value: Any) -> Any:
    """Arrays and mappings as JSON knows them."""
    return value.tolist() if hasattr(value, "tolist") else list(value)
