"""Fits kept in files: `save` writes an archive from which `load` makes the fit again.

A ``.feasid`` file is a ZIP archive of ``model.json`` and ``arrays.npz`` (the values of the fit, see
`feasid.core.codec`), ``reduced.npz`` (the log, reduced), ``certificate.json`` (for ``feasid
verify``) and the description as it was. Text and plain arrays only: nothing of it is executed or
unpickled, it names no other file, and no log is needed.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import feasid
from feasid.assessment.residuals import Structure
from feasid.control.external_torque import GAIN, ErrorLaw
from feasid.core.arguments import checked
from feasid.core.arrays import (
    MEANING,
    Array,
    DamagedError,
    read_arrays,
    require_version,
    unpack_archive,
)
from feasid.core.codec import decode, encode, kinds
from feasid.core.files import open_for_reading, write_atomically
from feasid.core.notes import Note
from feasid.core.text import quote
from feasid.effects.calibration import Calibrated, Calibration
from feasid.effects.functions import Mistake
from feasid.errors import CertificateError, DescriptionError, FeasidError, InputError, OutputError
from feasid.estimation.bounds import PlausibleBound
from feasid.estimation.estimate import Estimate
from feasid.estimation.estimator import Estimator
from feasid.estimation.noise import Noise
from feasid.estimation.priors import PRIORS, GaussianPrior, find_prior
from feasid.feasibility.constraints.affine import Linear
from feasid.feasibility.constraints.sets import feasible_set_from_data, feasible_set_to_data
from feasid.feasibility.constraints.units import problem_units
from feasid.feasibility.least_squares import FeasibleFit, LeastSquares
from feasid.feasibility.proof.claim import Certificate
from feasid.formats.mjcf.model import inline_includes
from feasid.formats.xml import TEXT, parse_xml
from feasid.identifiability.base import base_parameters
from feasid.identification.fitted import FittedModel, LogEvidence
from feasid.identification.result import Fit
from feasid.logs.recording import content_digest
from feasid.logs.servo import Servo
from feasid.regression.triangle import Reduced
from feasid.robot.bodies import Body, Limits, Member, Rotor
from feasid.robot.couplings import Coupling, Loop
from feasid.robot.description import Robot, Source
from feasid.robot.drives import Drive
from feasid.servos.gains import ServoFit

FORMAT, VERSION = "feasid model", 4

READING = ("floating", "lock", "gravity", "ignore")
"""Options of `feasid.load_robot` that are kept, by which a written file is read back alike. MuJoCo,
which opens meshes, is not asked for by a file."""

MAX_UNPACKED_BYTES = 256 * 1024 * 1024
"""Bytes that an archive may unpack to."""

CONTENT_ERRORS = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    np.linalg.LinAlgError,
)
"""What content raises that is not what `save` writes."""

MEMBERS = ("model.json", "arrays.npz", "reduced.npz")

ROBOT_KINDS = kinds(Robot, Body, Rotor, Drive, Member, Limits, Coupling, Loop)
"""Parts of a robot; torques of the caller's own are code."""


@dataclass(frozen=True, eq=False)
class FitRecord:
    """What a file keeps of a fit besides its reduced log and its description's text."""

    robot: Robot
    measured: tuple[str, ...] | None
    constraints: Mapping[str, Any]  #: of `feasible_set_to_data`
    prior: str | GaussianPrior | None
    prior_weight: float
    reference: Array | None
    weights: str | Array
    slack: float
    bounds: tuple[PlausibleBound, ...]
    active_bounds: tuple[PlausibleBound, ...]
    rejected_bounds: tuple[PlausibleBound, ...]
    excluded_bounds: tuple[PlausibleBound, ...]
    noise: Noise
    delta: Array  #: the solution
    minimiser: Array
    optimum: Array
    raw: Array
    triangle: tuple[Array, Array, float]
    covariances: tuple[Array, Array | None, Array | None]
    systematic: Array
    numbers: Mapping[str, float]
    evidence: tuple[tuple[float, float], ...]
    joint_weights: Array
    inconsistent: tuple[str, ...]
    estimate_notes: tuple[Note, ...]
    notes: tuple[Note, ...]
    log_options: Mapping[str, Any]
    options: Mapping[str, Any]
    delay: float
    calibration: Calibration
    servo: ServoFit | None
    structure: tuple[Structure, ...]
    contact_errors: ErrorLaw | None
    made: Mapping[str, Any]
    outside: tuple[str, ...] = field(default=())  #: constraints that no certificate covers


KNOWN = ROBOT_KINDS | kinds(
    FitRecord,
    Noise,
    GaussianPrior,
    PlausibleBound,
    Linear,
    Calibration,
    Calibrated,
    Mistake,
    Servo,
    ServoFit,
    Structure,
    ErrorLaw,
)
"""Every kind of value that a saved fit may hold."""

NUMBERS = ("gap", "row_deviation", "evidence_weight", "likelihood_ratio")
"""Plain numbers of an estimate."""


def save(fit: FittedModel, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a fit; see `feasid.Fit.save`."""
    arrays: dict[str, Any] = {}
    record = _record(fit)
    source = fit.robot.source
    model = {
        "format": FORMAT,
        "version": VERSION,
        "meaning": MEANING,
        "feasid": feasid.__version__,
        "source": None if source is None else _describe_source(source),
        "fit": encode(record, arrays, KNOWN),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", json.dumps(model))
        archive.writestr("arrays.npz", pack_arrays(arrays))
        archive.writestr("reduced.npz", fit.reduced.to_bytes())
        if fit.equations is not fit.reduced:
            archive.writestr("equations.npz", fit.equations.to_bytes())
        with suppress(CertificateError):
            archive.writestr("certificate.json", json.dumps(fit.certificate.data))
        if source is not None:
            archive.writestr("description", _standalone_text(source))
    write_atomically(path, buffer.getvalue(), overwrite=overwrite)


def pack_arrays(arrays: Mapping[str, Any]) -> bytes:
    """Arrays by name as one archive."""
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)  # type: ignore[arg-type, unused-ignore] # 2.0 has no allow_pickle
    return packed.getvalue()


def _record(fit: FittedModel) -> FitRecord:
    """What is kept of a fit."""
    estimator, estimate = fit.estimator, fit.estimate
    law = fit.saved.contact_errors if fit.saved else None
    with suppress(InputError):  # logs that do not show it, and robots without an observer
        law = law or fit.error_law(GAIN)
    prior = estimator.prior
    if prior is not None and not isinstance(prior, GaussianPrior):
        if PRIORS.get(prior.name) is not prior:
            raise OutputError(
                f"prior {prior.name!r} is code, which no file holds: register it "
                "(feasid.estimation.priors.register) and fit with its name",
                prior=prior.name,
            )
        prior = prior.name  # type: ignore[assignment]
    return FitRecord(
        robot=replace(fit.description, source=None),
        measured=fit.base.experiment.measured_joints,
        constraints=feasible_set_to_data(fit.feasible),
        prior=prior,  # type: ignore[arg-type]
        prior_weight=estimate.prior_weight,
        reference=estimator.reference,
        weights=estimator.weights,
        slack=estimator.slack,
        bounds=estimate.bounds,
        active_bounds=estimate.active_bounds,
        rejected_bounds=estimate.rejected_bounds,
        excluded_bounds=estimate.excluded_bounds,
        noise=estimate.noise,
        delta=fit.delta,
        minimiser=estimate.delta,
        optimum=fit.optimum.delta,
        raw=fit.optimum.raw,
        triangle=fit.triangle,
        covariances=(fit.covariance, estimate.covariance, estimate.prediction_covariance),
        systematic=estimate.systematic,
        numbers={name: float(getattr(estimate, name)) for name in NUMBERS},
        evidence=estimate.evidence,
        joint_weights=estimate.weights,
        inconsistent=estimate.inconsistent,
        estimate_notes=estimate.notes,
        notes=fit.notes,
        log_options=_plain(fit.log_options),
        options=_plain(fit.options),
        delay=fit.delay,
        calibration=fit.calibration,
        servo=fit.servo,
        structure=fit.structure,
        contact_errors=law,
        made=provenance(fit),
        outside=tuple(c.name for c in fit.feasible.convex),
    )


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a file can hold; functions and solvers are left out."""
    out = {}
    for name, value in options.items():
        with suppress(OutputError):
            encode(value, {}, KNOWN)
            out[name] = value
    return out


def provenance(fit: FittedModel) -> dict[str, Any]:
    """Where a model came from: versions, time, hashes of its description and its logs."""
    if fit.made:
        return dict(fit.made)
    source = fit.robot.source
    return {
        "feasid": feasid.__version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "pandas")},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "description": None if source is None else hashlib.sha256(source.text).hexdigest(),
        "logs": [{"name": r.name, "sha256": content_digest(r)} for r in fit.recordings],
        "samples": fit.reduced.samples,
    }


def _standalone_text(source: Source) -> bytes:
    """A description with what it includes, as far as that is still there."""
    if source.format == "mjcf":
        with suppress(FeasidError):
            return inline_includes(parse_xml(source.text, source.path))
    return source.text


def _describe_source(source: Source) -> dict[str, Any]:
    reading = {k: v for k, v in source.reading.items() if k in READING}
    return {"format": source.format, "reading": _to_json_data(reading)}


def _to_json_data(value: Any) -> Any:
    """Options and numbers as types that JSON can hold."""
    if isinstance(value, Mapping):
        return {str(k): _to_json_data(v) for k, v in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple | set | frozenset):
        return [_to_json_data(v) for v in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


@checked
def load(path: str | Path) -> Any:
    """Read what ``fit.save`` wrote, or the ``save`` of an online fit.

    Parameters
    ----------
    path : path

    Returns
    -------
    Fit or OnlineFit
        A fit has everything but the samples of its logs; an online fit goes on where it was.

    Raises
    ------
    InputError
        The file does not exist, is damaged, or was written by another version.
    LimitError
        It unpacks to more than 256 MB.
    """
    return read_archive(path, _read)


def _read(path: str | Path, content: Mapping[str, bytes]) -> Any:
    """A fit, or an online fit, whose package is imported only then."""
    if "model.json" not in content:
        raise ValueError("it lacks model.json")
    model = json.loads(content["model.json"])
    if isinstance(model, dict) and model.get("format") == "feasid online":
        from feasid.online.online_fit import read_online

        return read_online(path, content)
    return read_fit(path, content)


T = TypeVar("T")


def read_archive(path: str | Path, read: Callable[[str | Path, Mapping[str, bytes]], T]) -> T:
    """What `read` makes of the members of an archive, and its failures as `load` reports them."""
    try:
        with open_for_reading(path, MAX_UNPACKED_BYTES) as file:
            content = unpack_archive(file, str(path), MAX_UNPACKED_BYTES)
        return read(path, content)
    except FeasidError:
        raise
    except CONTENT_ERRORS as error:
        raise InputError(f"{path} is not a saved fit: {error}", path=str(path)) from error


def read_fit(path: str | Path, content: Mapping[str, bytes]) -> Fit:
    """The fit that the members of an archive hold."""
    if missing := [m for m in MEMBERS if m not in content]:
        raise DamagedError(f"it lacks {', '.join(missing)}")
    model = json.loads(content["model.json"])
    if model["format"] != FORMAT:
        raise DamagedError(f"its format is {model['format']!r}")
    writer = model.get("feasid") or model["made"]["feasid"]  # until format 3
    kind = f"a fit saved by feasid {writer}; fit again"
    require_version(str(path), kind, model, VERSION)
    record = decode(model["fit"], _read_arrays(content["arrays.npz"], path), KNOWN)
    if not isinstance(record, FitRecord):
        raise DamagedError("it holds no fit")
    reduced = _read_reduced(content, "reduced.npz", path)
    same = "equations.npz" not in content
    equations = reduced if same else _read_reduced(content, "equations.npz", path)
    source = _read_source(model["source"], content)
    fit = _fit(record, source, reduced, equations)
    if "certificate.json" in content:
        proof = Certificate(json.loads(content["certificate.json"]), record.outside)
        vars(fit)["certificate"] = proof
    return fit


def _read_reduced(content: Mapping[str, bytes], member: str, path: str | Path) -> Reduced:
    return Reduced.from_file(io.BytesIO(content[member]), f"{member} of {path}")


def _read_arrays(data: bytes, path: str | Path) -> dict[str, Any]:
    name = f"arrays.npz of {path}"
    arrays = read_arrays(unpack_archive(io.BytesIO(data), name, MAX_UNPACKED_BYTES))
    for key, array in arrays.items():
        if array.dtype.kind not in "fiub":
            raise DamagedError(f"{name} holds {key!r} of {array.dtype}, which are no numbers")
    return arrays


def _read_source(kept: Any, content: Mapping[str, bytes]) -> Source | None:
    """The description as text, which names no place from which anything could be opened."""
    if kept is None:
        return None
    reading = {k: v for k, v in kept["reading"].items() if k in READING}
    known = {
        "floating": lambda v: v is None or isinstance(v, bool),
        "lock": lambda v: isinstance(v, dict) and all(map(_is_number, v.values())),
        "gravity": lambda v: v is None or (len(v) == 3 and all(map(_is_number, v))),
        "ignore": lambda v: all(isinstance(name, str) for name in v),
    }
    if wrong := [k for k, v in reading.items() if not known[k](v)]:
        raise DamagedError(f"its description was read with {wrong[0]}={quote(reading[wrong[0]])}")
    return Source(TEXT, str(kept["format"]), content["description"], reading=reading)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and bool(np.isfinite(value))


def _fit(record: FitRecord, source: Source | None, reduced: Reduced, equations: Reduced) -> Fit:
    """The fit of a record, its shapes and its feasibility checked."""
    robot = replace(record.robot, source=source)
    base = base_parameters(robot, measured=record.measured)
    r, rho, _ = record.triangle
    _require_shapes(record, robot.size, base.size)
    feasible = feasible_set_from_data(robot, record.constraints)
    if broken := feasible.violations(record.delta):
        raise DamagedError(f"its parameters break {', '.join(broken)}")
    units = problem_units(robot, feasible, r @ base.K, rho, torques=True)
    problem = LeastSquares(r, rho, base, feasible, units)
    covariance, full, predicted = record.covariances
    estimate = Estimate(
        FeasibleFit(problem, record.delta, record.raw, ()),
        FeasibleFit(problem, record.optimum, record.raw, ()),
        record.minimiser,
        triangle=record.triangle,
        weights=record.joint_weights,
        noise=record.noise,
        base_covariance=covariance,
        prior_weight=record.prior_weight,
        evidence=record.evidence,
        covariance=full,
        prediction_covariance=predicted,
        systematic=record.systematic,
        bounds=record.bounds,
        active_bounds=record.active_bounds,
        rejected_bounds=record.rejected_bounds,
        excluded_bounds=record.excluded_bounds,
        inconsistent=record.inconsistent,
        notes=record.estimate_notes,
        **{name: float(record.numbers[name]) for name in NUMBERS},
    )
    estimator = Estimator(
        base,
        feasible,
        record.bounds,
        True,
        find_prior(record.prior),
        record.prior_weight,
        record.reference,
        record.weights,
        record.noise,
        record.slack,
    )
    return Fit(
        robot,
        estimator,
        estimate,
        reduced,
        equations,
        record.notes,
        record.log_options,
        record.options,
        record.delay,
        record.calibration,
        record.servo,
        saved=LogEvidence(record.structure, record.contact_errors),
        made=record.made,
    )


def _require_shapes(record: FitRecord, n: int, nb: int) -> None:
    """Refuse arrays that do not belong to a robot of n parameters and nb base parameters."""
    covariance, full, predicted = record.covariances
    r, rho, _ = record.triangle
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
    )
    for what, array, shape in expected:
        if array is not None and array.shape != shape:
            raise DamagedError(f"its {what} has shape {array.shape}, not {shape}")
    if set(record.numbers) != {*NUMBERS}:
        raise DamagedError("its numbers are not those of an estimate")


def robot_to_data(robot: Robot, arrays: dict[str, Any]) -> Any:
    """A robot as plain data; the text of its file is kept beside it, not inside."""
    return encode(replace(robot, source=None), arrays, ROBOT_KINDS)


def robot_from_data(data: Any, arrays: Mapping[str, Any]) -> Robot:
    """The robot that `robot_to_data` made plain.

    Raises DescriptionError: something is missing, of another kind, or not known to this version.
    """
    try:
        robot = decode(data, arrays, ROBOT_KINDS)
    except (DamagedError, *CONTENT_ERRORS) as error:
        raise DescriptionError(f"this is not a saved robot: {error}") from error
    if not isinstance(robot, Robot):
        raise DescriptionError("this is not a saved robot")
    return robot
