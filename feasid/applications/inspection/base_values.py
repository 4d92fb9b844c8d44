"""Values of base parameters in a file, and the robot's base parameters that they belong to."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd

from feasid.core.errors import InputError, refuse_damage
from feasid.core.files import read_whole
from feasid.logs.read.csv import exact_decimal_arguments
from feasid.parameters.identifiability.base import BaseParameters, base_parameters
from feasid.robot.description import Robot
from feasid.robot.drives import Drive
from feasid.robot.joint_terms import FRICTION

LARGEST = 2**26  #: Bytes of a file of base parameters.
VALUE = "value"  #: Name of the column with the values, if several columns hold numbers.
NAME = "base parameter"  #: Name of the column with the names.

DECIMAL_COMMA = re.compile(r";-?\d+,\d")
"""A number with a decimal comma between semicolons, as in CSV files of some languages."""

SPACES = re.compile(r"[\s()]+")  #: Separators between the terms of a base parameter's name.


def read_base_values(path: str) -> pd.Series[float]:
    """The values in a CSV file, its column "value" or its only one of numbers, by their names.

    Without a column "base parameter" they have no names, only the order of `base_parameters`.

    Raises InputError: names the file, and the row that has no number, or the columns of which one
    is meant.
    """
    text = read_whole(path, LARGEST).decode(errors="replace")
    columns = ";" if ";" in text.partition("\n")[0] else ","
    decimal = "," if columns == ";" and DECIMAL_COMMA.search(text) else "."
    with refuse_damage(path, "cannot be read", InputError):
        table: pd.DataFrame = pd.read_csv(
            io.StringIO(text), sep=columns, decimal=decimal, **exact_decimal_arguments()
        )
    # A table of this package has the values in one column, one of another program may have others.
    held = [str(c) for c in table.columns if pd.api.types.is_numeric_dtype(table[c])]
    if VALUE not in table and len(held) != 1:
        raise InputError(
            f"{path}: {', '.join(held) or 'no column'} hold{'s' * (not held)} numbers: call the "
            f"column of base parameters {VALUE!r}",
            path=path,
        )
    column = table[VALUE if VALUE in table else held[0]]
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
    for row in np.flatnonzero(~np.isfinite(values)):
        where = f"row {int(row) + 2} of column {column.name!r}"  # row 1 is the header
        raise InputError(f"{path}: {where} has no number", path=path)
    if NAME in table:
        return pd.Series(values, index=table[NAME].astype(str))
    return pd.Series(values)


def with_terms(robot: Robot, names: Iterable[tuple[str, str]]) -> Robot:
    """The robot with the joint terms that are named, by owner and symbol."""
    terms: dict[str, set[str]] = {}
    for owner, symbol in names:
        terms.setdefault(owner, set()).add(symbol)
    drives: list[Drive] = []
    load = None
    for body in robot.bodies:
        has = terms.get(body.name, set())
        words = [word for word, symbols in FRICTION.items() if has.issuperset(symbols)]
        some = robot.with_joint_terms(words, "Ia" in has, joints=[body.joint])
        drives += some.drives
        load = load if some.load_model is None else some.load_model
    return replace(robot, drives=tuple(drives), load_model=load)


def find_matching_base(robot: Robot, values: pd.Series[float]) -> BaseParameters:
    """The robot's base parameters that have these names, or this number.

    Raises InputError: the message has the number of base parameters by joint terms.
    """
    words = [word.rpartition(".") for label in values.index for word in SPACES.split(str(label))]
    models = (  # with the terms that are named, as it is, and with those that fits add
        with_terms(robot, [(owner, symbol) for owner, dot, symbol in words if dot]),
        robot,
        robot.with_joint_terms(),
        robot.with_joint_terms(drive_inertia=True),
        robot.with_joint_terms(friction=(), drive_inertia=True),
    )
    sizes = []
    for model in models:
        base = base_parameters(model)
        if len(base.K) == len(values):
            return base
        sizes.append(len(base.K))
    _, as_described, *more = sizes
    raise InputError(
        f"{len(values)} values do not fit {robot.name}, which has {as_described} base parameters, "
        f"{more[0]} with friction, {more[1]} with drive inertia, too, {more[2]} with that alone; "
        "feasid base-parameters lists them"
    )
