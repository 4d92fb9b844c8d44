"""Base parameters: which combinations of a robot's standard parameters can be identified at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from feasid.core.arguments import checked, checked_methods
from feasid.core.arrays import Array
from feasid.core.display import Display, Displayed, Measure
from feasid.core.errors import InputError, did_you_mean
from feasid.core.threads import one_thread
from feasid.parameters.identifiability import views
from feasid.parameters.identifiability.coefficients import Coefficients
from feasid.parameters.identifiability.echelon import Echelon
from feasid.parameters.identifiability.exact import RankCheck
from feasid.parameters.identifiability.experiment import (
    Experiment,
    Joints,
    MissingCombinations,
    ReorderedCoefficients,
    RestrictedCoefficients,
)
from feasid.parameters.identifiability.parameters import (
    ALONE,
    COMBINED,
    NEVER,
    IdentifiedParameters,
)
from feasid.parameters.identifiability.rounding import RoundedNumber, choose_rounding
from feasid.parameters.identifiability.rounding import with_exact_geometry as with_exact_geometry
from feasid.robot.description import Robot
from feasid.robot.dynamics.regressor import regressor
from feasid.robot.formats.load import load_robot
from feasid.robot.inertia import SYMBOLS, change_frame
from feasid.robot.known import Index, Known, Unknowns, equalities
from feasid.robot.layout import find_link

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from scipy import sparse


MAX_ROUNDINGS_SPELLED = 4  #: Roundings that are spelled out in a sentence.


def _preferred_order(
    robot: Robot, order: str | Sequence[str], within: Sequence[str] | None
) -> Index:
    """All columns, the preferred ones first."""
    columns = np.arange(robot.size)
    if within is not None:
        for ten in robot.inertial_columns:
            columns[ten] = ten[[SYMBOLS.index(symbol) for symbol in within]]
    elif not isinstance(order, str):
        first = [views.parameter_column(robot, name) for name in order]
        columns = np.array([*dict.fromkeys([*first, *columns.tolist()])], dtype=np.intp)
    return columns


@checked_methods
@dataclass(frozen=True, eq=False, repr=False)
class BaseParameters(IdentifiedParameters, Displayed):
    """The base parameters ``beta = K delta`` of a robot with n standard parameters delta.

    K = Pb' + Kd Pd' is the reduced row echelon form with the first independent columns from the
    left, Sousa and Cortesao (2014) eq. (38), (39); every combination that can be identified is a
    combination of its nb rows, and K z = 0 for exactly the changes z that no motion shows.
    """

    @cached_property
    def Kd(self) -> Array:  # noqa: N802
        """Coefficients of the dependent parameters, eq. (32); shape (nb, n - nb), SI units."""
        return np.asarray(self.coefficients.kd.toarray())

    @cached_property
    def K(self) -> Array:  # noqa: N802
        """Matrix of beta = K delta, shape (nb, n)."""
        return np.asarray(self.matrix.toarray())

    @cached_property
    def Pb(self) -> Array:  # noqa: N802
        """Selects the leading parameters: delta_b = Pb' delta, eq. (33); shape (n, nb)."""
        return np.eye(self.robot.size)[:, self.independent]

    @cached_property
    def Pd(self) -> Array:  # noqa: N802
        """Selects the dependent parameters: delta_d = Pd' delta, eq. (33); shape (n, n - nb)."""
        return np.eye(self.robot.size)[:, self.dependent]

    @cached_property
    def G(self) -> Array:  # noqa: N802
        """[K; Pd'], invertible: delta to (beta, delta_d), eq. (42)-(46); shape (n, n)."""
        return np.vstack([self.K, self.Pd.T])

    @cached_property
    def nullspace(self) -> Array:
        """Directions that change no torque, across one joint per column, shape (n, n - nb)."""
        return np.asarray(self.transfers.toarray(), dtype=np.float64)

    @property
    def transfers(self) -> sparse.csc_array:
        """Sparse transfers to the parents: the R of Wensing et al. (2024), App. G."""
        return self.coefficients.nullspace

    @property
    def descriptor(self) -> sparse.csr_array:
        """Combinations that can be identified, joint by joint, sparse: the N of App. G.

        Its rows span the same space as those of K; shape (nb, n).
        """
        return self.coefficients.descriptor

    @cached_property
    def deciding(self) -> tuple[RoundedNumber, ...]:
        """Roundings that change the number of base parameters."""
        if self.literal.size == self.size:
            return ()
        echelon = self.coefficients.echelon
        out = []
        for joint in dict.fromkeys(s.joint for s in self.roundings):
            robot, _ = with_exact_geometry(self.robot, self.rounding, literal=[joint])
            run = echelon.run.with_robot(self.experiment.apply_to(robot))
            if len(replace(self.coefficients, echelon=Echelon(run)).independent) != self.size:
                out += [s for s in self.roundings if s.joint == joint]
        return tuple(out)

    def rounding_note(self) -> str:
        """The roundings taken for exact geometry, and the count for the literal numbers."""
        if not self.roundings:
            return "no rounding in the description"
        decide = self.deciding or self.roundings
        spelled = [str(s) for s in decide[:MAX_ROUNDINGS_SPELLED]]
        if len(decide) > MAX_ROUNDINGS_SPELLED:
            spelled.append(f"and {len(decide) - MAX_ROUNDINGS_SPELLED} more")
        text = "; ".join(spelled)
        if not self.deciding:
            return f"{text}: no count depends on it"
        others = len(self.roundings) - len(self.deciding)
        text += f" (decisive; {others} other roundings are not)" if others else " (decisive)"
        literal = self.literal.size
        return f"{text}: {literal} base parameters when taken literally, {self.size} exact"

    @cached_property
    def rank_check(self) -> RankCheck:
        """Whether exact arithmetic confirms every rank and every leading parameter.

        Its truth value is the answer; if it is false, ``.reason`` gives the reason, usually that
        the geometry is not rational.
        """
        return self.coefficients.check_ranks()

    @cached_property
    def literal(self) -> BaseParameters:
        """Base parameters for the numbers as written, without `roundings`."""
        if not self.roundings:
            return self
        echelon = self.coefficients.echelon
        run = echelon.run.with_robot(self.experiment.apply_to(self.robot))
        again = replace(self.coefficients, echelon=replace(echelon, run=run))
        return BaseParameters(self.robot, again, experiment=self.experiment)

    def missing_for(self, use: BaseParameters) -> MissingCombinations:
        """Combinations that a use of the model needs and this experiment leaves unknown.

        Parameters
        ----------
        use : BaseParameters
            Base parameters of the same robot for the use of the model: all motions, free flight,
            another gravity.

        Returns
        -------
        Gap

        Raises
        ------
        InputError
            The two belong to different robots.
        """
        return MissingCombinations(self.coefficients, use.coefficients, use.expressions)

    def values(self, parameters: npt.ArrayLike) -> Array:
        """The base parameters K delta of standard parameters delta, eq. (38).

        Parameters
        ----------
        parameters : array_like, shape (n,)

        Returns
        -------
        ndarray, shape (nb,)

        Raises
        ------
        InputError
            The length is wrong, or an entry is not finite; the message names it.
        """
        return np.asarray(self.matrix @ self.robot.check_parameters(parameters))

    def table(self) -> str:
        """Table of identifiable parts of each parameter, and of the spans' dimensions, per body.

        The layout of Tables 2, 4 and 5 of Wensing et al. (2024); with ``order="paper"`` also
        their choice of leading parameters.
        """
        without = None
        run = self.coefficients.echelon.run
        if self.robot.gravity.any():
            weightless = run.robot.with_gravity((0.0, 0.0, 0.0))
            without = BaseParameters(weightless, Coefficients(Echelon(run.with_robot(weightless))))
        return views.symbol_table(self, without)

    def explain(self, name: str) -> str:
        """Explain what can be identified of a parameter and which joint hides it.

        Parameters
        ----------
        name : str
            As printed, ``"forearm.m"``.

        Returns
        -------
        str

        Raises
        ------
        InputError
            With the closest known name.

        Examples
        --------
        >>> import feasid
        >>> rows = [(0, 1, 0, 0), (0, 1, 0, 0)]
        >>> base = base_parameters(feasid.Robot.from_dh(rows, gravity=(0, -9.81, 0)))
        >>> base.explain("l2y")
        'l2y is identifiable alone.'
        """
        return views.explain_parameter(self, name)

    def listing(self) -> str:
        """One numbered line per base parameter."""
        width = len(str(self.size))
        return "\n".join(f"{k + 1:>{width}}  {text}" for k, text in enumerate(self.expressions))

    def plot(self) -> Figure:
        """A figure of `table`. Needs the extra "plot"."""
        from feasid.core.figures import draw

        rows, owners = views.symbol_rows(self), views.parameter_owners(self.robot)
        return draw(views.identifiability_map(rows, owners))

    def display(self) -> Display:
        """The count, the verification, and as many combinations as fit on the screen."""
        count = {kind: self.status.count(kind) for kind in (ALONE, COMBINED, NEVER)}
        others, unsure = self.robot.size - self.unknowns, self.check.unconfirmed
        what = "unknown parameters" if others else "parameters"
        counts = f"{count[ALONE]} known alone, {count[COMBINED]} in sums, {count[NEVER]} never"
        outcome = f"leave {', '.join(unsure)} open" if unsure else "confirm the count"
        measures = [
            Measure("parameters", counts + (f", {others} given" if others else "")),
            Measure("random motions", outcome, "confirmed", not unsure),
        ]
        if self.roundings:
            measures.append(Measure("rounded geometry", f"{len(self.roundings)} taken as exact"))
        return Display(
            f"base parameters of {self.robot.name!r}: {self.size} of {self.unknowns} {what}",
            measures,
            self.warnings,
            self.listing().splitlines(),
            "more: base.listing(), base.table(), base.explain('body.m'), base.K",
        )


@checked
def base_parameters(
    robot: Robot | str | PathLike[str],
    *,
    measured: Joints | None = None,
    held: Joints | Mapping[str, npt.ArrayLike] = (),
    static: bool = False,
    gravity: npt.ArrayLike | None = None,
    order: str | Sequence[str] = "left",
    snap: str | float | None = "file",
    known: Known | None = None,
    equal: Sequence[tuple[str, str]] = (),
    mirrored: Sequence[tuple[str, str, str]] = (),
) -> BaseParameters:
    """The combinations of a robot's parameters that its torques determine.

    Parameters
    ----------
    robot : Robot or path
        Its geometry, gravity, rotors and joint terms; parameter values do not matter.
    measured : str or collection of str, optional
        Joints whose torques are measured; default all. For a floating base alone, its joint.
    held : str, collection of str, or mapping of str to position
        Joints that do not move, at their home position or at a given position [rad or m]: locked
        joints, a base on a force plate, a force-torque sensor; see `feasid.robot.variants`. Their
        forces count if they are measured.
    static : bool
        Use postures at rest only, for a model of gravity compensation.
    gravity : array_like, shape (3,), optional
        In the base frame [m/s^2]; default the robot's.
    order : {"left", "paper"} or sequence of str
        Which parameters lead the base parameters: "left" prefers parameters from left to right;
        "paper" prefers, within each body, the order of the tables of Wensing et al. (2024); a
        sequence gives this order by ten symbols, or names parameters ("forearm.m") to prefer before
        all others.

    snap : {"file", None} or float
        By default, geometry that is exact up to the rounding in the robot's file (1.5708 for a
        right angle) is treated as exact, and ``roundings`` lists it. A number is the rounding of
        angles to assume instead [rad]; None takes all numbers literally.
    known, equal, mirrored
        Parameters that are not unknown, as for `feasid.feasible_set`. Those of massless bodies are
        never unknown.

    Returns
    -------
    BaseParameters

    Raises
    ------
    InputError
        A joint or symbol is unknown; the message names it.
    RankError
        Random motions do not confirm the count at a joint; the message names it.

    Examples
    --------
    >>> import feasid
    >>> robot = feasid.Robot.from_dh([(0, 1, 0, 0), (0, 1, 0, 0)], gravity=(0, -9.81, 0))
    >>> print(base_parameters(robot).listing())
    1  L1zz - m1 - m2
    2  l1x + m1 + m2
    3  l1y
    4  L2zz - m2
    5  l2x + m2
    6  l2y
    """
    if not isinstance(robot, Robot):
        robot = load_robot(robot)
    experiment = Experiment(measured, held, static, gravity)
    rounding = choose_rounding(robot, snap)
    exact, changes = with_exact_geometry(robot, rounding)
    run = experiment.recursion(exact)
    if isinstance(order, str) and order not in ("left", "paper"):
        hint = did_you_mean(order, ("left", "paper"))
        raise InputError(f"order {order!r} is not known{hint}: 'left', 'paper' or names")
    if not run.robot.is_tree and (run.measured is not None or run.held):
        raise InputError(
            f"the joints of robot {run.robot.name!r} are coupled or in loops: "
            "measured= and held= are for robots whose joints move by themselves"
        )
    within = views.PAPER_SYMBOLS if order == "paper" else None
    if not isinstance(order, str) and sorted(order) == sorted(views.PAPER_SYMBOLS):
        within = tuple(order)
    given_columns = equalities(robot, known, equal, mirrored)
    coefficients: Coefficients
    if given_columns or not run.robot.is_tree:
        unknowns = Unknowns.from_equalities(run.robot.size, given_columns)
        columns = _preferred_order(run.robot, order, within)
        coefficients = RestrictedCoefficients(Echelon(run), unknowns, columns)
    elif within is not None or isinstance(order, str):
        coefficients = Coefficients(Echelon(run, within))
    else:
        columns = _preferred_order(run.robot, order, None)
        coefficients = ReorderedCoefficients(Echelon(run), columns)
    base = BaseParameters(robot, coefficients, changes, rounding, experiment)
    base.check  # noqa: B018  (raises)
    return base


FACTOR_ROWS = 4
"""Equations of random motions per unknown when the free factors of gains are counted."""

FACTOR_GAP = 1e-8
"""Singular values of scaled columns below this share of the largest belong to free factors: the
next ones of arms are 1e-5 and above, those of factors 1e-15."""


@checked
@one_thread()
def servo_scale_groups(robot: Robot | str | PathLike[str]) -> tuple[tuple[str, ...], ...]:
    """Groups of joints whose servo gains are identifiable only up to a common factor.

    A servo's equation ``kp_j e_j = Y_j delta`` stays true when gains and parameters are multiplied
    by one factor. Which factors per joint c_j do so, ``Y_j delta' = c_j Y_j delta`` for every
    motion, follows from the base parameters: ``[W, -diag(W beta)]`` of random motions has a null
    vector (beta', c) for each. Joints that are coupled by the mass matrix or by gravity share one.

    Parameters
    ----------
    robot : Robot or path

    Returns
    -------
    tuple of tuple of str
        Groups of joints, one for an arm, one per axis for a gantry. One factor per group has to be
        determined otherwise.

    Raises
    ------
    InputError
        Joints of the robot are coupled or have several degrees of freedom.
    """
    model = robot if isinstance(robot, Robot) else load_robot(robot)
    if not model.is_plain:
        raise InputError(
            f"gains are those of joints that move by themselves with one degree of freedom each; "
            f"robot {model.name!r} has others"
        )
    model = model.without_joint_terms()
    columns, n = list(base_parameters(model).independent), model.dof
    rng = np.random.default_rng(0)
    motions = FACTOR_ROWS * (len(columns) + n) // n + len(columns)
    W = regressor(model, *rng.standard_normal((3, motions, n)))[:, :, columns]
    # Parameters of any size that act with similar torques.
    torques = W @ (rng.standard_normal(len(columns)) / np.sqrt(np.mean(W**2, axis=(0, 1))))
    rows_with_gains = np.concatenate([W, -torques[:, :, None] * np.eye(n)], axis=2)
    rows_with_gains = rows_with_gains.reshape(motions * n, -1)
    norms = np.linalg.norm(rows_with_gains, axis=0)
    _, s, V = np.linalg.svd(rows_with_gains / norms, full_matrices=False)
    factors = (V[s < FACTOR_GAP * s[0]] / norms)[:, len(columns) :]
    factors = factors / np.abs(factors).max(axis=1, keepdims=True)
    groups: dict[int, list[str]] = {}
    for j, joint in enumerate(model.joints):
        same = (g for g in groups if np.allclose(factors[:, j], factors[:, g], atol=1e-6))
        groups.setdefault(next(same, j), []).append(joint)
    return tuple(map(tuple, groups.values()))


def load_columns(base: BaseParameters, body: str | None = None) -> tuple[str, Array]:
    """The link that carries a load (default: the last), and what the load's ten parameters add.

    Shape (nb, 10): change of the base parameters by the load's ten, in that link's frame.
    """
    k, link = find_link(base.robot, body)
    columns = np.asarray(base.K, dtype=np.float64)[:, base.robot.inertial_columns[k]]
    return link.name, columns @ change_frame(link.rotation, link.position)


def load_parameters(base: BaseParameters, load: Any, body: str | None = None) -> Array:
    """Base parameters that a known load on a body (default: the last) adds, shape (nb,)."""
    ten = np.asarray(getattr(load, "parameters", load), dtype=np.float64)
    if ten.shape != (10,) or not np.isfinite(ten).all() or ten[9] <= 0:
        raise InputError(
            "load= must be ten finite parameters with a positive mass, the last one", option="load"
        )
    return np.asarray(load_columns(base, body)[1] @ ten)


def resolve_base(base: Any) -> Any:
    """Base parameters from the argument `base=`; InputError where it is none."""
    if isinstance(base, str | Path | Robot):
        return base_parameters(base)
    if base is None:
        raise InputError(
            "base= is missing: numbers alone are base parameters and need their definition, "
            "base=feasid.base_parameters(robot); else pass a Robot or the path of one"
        )
    if not hasattr(base, "K") or not hasattr(base, "robot"):
        raise InputError(
            f"base must be base parameters, as feasid.base_parameters(robot) or those of a fit, or "
            f"a robot; {type(base).__name__} does not state what its numbers mean"
        )
    return base
