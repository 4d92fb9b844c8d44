"""Units: which there are, how headers and options spell them, and their factors to SI."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from feasid.core.errors import LogError, did_you_mean

KINDS = ("q", "dq", "ddq", "tau")
"""Position, velocity, acceleration, torque; a column is ``<kind>_<joint>``."""

COMMAND = "cmd"
"""Kind of the columns that a servo turns into torques, where the log has no torques."""

TEMPERATURE = "temperature"
"""Kind of the columns of temperatures, which are called ``T_<joint>``, too."""

TIMES = ("t", "time", "times", "timestamp", "timestamps", "stamp")
"""Names of a column of times, in any case of their letters."""

NAMES_OF_KINDS = {
    "q": ("q", "qpos", "pos", "position", "positions", "angle", "theta"),
    "dq": ("dq", "qd", "qvel", "vel", "velocity", "velocities", "speed"),
    "ddq": ("ddq", "qdd", "qacc", "acc", "acceleration"),
    "tau": ("tau", "trq", "torque", "torques", "effort", "efforts", "qfrc", "current", "currents"),
    "cmd": ("cmd",),
    TEMPERATURE: ("temperature", "temperatures", "temp", "temps"),
    "t": TIMES,
}
"""Words in the names of columns by which a kind is recognised."""

KILOPOND = 9.80665  #: Weight of a kilogram [N], in torques such as kg cm.

POSITIONS = {
    **{"rad": 1.0, "mrad": 1e-3, "deg": np.pi / 180, "rev": 2 * np.pi},
    **{"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6},
}
CURRENTS = {"A": 1.0, "mA": 1e-3}
"""Units of torque columns that hold currents, of which `feasid.torque_constants` makes torques."""

SPEEDS = {**{f"{unit}/s": x for unit, x in POSITIONS.items()}, "rpm": np.pi / 30}

UNITS: dict[str, dict[str, float]] = {
    "q": POSITIONS,
    "dq": SPEEDS,
    "ddq": {f"{unit}/s^2": x for unit, x in POSITIONS.items()},
    "tau": {
        **{"Nm": 1.0, "mNm": 1e-3, "Ncm": 1e-2, "Nmm": 1e-3, "kNm": 1e3, "N": 1.0, "kN": 1e3},
        **{"kgm": KILOPOND, "kgcm": KILOPOND / 100, "gcm": KILOPOND / 1e5, "ozin": 7.0615518e-3},
        **CURRENTS,
    },
    "cmd": {**POSITIONS, **SPEEDS, **CURRENTS},
    TEMPERATURE: {"C": 1.0, "K": 1.0, "F": 5 / 9},
    "t": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0},
}
"""Factor to SI per unit; a number instead of a name is taken as the factor itself."""

ZEROS = {"K": 273.15, "F": 160 / 9}  #: Zero degrees C in other units, after the factor.

SPELLINGS = {
    **dict.fromkeys(("degs", "degree", "degrees", "°", "º"), "deg"),
    **dict.fromkeys(("rads", "radian", "radians"), "rad"),
    **dict.fromkeys(("revs", "turn", "turns", "revolution", "revolutions", "rotations"), "rev"),
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("msec", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("usec", "microsecond", "microseconds"), "us"),
    **dict.fromkeys(("nsec", "nanosecond", "nanoseconds"), "ns"),
    **dict.fromkeys(("sec^2", "s2", "ss"), "s^2"),
    **dict.fromkeys(("newtonmeter", "newtonmeters", "newtonmetre", "newtonmetres"), "Nm"),
    **dict.fromkeys(("amp", "amps", "ampere", "amperes"), "A"),
    **dict.fromkeys(("°c", "ºc", "degc", "celsius", "degreecelsius", "degreescelsius"), "C"),
    **dict.fromkeys(("°f", "ºf", "degf", "fahrenheit", "degreesfahrenheit"), "F"),
    **dict.fromkeys(("kelvin", "kelvins"), "K"),
    **{"kgfm": "kgm", "kgfcm": "kgcm", "gfcm": "gcm", "ozfin": "ozin"},
}
"""Other spellings, in small letters and without separators."""

NO_UNIT = ("", "-", "none")  #: Text in place of a unit if there is none.

KNOWN_UNITS = {unit: factor for table in UNITS.values() for unit, factor in table.items()}
"""Units by their spelling."""

LOWER_UNITS = {unit.lower(): unit for unit in KNOWN_UNITS}

HEADER = re.compile(r"(.*[^\s_.,;:-])[\s_.,;:-]*[\[(]([^\])\[(]*)[\])]")
"""A column's name with its unit in brackets."""

LONGEST_END = 80
"""Characters at the end of a name that are searched for a unit; time grows with the square."""

ENDS = re.compile(r"(.*[^_])_((?:[A-Za-z]+_(?:per_)?)?[A-Za-z]+[2²]?)")
"""A column's name with its unit after an underscore: ``dq_elbow_deg``, ``dq_elbow_rad_per_s``."""


def standard_unit_spelling(written: str) -> str:
    """A unit as `UNITS` spells it: ``"°/sec"`` is ``"deg/s"``, ``"N·m"`` is ``"Nm"``."""
    text = written.strip().replace("²", "^2").replace("µ", "u").replace("μ", "u")
    text = re.sub(r"\s*(?:\bper\b|/)\s*", "/", text)
    text = re.sub(r"(?<=\w)[ *.·⋅]*s\^?[-⁻]([12])\b", lambda m: f"/s^{m[1]}", text)
    top, *below = (re.sub(r"[\s*.·⋅-]", "", part) for part in text.split("/"))
    top = _standard_word(top)
    if not below:
        return top
    return f"{top}/{_standard_word(''.join(below)).removesuffix('^1')}"


def _standard_word(text: str) -> str:
    """A unit without a slash; upper and lower case differ for M only: mNm is not MNm."""
    if text in KNOWN_UNITS:
        return text
    word = SPELLINGS.get(text.lower(), text)
    return word if text[:1] == "M" else LOWER_UNITS.get(word.lower(), word)


def split_header(name: str, joints: Collection[str] = ()) -> tuple[str, str]:
    """A column's plain name and its unit as written, which is empty where the name has none.

    Brackets hold a unit where it is known. After an underscore it must be one of the quantity that
    the name says, and no part of a joint's name: ``tau_arm_A`` is the torque of a joint arm_A.
    """
    head, tail = name[:-LONGEST_END], name[-LONGEST_END:]
    if match := HEADER.fullmatch(tail):
        return head + match[1], match[2].strip()
    match = ENDS.fullmatch(tail)
    if match is None or any(name.endswith(joint) for joint in joints):
        return name, ""
    stem, tail = head + match[1], match[2]
    units = UNITS.get(kind_of_name(stem), {})
    for start, end in ((stem, tail), (f"{stem}_{tail}".rpartition("_")[0], tail.split("_")[-1])):
        unit = standard_unit_spelling(end.replace("_per_", "/").replace("_", "/"))
        if unit in units and (joints or len(end) > 1):
            return start, end.replace("_per_", "/").replace("_", "/")
    return name, ""


def unit_in_name(name: Any, kind: str, joints: Collection[str]) -> str:
    """Unit of a kind after an underscore at the end of a name that says no kind; empty: none."""
    match = ENDS.fullmatch(name[-LONGEST_END:]) if isinstance(name, str) else None
    if match is None or any(name.endswith(joint) for joint in joints):
        return ""
    unit = standard_unit_spelling(match[2].split("_")[-1])
    return unit if unit in UNITS[kind] else ""


def kind_of_name(name: str) -> str:
    """The kind that the words of a column's name say; empty where they say none, or two."""
    if name.startswith(("T_", "sensor_")):
        return TEMPERATURE if name[0] == "T" else "tau"
    words = words_of(name)
    first = next((k for k in UNITS if words[:1] == [k]), "")
    kinds = [kind for kind, known in NAMES_OF_KINDS.items() if {*words} & {*known}]
    return first or (kinds[0] if len(kinds) == 1 else "")


def words_of(name: str) -> list[str]:
    """Words of a column's name in small letters: ``actualCurrent_3`` has actual and current."""
    return re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower())


def unit_factor(
    units: Mapping[str, Any] | None, kind: str, joint: str | None = None, header: str = ""
) -> float:
    """Factor to SI of a kind of column or of one joint's, from ``units={"q": "deg"}``.

    `header` is the unit in the column's header; the column is then already in SI. The same unit in
    an option changes nothing, a number is an additional factor, and another unit is an error.
    """
    key = f"{kind}_{joint}" if joint is not None and f"{kind}_{joint}" in (units or {}) else kind
    if units is None or key not in units:
        return 1.0
    unit = units[key]
    if isinstance(unit, str):
        spelt = standard_unit_spelling(unit)
        if spelt not in UNITS[kind]:
            hint = did_you_mean(unit, UNITS[kind])
            raise LogError(f"unknown unit {unit!r} for {key!r}{hint}: one of {[*UNITS[kind]]}")
        if header and standard_unit_spelling(header) != spelt:
            raise LogError(
                f"the header states that {key!r} is in {header!r}, units={{{key!r}: {unit!r}}} "
                "contradicts it: leave it out, or rename the column"
            )
        return 1.0 if header else UNITS[kind][spelt]
    factor = float(unit)
    if not np.isfinite(factor) or factor == 0:
        raise LogError(f"the factor of {key!r} in units must be finite and not zero: {unit!r}")
    return factor
