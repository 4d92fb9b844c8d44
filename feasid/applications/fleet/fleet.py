"""Many robots of one type with short logs: what they share, and one feasible fit of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from feasid.applications.fleet.drift import OFFSETS, changes_along, describe_change, usual_variance
from feasid.applications.fleet.page import write_page
from feasid.applications.fleet.type_model import TypeEquations, TypeModel, find_type, type_prior
from feasid.core.arguments import checked, checked_methods
from feasid.core.charts import BLUE, GREY, PALETTE, RED, Chart, Panel, Series
from feasid.core.codec import TRANSIENT, kinds
from feasid.core.display import Display, Displayed, Measure, plain
from feasid.core.errors import InputError, LogError, NotEnoughDataError, OutputError, name_input
from feasid.core.figures import draw
from feasid.core.files import document_output
from feasid.core.notes import Note
from feasid.core.progress import step
from feasid.core.threads import one_thread
from feasid.identification.effects.table import EFFECTS
from feasid.identification.estimation.noise import Noise
from feasid.identification.estimation.priors import GaussianPrior
from feasid.identification.regression.reduce import restrict_terms
from feasid.options.tables import FitOptions
from feasid.results.archive.members import MODEL_KINDS, savable_options, write_record
from feasid.results.fit import Fit, fit
from feasid.robot.description import Robot
from feasid.robot.formats.fit_robot import resolve_robot
from feasid.robot.known import weighed_parameters

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

UNKNOWN = 0.1
"""Predicted error of all motions together above which the type counts as not determined."""

UNLIKE = 6.0
"""Standard deviations from which a parameter unlike the type's is named: healthy arms in simulation
have 4.2 at most."""

TOO_LITTLE = (
    "all logs together do not determine the type: record a rich log of one robot (feasid.excite)"
)


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
    #: For each robot that stands out: in what, each a note with ``kind``, ``place``, ``size``,
    #: and ``log`` where it is one of its logs.
    outliers: Mapping[str, tuple[Note, ...]]
    #: By robot; empty after `load`.
    fits: Mapping[str, Fit] = field(default_factory=dict, metadata=TRANSIENT)
    options: Mapping[str, Any] = field(default_factory=dict)  #: Of every fit.

    @property
    def table(self) -> pd.DataFrame:
        """By robot: seconds, errors alone and in the fleet, expected error, anomalies."""
        import pandas as pd

        columns = ["seconds", "alone", "error", "predicted"]
        table = pd.DataFrame.from_dict(dict(self.numbers), orient="index", columns=columns)
        table["stands out in"] = ["; ".join(self.outliers.get(name, ())) for name in self.numbers]
        return table.rename_axis("robot")

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
        if codes := {*self.options} - {*savable_options(self.options, KNOWN)}:
            text = f"option {min(codes)} is code, which no file holds: save the fits of this fleet"
            raise OutputError(text, option=min(codes))
        head = {"format": "feasid fleet", "version": VERSION}
        write_record(path, self, KNOWN, head, {}, overwrite)

    def plot(self) -> Figure:
        """Errors of every robot, alone and in the fleet, and its friction over the type's."""
        return draw(self.chart())

    def chart(self) -> Chart:
        """Errors and friction of every robot, which `plot` draws."""
        names, table = [*self.numbers], 100.0 * self.table[["alone", "error", "predicted"]]
        places = np.arange(len(names))
        errors = [
            Series(places, table["alone"], GREY, "fit alone", "o"),
            Series(places, table["error"], BLUE, "fit in the fleet", "s"),
            Series(places, table["predicted"], RED, "predicted on all motions", "x"),
        ]
        rubbing = [joint for joint, term in self.robot.parameter_names if term == "fc"]
        friction = np.array([*self.friction.values()])
        joints = [
            Series(places, factors, PALETTE[k % len(PALETTE)], joint, "o", opacity=0.7)
            for k, (joint, factors) in enumerate(zip(rubbing, friction.T, strict=True))
        ]
        worst = table["error"].idxmax()
        return Chart(
            f"{worst} misses {table['error'].max():.2g} % of the torque, the most of {len(names)} "
            "robots",
            "errors of every robot, alone and in the fleet, and its friction over the type's",
            [
                Panel(errors, "torque error [%]", scales=("", "log"), names=(names, ())),
                Panel(joints, "friction / the type's", names=(names, ()), lines=((1, 1.0, GREY),)),
            ],
            columns=1,
            height=2.7,
            width=max(7.0, 0.45 * len(names) + 3.0),
        )

    @document_output
    def report(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write one self-contained HTML page of all robots."""
        table = self.table.rename(index=plain)
        errors = ["alone", "error", "predicted"]
        table[errors] = table[errors].map(lambda value: f"{100 * value:.3g} %")
        write_page(path, self.display(), self.chart(), table, overwrite)

    def display(self) -> Display:
        """A short display of the fleet."""
        alone, error, predicted = np.median(list(self.numbers.values()), axis=0)[1:].tolist()
        known = predicted <= UNKNOWN
        measures = [
            Measure("median error of fits alone", f"{100 * alone:.3g} %"),
            Measure("median error in the fleet", f"{100 * error:.3g} %"),
            Measure("predicted on all motions", f"{100 * predicted:.3g} %", met=known),
            *(Measure(f"deviation of {k}", f"{100 * v:.3g} %") for k, v in self.sizes.items()),
        ]
        troubles = [f"{name}: {note}" for name, notes in self.outliers.items() for note in notes]
        troubles += [] if known else [TOO_LITTLE]
        title = f"{len(self.numbers)} robots of type {self.robot.name!r}"
        return Display(
            title, measures, troubles, more="more: fleet.table, fleet.outliers, fleet.fits"
        )


VERSION, KNOWN = 2, MODEL_KINDS | kinds(Fleet, GaussianPrior)
"""Of saved fleets: their format, and what they hold."""


def logs_by_robot(folder: str) -> dict[str, list[str]]:
    """Logs in a folder by robot: by the name of a folder of them, or of a single file."""
    if not Path(folder).is_dir():
        raise InputError(f"{folder} is no folder: it holds one folder of logs for each robot")
    logs = {}
    for path in sorted(p for p in Path(folder).iterdir() if not p.name.startswith(".")):
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        logs[path.name if path.is_dir() else path.stem] = [str(f) for f in files]
    return logs


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
        raise InputError("prior is the type in a fleet: leave it out", option="prior")
    described = resolve_robot(next(iter(robots.values())), robot)
    for weighed in weighed_parameters(described, options.get("known")):
        text = (
            f"known {weighed.name} has a standard error, and was weighed on one robot of the fleet"
        )
        raise InputError(f"{text}: give the number alone, or fit it alone", option="known")
    settings: dict[str, Any] = {"candidates": (), **options}
    alone = _fit_each(robots, described, settings)
    # Friction of robots that were logged at other temperatures is compared at one, by one law.
    laws = [one.calibration.correction.friction_per_kelvin(one.robot) for one in alone.values()]
    if law := {joint: slopes for each in laws for joint, slopes in each.items()}:
        settings["friction_per_kelvin"] = {**law, **(options.get("friction_per_kelvin") or {})}
        alone = _fit_each(robots, described, settings)
    best = max(alone.values(), key=_information)
    sensed = {joint for one in alone.values() for joint in one.description.sensors}
    torques = [one.base.experiment.measured_joints or one.robot.joints for one in alone.values()]
    common = [j for j in torques[0] if all(j in others for others in torques)]
    for name, one in alone.items():
        for joint in sorted(sensed.difference(one.description.sensors)):
            raise LogError(
                f"{name}: the log has no column sensor_{joint}, and those of other robots do: add "
                f"it, or fit all without it: measured={common}",
                column=f"sensor_{joint}",
                joint=joint,
            )
    alike = {name: _as_alike(one, best) for name, one in alone.items()}
    # One robot's base may be tilted and its zeros off, which the type's are not. Motors of elastic
    # joints, which the options add, come before other bodies.
    bodies = *best.description.bodies[: -len(described.bodies)], *described.bodies
    model = replace(best.description, gravity=described.gravity, bodies=bodies)
    settings.pop("couplings", None)  # the type's robot has them
    return _combine(alike, best, model, settings)


def _fit_each(robots: Mapping[str, Any], model: Robot, options: dict[str, Any]) -> dict[str, Fit]:
    """Every robot fitted to its own logs."""
    alone: dict[str, Fit] = {}
    with step("fitting robots") as advance:
        for name, logs in robots.items():
            advance(len(alone), len(robots))
            with name_input(str(name)):
                alone[name] = fit(logs, model, **options)
    return alone


def _information(fitted: Fit) -> tuple[int, float]:
    """Number of parameters, and the information of a log on them as a logarithm."""
    logarithm = np.linalg.slogdet(np.eye(fitted.base.size) + fitted.triangle[0])[1]
    return fitted.description.size, float(logarithm)


def _as_alike(alone: Fit, best: Fit) -> Fit:
    """The fit with the delay of the best log, and no less noise: sensors of a type are alike."""
    change = best.torque_shift - alone.torque_shift
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
                   estimate=estimate, torque_shift=best.torque_shift)  # fmt: skip


def _combine(alone: Mapping[str, Fit], best: Fit, model: Robot, options: dict[str, Any]) -> Fleet:
    """The type of robots that were fitted alone, and their fits with it."""
    column = {parameter: k for k, parameter in enumerate(model.parameter_names)}
    equations = []
    for name, one in alone.items():
        names = one.description.parameter_names
        if not column.keys() >= {*names} or one.estimator.prior is None:
            raise InputError(f"{name}: fitted with other joint terms than the others")
        A = np.zeros((one.base.size, model.size))
        A[:, [column[parameter] for parameter in names]] = one.triangle[0] @ one.base.K
        equations.append(TypeEquations(A, one.triangle[1]))
    problem = best.estimator.problem(best.equations)
    prior = type_prior(model, problem.reference, problem.sizes)
    # For every parameter the root mean square of its joint's torque.
    data = [f.reduced for f in alone.values()]
    power = sum(r.torque_norms**2 for r in data) / sum(r.rows for r in data)
    rms, torques = np.sqrt(np.asarray(power)), np.ones(model.size)
    for k, joint in enumerate(next(iter(drive.coupling)) for drive in model.drives):
        if joint in model.coordinates:  # a passive one has no torque
            torques[[*model.drive_columns(k).values()]] = rms[model.coordinates.index(joint)] or 1.0
    common = find_type(model, equations, prior, torques)
    standing_out = find_standing_out(alone)
    fits, numbers, outliers, friction = {}, {}, {}, {}
    for k, name in enumerate(alone):
        others = [e for j, e in enumerate(equations) if j != k]
        known = find_type(model, others, prior, torques, common.sizes)
        fits[name] = one = _with_type(alone[name], _prior_of(model, known))
        fitted = dict(zip(one.robot.parameter_names, one.delta.tolist(), strict=True))
        friction[name] = tuple(
            fitted.get(parameter, np.nan) / max(abs(float(common.mean[c])), 1e-9)
            for parameter, c in column.items() if parameter[1] == "fc"
        )  # fmt: skip
        # What one log or one correction shows is in all parameters of its robot.
        if notes := standing_out[name] or describe_deviation(model, equations[k], known):
            outliers[name] = tuple(notes)
        # The error to expect on the motions of all robots with the same joint terms.
        squares: list[float] = []
        for other in alone.values():
            alike = other.description.parameter_names == one.description.parameter_names
            measured = other.base.experiment.measured_joints
            if alike and measured == one.base.experiment.measured_joints:
                motion = replace(other.reduced, strata=())
                part = restrict_terms(motion, other.description, one.base)
                squares += part.rows * [one.predicted_errors(part)["all"] ** 2]
        expected = float(np.sqrt(np.mean(squares)))
        by_itself, with_type = (
            e.overall_error(e.model) for e in (alone[name].quality.errors, one.quality.errors)
        )
        seconds = one.reduced.samples * one.reduced.period
        numbers[name] = seconds, by_itself, with_type, expected
    sizes = dict(zip(("inertials", "friction", "offsets"), common.sizes, strict=True))
    return Fleet(model, _prior_of(model, common), sizes, numbers, friction, outliers, fits, options)


# The fit of a robot's logs compares them (`fit.comparison`) and names a log that differs. Smaller
# changes of friction, offsets and gains are judged by those between the logs of other robots.


def find_standing_out(fits: Mapping[str, Fit]) -> dict[str, list[Note]]:
    """By robot a note for each log that differs, each error that its fit corrected and most other
    robots do not have, and each change along its logs, with log, kind, place and size.
    """
    # What is wrong with a robot's logs, without the advice for its fit after a semicolon.
    out = {
        name: [
            Note(n.partition(";")[0], n.code, **n.values)
            for n in f.notes
            if n.values.get("confirmed") and "level" in n.values
        ]
        for name, f in fits.items()
    }
    # Joints of every robot warm up, and few logs show it.
    faults = {e.name for e in EFFECTS.values() if e.kind == "sensor" and not e.timed}
    corrected = [(name, e) for name, f in fits.items() for e in f.selected
                 if e.entered and e.at.kind in faults]  # fmt: skip
    count = Counter((e.at.kind, e.joint) for _, e in corrected)
    for name, e in corrected:
        if 2 * count[e.at.kind, e.joint] <= len(fits):
            size = e.at.effect.factor * e.value[0]
            out[name].append(Note(str(e), e.at.kind, kind=e.at.kind, place=e.joint, size=size))
    torques = np.median([f.reduced.torque_norms / f.reduced.rows**0.5 for f in fits.values()], 0)
    # A load in one log changes friction and gains in all.
    alike = {name: f.comparison for name, f in fits.items()
             if f.comparison and all(n.code != "log-differs" for n in out[name])}  # fmt: skip
    for name, one in alike.items():
        others = [other for n, other in alike.items() if n != name]
        out[name] += changes_along(one, usual_variance(others, torques), torques)
    return out


def describe_deviation(robot: Robot, equations: TypeEquations, known: TypeModel) -> list[Note]:
    """Parameters of a robot that differ from the type by more than `UNLIKE` deviations."""
    # The robot's deviation from a type that does not know it, and its prior deviations.
    A, C = equations.A, known.deviations
    noise = np.eye(len(A)) + A @ (C + known.covariance) @ A.T
    mean = np.asarray(C @ A.T @ np.linalg.solve(noise, equations.rho - A @ known.mean))
    size = np.sqrt(np.maximum(np.diag(C), 0.0))
    scores = np.divide(np.abs(mean), size, out=np.zeros_like(mean), where=size > 0)
    scores[robot.inertial_columns[:, :9].ravel()] = 0.0  # one factor for a body, told of its mass
    joints = {body.name: body.joint or body.name for body in robot.bodies}
    out = []
    for c in np.argsort(-scores)[: int(np.sum(scores > UNLIKE))]:
        owner, kind = robot.parameter_names[c]
        place = owner if kind == "m" else joints.get(owner, owner)
        change = float(mean[c] if kind in OFFSETS else 1.0 + mean[c] / known.mean[c])
        text = f"{'mass' if kind == 'm' else kind} of {place} {describe_change(kind, change)}"
        out.append(Note(text, "deviation", kind=kind, place=place, size=change))
    return out


def _prior_of(robot: Robot, known: TypeModel) -> GaussianPrior:
    """The prior of a robot that was not used to estimate the type."""
    covariance = known.covariance + known.deviations
    return GaussianPrior(tuple(robot.parameter_names), known.mean, covariance)


def _with_type(alone: Fit, prior: GaussianPrior) -> Fit:
    """The fit of a robot with the type of the others as its prior."""
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
