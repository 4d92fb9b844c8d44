"""Feasibility verdict on a file, a robot, a fit or base parameters."""

from __future__ import annotations

import os
from typing import Any, Literal, overload

from feasid.errors import InputError
from feasid.feasibility.check import Verdict
from feasid.feasibility.check import check as check_parameters
from feasid.formats.load import load_robot
from feasid.inspection.report import Report, inspect


@overload
def check(subject: str | os.PathLike[str], *, bodies: Literal[False] = False) -> Report: ...


@overload
def check(subject: Any, base: Any = None, *, bodies: bool = False, **options: Any) -> Verdict: ...


def check(
    subject: Any, base: Any = None, *, bodies: bool = False, **options: Any
) -> Verdict | Report:
    """Decide whether a model can exist, and prove the answer.

    Parameters
    ----------
    subject : path, Robot, Fit, or array_like of shape (nb,)
        Of a file every link is judged, from its own decimals, as ``feasid check`` does: a `Report`.
        Of a robot its moving bodies, of a fit the parameters it found, of an array the base
        parameters of `base`: a `Verdict`, see `feasid.feasibility.check.check`.
    base : BaseParameters, optional
        What the entries of an array mean.
    bodies : bool
        Of a file, judge the moving bodies instead, as ``feasid check --bodies`` does: links that
        move as one may be possible together although one of them is not.
    **options
        Of `feasid.feasibility.check.check`; bounds are on moving bodies.

    Returns
    -------
    Report or Verdict
        Both have ``feasible``, ``status`` and ``explain()``.

    Raises
    ------
    InputError
        A file that cannot be read, an option that has no effect here, or `bodies` without a file.
    SolverError
        See `feasid.feasibility.check.check`.

    Examples
    --------
    >>> import feasid
    >>> body = feasid.Body("link", None, inertial=[1, 0, 0, 1, 0, 5, 0, 0, 0, 1])
    >>> feasid.check(feasid.Robot((body,))).feasible
    False
    """
    if isinstance(subject, str | os.PathLike):
        if not bodies and base is None and not options:
            return inspect(subject)
        if not bodies:
            name = next(iter(options), "base")
            raise InputError(
                f"{name}= is asked of moving bodies, and a file is judged link by link: "
                "say bodies=True, or load the robot"
            )
        subject = load_robot(subject)
    elif bodies:
        raise InputError("bodies=True is for files: robots and fits are judged by moving bodies")
    return check_parameters(subject, base, **options)
