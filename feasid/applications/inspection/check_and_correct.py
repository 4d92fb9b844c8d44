"""`check` and `correct`: of a file link by link, of a robot, fit or base parameters as a whole."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Any, Literal, overload

from feasid.applications.inspection.file_check import FileCheck, check_file
from feasid.applications.inspection.file_correction import FileCorrection, correct_file
from feasid.core.arguments import checked
from feasid.core.errors import InputError
from feasid.core.files import check_writable
from feasid.options.complete import document_options
from feasid.options.tables import CorrectOptions
from feasid.parameters.feasibility.check import Verdict
from feasid.parameters.feasibility.check import check as check_parameters
from feasid.parameters.feasibility.constraints.sets import FeasibleSet
from feasid.parameters.feasibility.correct import Correction
from feasid.parameters.feasibility.correct import correct as correct_parameters
from feasid.robot.formats.load import load_robot


@overload
def check(subject: str | os.PathLike[str], *, bodies: Literal[False] = False) -> FileCheck: ...


@overload
def check(subject: Any, base: Any = None, *, bodies: bool = False, **options: Any) -> Verdict: ...


@checked
def check(
    subject: Any, base: Any = None, *, bodies: bool = False, **options: Any
) -> Verdict | FileCheck:
    """Decide whether a model is physically consistent, and prove the answer.

    Parameters
    ----------
    subject : path, Robot, Fit, or array_like of shape (nb,)
        For a file, every link is checked from its own decimals, as ``feasid check`` does, and the
        result is a `FileCheck`. For a robot (its moving bodies), a fit (its parameters) or an array
        (base parameters of `base`) the result is a `Verdict`, see
        `feasid.parameters.feasibility.check.check`.
    base : BaseParameters, optional
        The base parameters that the entries of an array are values of.
    bodies : bool
        For a file, check the moving bodies instead, as ``feasid check --bodies`` does: links that
        are fixed to each other may be consistent together although one of them is not.
    **options
        Options of `feasid.parameters.feasibility.check.check`; bounds apply to moving bodies.

    Returns
    -------
    FileCheck or Verdict
        Both have ``feasible``, ``status`` and ``explain()``.

    Raises
    ------
    InputError
        A file cannot be read, an option has no effect here, or `bodies` is given without a file.
    SolverError
        See `feasid.parameters.feasibility.check.check`.

    Examples
    --------
    >>> import feasid
    >>> body = feasid.Body("link", None, inertial=[1, 0, 0, 1, 0, 5, 0, 0, 0, 1])
    >>> feasid.check(feasid.Robot((body,))).feasible
    False
    """
    if isinstance(subject, str | os.PathLike):
        if not bodies:
            _refuse_options_of_bodies(options, base, ())
            return check_file(subject)
        subject = load_robot(subject)
    elif bodies:
        raise InputError("bodies=True is for files: robots and fits are judged by moving bodies")
    return check_parameters(subject, base, **options)


@overload
def correct(
    subject: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    fill: bool = False,
    overwrite: bool = False,
    bodies: Literal[False] = False,
    **options: Any,
) -> FileCorrection: ...


@overload
def correct(
    subject: Any, base: Any = None, *, bodies: bool = False, **options: Any
) -> Correction: ...


@checked
@document_options(CorrectOptions)
def correct(
    subject: Any,
    base: Any = None,
    *,
    out: str | os.PathLike[str] | None = None,
    fill: bool = False,
    overwrite: bool = False,
    bodies: bool = False,
    feasible: FeasibleSet | None = None,
    **options: Any,
) -> Correction | FileCorrection:
    """Find the closest model that is physically consistent.

    In a file, inconsistent links are corrected in the text, and everything else keeps every byte.
    In a robot, only bodies that violate a constraint change; ``optimality`` proves that no model is
    much closer.

    Parameters
    ----------
    subject : path, Robot or array_like, shape (nb,)
        A description file, a robot, or base parameters of `base`: BPFC, eq. (52)-(56) of Sousa
        and Cortesao (2014).
    base : BaseParameters, Robot or path, optional
        The base parameters that the entries of an array are values of.
    out : path, optional
        Path of the corrected file; without it, ``.write(path)`` of the result writes the file.
    fill : bool
        For a file, also give a little mass and volume to moving bodies that have none; simulators
        reject them otherwise.
    overwrite : bool
        Whether an existing file `out` is replaced.
    bodies : bool
        For a file, correct the moving bodies instead, each the sum of its links.
    feasible : FeasibleSet, optional
        For a robot or base parameters: the constraints, instead of `consistency` and bounds.
    **options
        The metric "euclidean" is the paper's distance of the vectors, in SI numbers; "weighted"
        that of ``weight @ vector``, with the triangle of a regressor as weight of the torques;
        "entropic" the second-order form of the entropic divergence (log-det Bregman, Lee, Wensing
        and Park 2020) around a model: a distance of mass distributions, which does not depend on
        units or frames. Files take `metric`, "euclidean" or "barrier" (weighed against entropy:
        thicker bodies), and `margin`, the smallest second moment of a link over their sum.
        ``total_mass=24.5`` is what the robot weighs on a scale: all bodies, or links of a file,
        are scaled in proportion to their described masses; of (lower, upper), the nearer end.
        ``for_="mujoco"`` also thickens links of a file that this program rejects, and fills.

    Returns
    -------
    Correction or FileCorrection
        For a file a `FileCorrection` with the new text, the changes, and verdicts before and after.

    Raises
    ------
    InputError
        A file cannot be read or corrected, or an option has no effect here.
    OutputError
        `out` exists or cannot be written, or the new text did not pass verification.
    SolverError
        No solver returned a solution that could be verified.
    """
    if isinstance(subject, str | os.PathLike) and not bodies:
        void = options if feasible is None else [*options, "feasible"]
        _refuse_options_of_bodies(void, base, ("metric", "margin", "total_mass", "for_"))
        if overwrite and out is None:
            raise InputError("overwrite=True applies to the file named by out=", option="overwrite")
        if out is not None:
            check_writable(os.fspath(out), overwrite=overwrite)
        changed = correct_file(subject, fill=fill, **options)
        if out is not None:
            changed.write(out, overwrite=overwrite)
        return changed
    for name, use in (("out", out is not None), ("fill", fill), ("overwrite", overwrite)):
        if use:
            raise InputError(
                f"{name}= applies to the text of a file: feasid.write(correction.robot, path) "
                "writes a corrected robot",
                option=name,
            )
    if isinstance(subject, str | os.PathLike):
        subject = load_robot(subject)
    elif bodies:
        raise InputError("bodies=True is for files: robots are corrected by moving bodies")
    return correct_parameters(subject, base, feasible=feasible, **options)


def _refuse_options_of_bodies(options: Iterable[str], base: Any, known: Collection[str]) -> None:
    """Reject options that have no effect on a file, whose links are checked one by one."""
    void = [name for name in options if name not in known] or ["base"] * (base is not None)
    if void:
        raise InputError(
            f"{void[0]}= applies to moving bodies, and a file is checked link by link: "
            "use bodies=True, or load the robot",
            option=void[0],
        )
