"""Many robots of one type with short logs: what they share, and one feasible fit of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from feasid.applications.fleet.page import draw, page
from feasid.applications.fleet.type_model import (
    TypeEquations,
    TypeModel,
    description_prior,
    deviation_of,
    find_type,
)
from feasid.core.arguments import checked, checked_methods
from feasid.core.arrays import Array
from feasid.core.codec import TRANSIENT, kinds
from feasid.core.display import Display, Displayed, Measure
from feasid.core.errors import FeasidError, InputError, NotEnoughDataError
from feasid.core.files import document_output, write_atomically
from feasid.core.notes import Note
from feasid.core.threads import one_thread
from feasid.identification.estimation.noise import Noise
from feasid.identification.estimation.priors import GaussianPrior
from feasid.identification.regression.reduce import restrict_terms
from feasid.identification.regression.triangle import Reduced
from feasid.options.tables import FitOptions
from feasid.results.archive.members import MODEL_KINDS, read_record, savable_options, write_record
from feasid.results.fit import Fit, fit
from feasid.robot.description import Robot
from feasid.robot.formats.fit_robot import resolve_robot
from feasid.robot.joint_terms import FRICTION

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

STANDS_OUT = 3.0
"""Number of standard deviations from which a robot is named."""

UNKNOWN = 0.1
"""Predicted error of all motions together above which the type counts as not determined."""


@checked_methods
@dataclass(frozen=True, eq=False, repr=False)
class Fleet(Displayed):
    """Robots of one type: the type, how much robots differ, and one fit of each."""

    robot: Robot  #: The type's description, with the joint terms that were fitted.
    prior: GaussianPrior  #: Of another robot of the type: its mean, and deviations from it.
    sizes: Mapping[str, float]  #: Evident deviations: shares of bodies, friction, and torque.
    #: By robot: ``seconds``, ``alone`` and ``error`` (cross-validation), ``predicted`` (on the
    #: motions of all robots), shares of torque.
    numbers: Mapping[str, tuple[float, float, float, float]]
    #: By robot the factors of its dry friction on the type's, by joint.
    friction: Mapping[str, tuple[float, ...]]
    outliers: Mapping[str, str]  #: For each robot that stands out: the parameters that differ.
    #: By robot; empty after `load`.
    fits: Mapping[str, Fit] = field(default_factory=dict, metadata=TRANSIENT)
    options: Mapping[str, Any] = field(default_factory=dict)  #: Of every fit.

    @property
    def table(self) -> pd.DataFrame:
        """By robot: seconds, errors alone and in the fleet, expected error, anomalies."""
        import pandas as pd

        columns = ["seconds", "alone", "error", "predicted"]
        index = pd.Index(list(self.numbers), name="robot")
        table = pd.DataFrame(list(self.numbers.values()), index, columns)
        table["stands out in"] = [self.outliers.get(name, "") for name in self.numbers]
        return table

    def fit(self, data: Any) -> Fit:
        """Fit another robot of the type to its log, however short.

        Parameters
        ----------
        data : DataFrame, mapping of arrays, path, or a sequence of these

        Returns
        -------
        Fit
            Its prior is the type with the spread between robots; both enter its expected errors.

        Raises
        ------
        LogError, NotEnoughDataError, InputError
            The log is not usable; the message names what is wrong.
        """
        return fit(data, self.robot, **{**self.options, "prior": self.prior})

    @document_output
    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Save the type and the table, without fits, in a small file that `feasid.load` reads."""
        options = savable_options(self.options, KNOWN)
        record = replace(self, robot=replace(self.robot, source=None), options=options)
        head = {"format": "feasid fleet", "version": VERSION}
        write_record(path, record, KNOWN, head, {}, overwrite)

    def plot(self) -> Figure:
        """Errors of every robot, alone and in the fleet, and its friction over the type's.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return draw(self.table, self.friction, self.outliers)

    @document_output
    def report(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write one self-contained HTML page of all robots.

        Raises
        ------
        MissingExtraError
            Names the extra that pictures need.
        """
        text = page(self.display(), self.table, self.plot())
        write_atomically(path, text.encode(), overwrite=overwrite)

    def display(self) -> Display:
        """A short display of the fleet."""
        table = self.table
        median = table[["alone", "error", "predicted"]].median()
        sizes = {"bodies": "inertials", "friction": "friction", "offsets": "offsets"}
        known = bool(median["predicted"] <= UNKNOWN)
        measures = [
            Measure("median error of fits alone", f"{100 * median['alone']:.3g} %"),
            Measure("median error in the fleet", f"{100 * median['error']:.3g} %"),
            Measure("predicted on all motions", f"{100 * median['predicted']:.3g} %", met=known),
            *(
                Measure(f"deviation of {k}", f"{100 * self.sizes[v]:.3g} %")
                for k, v in sizes.items()
                if v in self.sizes
            ),
        ]
        troubles = [f"{name} stands out in {what}" for name, what in self.outliers.items()]
        if not known:
            troubles.append(
                "all logs together do not determine the type: record a rich log of one robot "
                "(feasid.excite)"
            )
        return Display(f"{len(table)} robots of type {self.robot.name!r}", measures, troubles,
                       more="more: fleet.table, fleet.fits, fleet.fit(log)")  # fmt: skip


VERSION, KNOWN = 1, MODEL_KINDS | kinds(Fleet, GaussianPrior)
"""Of saved fleets: their format, and what they hold."""


def read_fleet(path: str, content: Mapping[str, bytes]) -> Fleet:
    """The fleet that the members of an archive hold; see `feasid.load`."""
    return read_record(path, content, Fleet, KNOWN, VERSION, "a fleet; fit it again")


@checked
@one_thread()
def fit_fleet(
    robots: Mapping[str, Any],
    robot: Robot | str | Path | None = None,
    **options: Unpack[FitOptions],
) -> Fleet:
    """Fit robots of one type together: each to its own logs, with what all have in common as prior.

    Parameters
    ----------
    robots : mapping of name to log, or to a sequence of logs
        Logs as `feasid.fit` takes them.
    robot : Robot or path, optional
        The description of the type; default ``attrs["robot"]`` of the first log.
    **options
        Options of `feasid.fit`, for every robot; `prior` is not among them.

    Returns
    -------
    Fleet
        ``.fits`` by name, ``.table``, ``.outliers``, and ``.fit(log)`` for another robot.

    Raises
    ------
    NotEnoughDataError
        Fewer than two robots.
    FeasidError
        A log is not usable; the message begins with the name of the robot.
    """
    if len(robots) < 2:
        raise NotEnoughDataError("a fleet has two robots or more: feasid.fit fits one")
    if "prior" in options:
        raise InputError("prior has no effect: the prior of each robot is the type", option="prior")
    described = resolve_robot(next(iter(robots.values())), robot)
    chosen: dict[str, Any] = {"diagnose": False, "candidates": (), **options}
    alone: dict[str, Fit] = {}
    for name, logs in robots.items():
        try:
            alone[name] = fit(logs, described, **chosen)
        except FeasidError as error:
            raise type(error)(f"{name}: {error}") from error
    best = max(alone.values(), key=_information)
    alike = {name: _as_alike(one, best) for name, one in alone.items()}
    # One robot's base may be tilted and its zeros off, which the type's are not.
    model = replace(best.description, gravity=described.gravity, bodies=described.bodies)
    return _combine(alike, best, model, chosen)


def _information(fitted: Fit) -> tuple[int, float]:
    """Number of parameters, and the information of a log on them as a logarithm."""
    told = np.linalg.slogdet(np.eye(fitted.base.size) + fitted.triangle[0])[1]
    return fitted.description.size, float(told)


def _as_alike(alone: Fit, best: Fit) -> Fit:
    """The fit with the delay of the best log, and no less noise: sensors of a type are alike."""
    change = best.delay - alone.delay
    noise, least = alone.estimate.noise, best.estimate.noise
    rows, usual = least.correlation, noise.correlation / least.correlation
    common = Noise(np.maximum(noise.quick * usual, least.quick),
                   np.maximum(noise.slow * usual, least.slow), rows)  # fmt: skip
    reduced, equations = alone.reduced, alone.equations
    if change and reduced.strata:
        same = equations is reduced
        reduced = reduced.with_shifted_torques(change)
        equations = reduced if same else equations.with_shifted_torques(change)
    estimator = replace(alone.estimator, noise=common)
    estimate = replace(alone.estimate, noise=common, triangle=common.whitened_triangle(equations))
    return replace(alone, reduced=reduced, equations=equations, estimator=estimator,
                   estimate=estimate, delay=best.delay)  # fmt: skip


def _combine(
    alone: Mapping[str, Fit], best: Fit, model: Robot, options: Mapping[str, Any]
) -> Fleet:
    """The type of robots that were fitted alone, and their fits with it."""
    column = {parameter: k for k, parameter in enumerate(model.parameter_names)}
    places, equations = {}, []
    for name, one in alone.items():
        own = one.description.parameter_names
        if not column.keys() >= {*own} or one.estimator.prior is None:
            raise InputError(f"{name}: fitted with other joint terms than the others")
        places[name] = [column[parameter] for parameter in own]
        R, rho, _ = one.triangle
        A = np.zeros((len(rho), model.size))
        A[:, places[name]] = R @ np.asarray(one.base.K, dtype=np.float64)
        equations.append(TypeEquations(A, rho))
    problem = best.estimator.problem(best.equations)
    prior = description_prior(model, problem.reference, problem.sizes)
    torques = _torques(model, list(alone.values()))
    common = find_type(model, equations, prior, torques)
    motions = _sum_motions(list(alone.values()))
    fits, numbers, outliers, friction = {}, {}, {}, {}
    dry = [
        c for k in range(len(model.drives)) for s, c in model.drive_columns(k).items() if s == "fc"
    ]
    for k, name in enumerate(alone):
        others = [e for j, e in enumerate(equations) if j != k]
        known = find_type(model, others, prior, torques, common.sizes)
        fits[name] = _with_type(alone[name], model, known)
        delta = np.full(model.size, np.nan)
        delta[places[name]] = fits[name].delta
        friction[name] = tuple((delta[dry] / np.maximum(np.abs(common.mean[dry]), 1e-9)).tolist())
        if what := _describe_outlier(model, equations[k], known):
            outliers[name] = what
        numbers[name] = (
            fits[name].reduced.samples * fits[name].reduced.period,
            _held_out(alone[name]),
            _held_out(fits[name]),
            _expected_error(fits[name], motions),
        )
    sizes = dict(zip(("inertials", "friction", "offsets"), common.sizes, strict=True))
    return Fleet(model, _prior_of(model, common), sizes, numbers, friction, outliers, fits, options)


def _prior_of(robot: Robot, known: TypeModel) -> GaussianPrior:
    """The prior of a robot that was not used to estimate the type."""
    covariance = known.covariance + known.deviations
    return GaussianPrior(tuple(robot.parameter_names), known.mean, covariance)


def _with_type(alone: Fit, model: Robot, known: TypeModel) -> Fit:
    """The fit of a robot with the type of the others as its prior."""
    prior = _prior_of(model, known)
    estimator = replace(alone.estimator, prior=prior, prior_weight=1.0, noise=alone.estimate.noise)
    estimate = estimator.fit(alone.equations)
    note = Note("the prior is the type, estimated from the other robots' logs, and the spread "
                "between robots",
                "fleet-prior")  # fmt: skip
    return replace(
        alone,
        estimator=estimator.keep(estimate),
        estimate=estimate,
        notes=(note, *estimate.notes, *(n for n in alone.notes if n not in alone.estimate.notes)),
        options={**alone.options, "prior": prior, "prior_weight": 1.0},
    )


def _held_out(fitted: Fit) -> float:
    """Cross-validation error of all joints."""
    errors = fitted.quality.errors
    return float(errors.overall_error(errors.model))


def _sum_motions(fits: Sequence[Fit]) -> list[tuple[Fit, Reduced]]:
    """Motions of robots that have the same equations, added, each sum with one of their fits."""
    alike: dict[Any, list[Fit]] = {}
    for f in fits:
        kind = f.description.parameter_names, f.reduced.columns, f.reduced.supports
        alike.setdefault(kind, []).append(f)
    sums = []
    for some in alike.values():
        # Friction of some may change its sign more abruptly, which their motion does not show.
        mark = some[0].reduced.fingerprint
        first, *rest = (replace(f.reduced, fingerprint=mark, strata=()) for f in some)
        sums.append((some[0], sum(rest, first)))
    return sums


def _expected_error(fitted: Fit, motions: Sequence[tuple[Fit, Reduced]]) -> float:
    """Error to expect on the motions of all robots that show what this one has."""
    parts = [
        restrict_terms(motion, other.description, fitted.base)
        for other, motion in motions
        if other.base.experiment.measured_joints == fitted.base.experiment.measured_joints
        and {*other.description.parameter_names} >= {*fitted.description.parameter_names}
    ]
    squares = [part.rows * fitted.predicted_errors(part)["all"] ** 2 for part in parts]
    return float(np.sqrt(sum(squares) / sum(part.rows for part in parts)))


def _torques(robot: Robot, fits: Sequence[Fit]) -> Array:
    """For every parameter the root mean square of its joint's torque, (n,)."""
    squares = sum(f.reduced.torque_norms**2 for f in fits) / sum(f.reduced.rows for f in fits)
    rms, out = np.sqrt(np.asarray(squares)), np.ones(robot.size)
    for k in range(len(robot.drives)):
        for column in robot.drive_columns(k).values():
            out[column] = rms[k] if k < len(rms) else 1.0
    return out


def _describe_outlier(robot: Robot, equations: TypeEquations, known: TypeModel) -> str:
    """Parameters of a robot that differ from the type by more than `STANDS_OUT` standard
    deviations, largest first.
    """
    mean, size = deviation_of(equations, known)
    scores: list[tuple[float, str]] = []
    for body, ten in zip(robot.bodies, robot.inertial_columns, strict=True):
        if size[ten[9]] > 0:
            share = mean[ten[9]] / known.mean[ten[9]]
            scores.append((abs(mean[ten[9]]) / size[ten[9]], f"mass of {body.name} {share:+.0%}"))
    for k, drive in enumerate(robot.drives):
        for symbol, column in robot.drive_columns(k).items():
            if size[column] > 0:
                offset = symbol in FRICTION["offset"]
                change = f"{mean[column]:+.2g}" if offset else (
                    f"times {1 + mean[column] / known.mean[column]:.2g}"
                )  # fmt: skip
                score = abs(mean[column]) / size[column]
                scores.append((score, f"{symbol} of {drive.name} {change}"))
    return ", ".join(text for score, text in sorted(scores, reverse=True) if score > STANDS_OUT)
