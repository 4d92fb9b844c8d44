"""Fits kept in files, from which they are made again without their logs.

Besides the record (`feasid.results.archive.members`), a file holds ``reduced.npz`` (the log,
reduced), ``certificate.json`` (for ``feasid verify``) and the description as it was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from feasid.core.arguments import array, number
from feasid.core.arrays import Array, DamagedError
from feasid.core.codec import kinds
from feasid.core.errors import CertificateError, InputError, OutputError
from feasid.core.notes import Note
from feasid.identification.assessment.compared_errors import ComparedErrors
from feasid.identification.assessment.contact_errors import GAIN, LEVELS, ErrorLaw
from feasid.identification.assessment.evidence import FitEvidence, GravityComparison
from feasid.identification.assessment.residuals import Structure
from feasid.identification.effects.calibration import Calibration
from feasid.identification.effects.log_differences import Difference, LogComparison
from feasid.identification.effects.table import EffectAt, EffectResult
from feasid.identification.estimation.bounds import BoundsTest, PlausibleBound
from feasid.identification.estimation.estimate import Estimate
from feasid.identification.estimation.estimator import Estimator
from feasid.identification.estimation.noise import Noise
from feasid.identification.estimation.priors import PRIORS, GaussianPrior, find_prior
from feasid.identification.fitted import FittedModel, LogEvidence, provenance
from feasid.identification.regression.reduce import independent_columns
from feasid.identification.regression.triangle import Reduced, fingerprint_of
from feasid.identification.servos.gains import ServoFit
from feasid.logs.servo import Servo
from feasid.options.complete import select_options
from feasid.options.tables import SetOptions
from feasid.parameters.feasibility.constraints.sets import UserConstraints
from feasid.parameters.feasibility.least_squares import FeasibleFit, LeastSquares, with_weighed
from feasid.parameters.feasibility.proof.claim import Certificate
from feasid.parameters.identifiability.base import BaseParameters, base_parameters
from feasid.results.archive.members import MODEL_KINDS, read_record, savable_options, write_record
from feasid.robot.description import Robot
from feasid.robot.known import Weighed, exact_values

FORMAT, VERSION = "feasid model", 9

MEMBERS = ("model.json", "arrays.npz", "reduced.npz")

Vector = Annotated[Array, array("n")]
Matrix = Annotated[Array, array("n", "n")]
BaseCovariance = Annotated[Array, array("n", "n", finite=False)]
"""Infinite where the log does not determine a parameter."""


@dataclass(frozen=True, eq=False)
class FitRecord:
    """Contents of a saved fit, without its reduced log and its description's text."""

    robot: Robot
    measured: tuple[str, ...] | None
    constraints: UserConstraints
    prior: str | GaussianPrior | None
    prior_weight: float
    reference: Annotated[Array, array("bodies", 10)] | None
    weights: str | Vector
    slack: float
    bounds: BoundsTest
    noise: Noise
    delta: Vector  #: the solution
    minimiser: Vector
    optimum: Vector
    raw: Vector
    triangle: tuple[Matrix, Vector, Annotated[float, number()]]
    covariances: tuple[BaseCovariance, Matrix | None, Matrix | None]
    systematic: Annotated[Array, array("n", "k")]
    numbers: Mapping[str, float]
    evidence: tuple[tuple[float, float], ...]
    joint_weights: Vector
    inconsistent: tuple[str, ...]
    estimate_notes: tuple[Note, ...]
    notes: tuple[Note, ...]
    log_options: Mapping[str, Any]
    options: Mapping[str, Any]
    torque_shift: float
    calibration: Calibration
    servo: ServoFit | None
    contact_errors: ErrorLaw | None
    made: Mapping[str, Any]
    structure: tuple[Structure, ...] = field(default=())  #: of files without `log`
    log: FitEvidence | None = field(default=None)  #: errors on held-out parts
    simulated: Array | None = field(default=None)  #: deviations of short simulations
    outside: tuple[str, ...] = field(default=())  #: constraints that no certificate covers
    comparison: LogComparison | None = None
    selected: tuple[EffectResult, ...] = ()  #: effects that the search tested
    weighed: tuple[Weighed, ...] = ()


KNOWN = MODEL_KINDS | kinds(
    *(FitRecord, Noise, GaussianPrior, Weighed, PlausibleBound, BoundsTest, Calibration),
    *(EffectAt, EffectResult, LogComparison, Difference, Servo, ServoFit, Structure),
    *(ComparedErrors, GravityComparison, FitEvidence, ErrorLaw),
)
"""Every kind of value that a saved fit may hold."""

NUMBERS = ("gap", "row_deviation", "evidence_weight")  #: Plain numbers of an estimate.

OF_ESTIMATOR = ("reference", "weights", "slack", "weighed")
OF_ESTIMATE = ("bounds", "noise", "prior_weight", "evidence", "systematic", "inconsistent")
OF_FIT = ("notes", "torque_shift", "calibration", "selected", "servo", "comparison")
"""Attributes that a record has by the same names."""


def save(fit: FittedModel, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a fit; see `feasid.Fit.save`."""
    members: dict[str, str | bytes] = {"reduced.npz": fit.reduced.to_bytes()}
    if fit.equations is not fit.reduced:
        members["equations.npz"] = fit.equations.to_bytes()
    outside: tuple[str, ...] = ()
    with suppress(CertificateError):
        members["certificate.json"] = json.dumps(fit.certificate.data)
        outside = fit.certificate.outside
    estimator, estimate = fit.estimator, fit.estimate
    law = fit.saved.contact_errors if fit.saved else None
    with suppress(InputError):  # logs that do not show it, and robots without an observer
        law = law or fit.error_law(GAIN)
    prior = estimator.prior
    if prior is not None and not isinstance(prior, GaussianPrior):
        if PRIORS.get(prior.name) is not prior:
            raise OutputError(
                f"prior {prior.name!r} is code, which cannot be saved in a file: register it "
                "(feasid.identification.estimation.priors.register) and fit with its name",
                prior=prior.name,
            )
        prior = prior.name  # type: ignore[assignment]
    record = FitRecord(
        robot=fit.description,
        measured=fit.base.experiment.measured_joints,
        constraints=UserConstraints.of(fit.feasible),
        prior=prior,  # type: ignore[arg-type]
        delta=fit.delta,
        minimiser=estimate.delta,
        optimum=fit.optimum.delta,
        raw=fit.optimum.raw,
        triangle=fit.triangle,
        covariances=(fit.covariance, estimate.covariance, estimate.prediction_covariance),
        numbers={name: float(getattr(estimate, name)) for name in NUMBERS},
        joint_weights=estimate.weights,
        estimate_notes=estimate.notes,
        log_options=fit.log_options,
        options=savable_options(fit.options, KNOWN),
        log=fit.evidence,
        simulated=fit.simulated,
        contact_errors=law,
        made=provenance(fit),
        outside=outside,
        **_attributes(estimator, OF_ESTIMATOR),
        **_attributes(estimate, OF_ESTIMATE),
        **_attributes(fit, OF_FIT),
    )
    write_record(path, record, KNOWN, {"format": FORMAT, "version": VERSION}, members, overwrite)


def _attributes(owner: Any, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(owner, name) for name in names}


def read_fit(path: str, content: Mapping[str, bytes]) -> FittedModel:
    """The fit that the members of an archive hold."""
    if missing := [m for m in MEMBERS if m not in content]:
        raise DamagedError(f"it lacks {', '.join(missing)}")
    record = read_record(path, content, FitRecord, KNOWN, VERSION, "a fit; fit again")
    # Equations that are the log's own were written once.
    names = [name for name in ("reduced.npz", "equations.npz") if name in content]
    logs = [Reduced.from_bytes(content[name], f"{name} of {path}") for name in names]
    # The fit of a record, its shapes and its feasibility checked.
    reduced, equations, robot = logs[0], logs[-1], record.robot
    base = base_parameters(robot, measured=record.measured)
    _require_shapes(record, robot, base.size)
    _require_log_of(base, reduced)
    _require_log_of(base, equations)
    feasible = record.constraints.on(robot)
    if broken := (*feasible.violations(record.delta), *feasible.violations(record.optimum)):
        raise DamagedError(f"its parameters break {', '.join(broken)}")
    limits = select_options(SetOptions, record.options)
    limits["known"] = exact_values(limits.get("known"))
    every, r, rho = with_weighed(base, *record.triangle[:2], record.weighed)
    problem = LeastSquares.from_data(r, rho, every, feasible)
    estimate = Estimate(
        FeasibleFit(problem, record.delta, record.raw, ()),
        record.minimiser,
        triangle=record.triangle,
        weights=record.joint_weights,
        base_covariance=record.covariances[0],
        covariance=record.covariances[1],
        prediction_covariance=record.covariances[2],
        notes=record.estimate_notes,
        optimum=FeasibleFit(problem, record.optimum, record.raw, ()),
        **_attributes(record, OF_ESTIMATE) | {k: float(record.numbers[k]) for k in NUMBERS},
    )
    prior = find_prior(record.prior), record.prior_weight
    decided = {"noise": record.noise, "limits": limits, **_attributes(record, OF_ESTIMATOR)}
    estimator = Estimator(base, feasible, record.bounds.kept, True, *prior, **decided)
    saved = LogEvidence(record.log, record.structure, record.contact_errors, record.simulated)
    parts = _attributes(record, (*OF_FIT, "log_options", "options", "made"))
    fit = FittedModel(robot, estimator, estimate, reduced, equations, saved=saved, **parts)
    if "certificate.json" in content:
        proof = Certificate(json.loads(content["certificate.json"]), record.outside)
        # Into the cache of the property, which would prove it again.
        vars(fit)["certificate"] = proof
    return fit


def _require_log_of(base: BaseParameters, reduced: Reduced) -> None:
    """Refuse a log that was reduced for other columns or coordinates."""
    columns, dof = independent_columns(base), base.robot.dof
    of_base = reduced.fingerprint == fingerprint_of(base.robot, columns)
    counts = len(reduced.supports), len(reduced.strata) or dof
    power = reduced.power is None or reduced.power.shape == (dof,)
    if not of_base or [*reduced.columns] != columns or counts != (dof, dof) or not power:
        raise DamagedError("its log was reduced for another robot")


def _require_shapes(record: FitRecord, robot: Robot, nb: int) -> None:
    """Refuse arrays that do not belong to a robot with nb base parameters."""
    n, dof, effects = robot.size, robot.dof, record.systematic.shape[1]
    covariance, full, predicted = record.covariances
    r, rho, _ = record.triangle
    log, law = record.log, record.contact_errors
    law_shapes: dict[str, tuple[int, ...]] = {
        "coefficients": (dof, 4),
        **dict.fromkeys(("levels", "crossings"), (dof, LEVELS)),
        **dict.fromkeys(("fastest", "excesses", "widening"), (dof,)),
    }
    expected: Sequence[tuple[str, Array | None, tuple[int, ...]]] = (
        ("solution", record.delta, (n,)),
        ("minimiser", record.minimiser, (n,)),
        ("optimum", record.optimum, (n,)),
        ("solver's point", record.raw, (n,)),
        ("triangle", r, (nb, nb)),
        ("right side", rho, (nb,)),
        ("covariance", covariance, (nb, nb)),
        ("covariance of all parameters", full, (n, n)),
        ("covariance of predictions", predicted, (n, n)),
        ("reference", record.reference, (len(robot.bodies), 10)),
        ("weights", record.joint_weights, (dof,)),
        ("noise", record.noise.quick, (dof,)),
        ("noise", record.noise.slow, (dof,)),
        ("correlation of noise", record.noise.correlation, (dof,)),
        ("deviations of simulations", record.simulated, (dof,)),
        ("evidence", None if log is None else log.torque, (dof,)),
        ("errors", None if log is None else log.errors.model, (dof,)),
        *((f"observer's {k}", getattr(law, k, None), shape) for k, shape in law_shapes.items()),
        ("systematic errors", record.systematic, (n if len(record.systematic) else 0, effects)),
    )
    for what, values, shape in expected:
        if values is not None and values.shape != shape:
            raise DamagedError(f"its {what} has shape {values.shape}, not {shape}")
    noise = record.noise
    if not ((noise.quick > 0) & (noise.slow >= 0) & (noise.correlation > 0)).all():
        raise DamagedError("its noise is no variance")
    if set(record.numbers) != {*NUMBERS}:
        raise DamagedError("its numbers are not those of an estimate")
