"""Fits kept in files: `save` writes an archive that `load` reads, also in later versions.

A ``.feasid`` file is a ZIP archive of ``model.json`` (the robot with its parameters, options,
notes, errors, what the fit shows, versions, hashes), ``arrays.npz`` (covariance), ``reduced.npz``
(the log, reduced), ``certificate.json`` (for ``feasid verify``) and the description as it was.
Text and plain arrays only: nothing of it is executed or unpickled, and no log is needed.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import feasid
from feasid.control.external_torque import GAIN, ErrorLaw
from feasid.core.arguments import checked, checked_methods
from feasid.core.arrays import MEANING, Array, read_arrays, require_version, unpack_archive
from feasid.core.display import Display, Displayed, Measure, Summary
from feasid.core.files import open_for_reading, write_atomically
from feasid.core.notes import Note
from feasid.core.text import quote
from feasid.errors import CertificateError, DescriptionError, FeasidError, InputError, OutputError
from feasid.export.robot_file import WritableModel
from feasid.feasibility.constraints.sets import feasible_set_from_data, feasible_set_to_data
from feasid.feasibility.proof.claim import Certificate
from feasid.formats.mjcf.model import inline_includes
from feasid.formats.xml import TEXT, parse_xml
from feasid.identifiability.base import BaseParameters, base_parameters
from feasid.identification.fitted import FittedModel
from feasid.logs.recording import content_digest
from feasid.regression.triangle import Reduced
from feasid.robot.bodies import Body, Limits, Member, Rotor
from feasid.robot.couplings import Coupling, Loop
from feasid.robot.description import Robot, Source
from feasid.robot.drives import CustomJointTerm, Drive
from feasid.uncertainty.posterior import Posterior
from feasid.uncertainty.ranges import ResidualRegion

if TYPE_CHECKING:
    import pandas as pd


FORMAT, VERSION = "feasid model", 3

READING = ("floating", "lock", "gravity", "ignore")
"""Options of `feasid.load_robot` that are kept, by which a written file is read back alike. MuJoCo,
which opens meshes, is not asked for by a file."""


def save(
    fit: FittedModel,
    path: str | Path,
    text: str,
    display: Display,
    report: Mapping[str, Any],
    *,
    overwrite: bool = False,
) -> None:
    """Write a fit with what it shows and what its summary and report say; see `feasid.Fit.save`."""
    try:
        certificate: Certificate | None = fit.certificate
    except CertificateError:
        certificate = None
    source = fit.robot.source
    model = {
        "format": FORMAT,
        "version": VERSION,
        "meaning": MEANING,
        "made": provenance(fit),
        "robot": to_data(fit.robot),
        "source": None if source is None else _describe_source(source),
        "quality": [fit.quality.level, [str(r) for r in fit.quality.reasons]],
        "measured": _to_json_data(fit.base.experiment.measured),
        "log_options": _to_json_data(fit.log_options),
        "notes": [[str(n), n.code, _to_json_data(n.values)] for n in fit.notes],
        "errors": {str(k): float(v) for k, v in fit.relative_error.items()},
        "summary": text,
        "outside": [] if certificate is None else [*certificate.outside],
        "display": asdict(display),
        "ranges": {
            "deviation": fit.deviation,
            "feasible": feasible_set_to_data(fit.feasible),
            "believed": feasible_set_to_data(fit.plausible_set),
        },
    }
    arrays = io.BytesIO()
    r, rho, _ = fit.triangle
    numbers = {"covariance": fit.covariance, "beta": fit.beta, "r": r, "rho": rho}
    numbers |= {"best": fit.optimum.delta} | (
        {} if not fit.posterior else fit.posterior.to_arrays()
    )
    numbers["delay"] = np.array(fit.delay)
    with suppress(InputError):  # logs that do not show it, and robots without an observer
        numbers |= fit.error_law(GAIN).to_arrays()
    np.savez_compressed(arrays, **numbers)  # type: ignore[arg-type] # 2.0 has no allow_pickle
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", json.dumps(model, indent=1, default=str))
        archive.writestr("arrays.npz", arrays.getvalue())
        archive.writestr("reduced.npz", replace(fit.reduced, strata=()).to_bytes())
        archive.writestr("report.json", json.dumps(report, allow_nan=False))
        if certificate is not None:
            archive.writestr("certificate.json", json.dumps(certificate.data))
        if source is not None:
            archive.writestr("description", _standalone_text(source))
    write_atomically(path, buffer.getvalue(), overwrite=overwrite)


def provenance(fit: FittedModel) -> dict[str, Any]:
    """Where a model came from: versions, time, hashes of its description and its logs."""
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
    if is_dataclass(value):
        return _to_json_data(vars(value))
    if isinstance(value, Mapping):
        return {str(k): _to_json_data(v) for k, v in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple | set | frozenset):
        return [_to_json_data(v) for v in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


MAX_UNPACKED_BYTES = 256 * 1024 * 1024
"""Bytes that an archive may unpack to."""

CONTENT_ERRORS = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""What content raises that is not what `save` writes."""

MEMBERS = ("model.json", "arrays.npz", "reduced.npz", "report.json")


@dataclass(frozen=True)
class SavedQuality:
    """The verdict that a fit had: its ``level`` ("good", "doubtful", "useless") and why."""

    level: str = "good"
    reasons: Sequence[str] = ()


@checked_methods
@dataclass(frozen=True, eq=False, repr=False)
class SavedFit(WritableModel, Displayed):
    """An identified model, read back from a file.

    Attributes
    ----------
    robot : Robot
        With the identified parameters as its own; `feasid.write` writes it to a file.
    base : BaseParameters
    covariance : ndarray, shape (nb, nb)
        Of the base parameters; see `feasid.identification.fitted.FittedModel.base_table`.
    reduced : Reduced
        The fitted log.
    certificate : Certificate or None
        Proof that the parameters can exist; ``certificate.verify()`` checks it.
    log_options : mapping
        How the log was prepared; other logs are prepared alike.
    notes : tuple of Note
    fitted_errors : mapping
        Relative torque error on the fitted log, per joint and "all".
    stored_residual : Residual
        What ranges are taken from: the region of all parameters that the log allows.
    stored_posterior : Posterior or None
        What robots are drawn from; see `feasid.Fit.sample`.
    stored_law : ErrorLaw or None
        By which `feasid.ExternalTorque` has its thresholds; None where the file does not keep it.
    delay : float
        By which the fit has torques shifted to their motion [s].
    made : mapping
        Versions, time, and hashes of the description and of the logs.
    text : str
        The fit's summary.
    stored_display : Display
        What the fit showed.
    report_content : mapping
        What its report says, see `feasid.report.contents`.
    quality : SavedQuality
    """

    robot: Robot
    base: BaseParameters
    covariance: Array
    reduced: Reduced
    certificate: Certificate | None
    log_options: Mapping[str, Any]
    notes: tuple[Note, ...]
    fitted_errors: Mapping[str, float]
    stored_residual: ResidualRegion
    stored_posterior: Posterior | None
    stored_law: ErrorLaw | None
    delay: float
    made: Mapping[str, Any]
    text: str = field(repr=False)
    stored_display: Display = field(repr=False)
    report_content: Mapping[str, Any] = field(repr=False)
    quality: SavedQuality = SavedQuality()

    @property
    def delta(self) -> Array:
        """All standard parameters, shape (n,)."""
        return self.robot.values

    @property
    def residual(self) -> ResidualRegion:
        """The region of all parameters that the log allows; see `range`."""
        return self.stored_residual

    @property
    def posterior(self) -> Posterior | None:
        """What the log and the prior leave open; None where the file does not keep it."""
        return self.stored_posterior

    def error_law(self, gain: float) -> ErrorLaw:
        """How far an observer of external torques is off without contact; see `ErrorLaw`.

        Parameters
        ----------
        gain : float
            Of the observer [1/s].

        Raises
        ------
        InputError
            The file does not keep it for this gain.
        """
        law = self.stored_law
        if law is None or law.gain != gain:
            kept = "none" if law is None else f"those for gain={law.gain:g} only"
            raise InputError(
                f"thresholds need errors on stretches that were not fitted, of which this saved "
                f"fit keeps {kept}: take the fit itself (feasid.fit) with its log",
                option="gain",
            )
        return law

    @cached_property
    def relative_error(self) -> pd.Series[float]:
        """Relative torque error on the fitted log, per joint and "all", as it was saved."""
        import pandas as pd

        index = pd.Index([*self.fitted_errors], name="joint")
        return pd.Series([*self.fitted_errors.values()], index, name="relative torque error")

    @cached_property
    def base_table(self) -> pd.DataFrame:
        """Base parameters: value and standard deviation."""
        import pandas as pd

        index = pd.Index(self.base.expressions, name="base parameter")
        deviation = np.sqrt(np.diag(self.covariance))
        return pd.DataFrame({"value": self.beta, "std": deviation}, index=index)

    def summary(self) -> Summary:
        """The fit's summary, and when and by what it was made."""
        text = f"{self.text}\n\n{self.version_line}"
        return Summary(text, {"base parameters": self.base_table})

    def display(self) -> Display:
        """The fit at a glance, as it showed itself, and when and by what it was saved."""
        more = f"{self.version_line}\nmore: fit.summary(), fit.base_table, fit.errors(log)"
        return replace(self.stored_display, more=more)

    @property
    def version_line(self) -> str:
        """When the fit was saved and by which version of the package."""
        return f"saved {self.made['created']} by feasid {self.made['feasid']}"


@checked
def load(path: str | Path) -> SavedFit:
    """Read what ``fit.save`` wrote.

    Parameters
    ----------
    path : path

    Returns
    -------
    SavedFit

    Raises
    ------
    InputError
        The file does not exist, is damaged, or was written by another version.
    LimitError
        It unpacks to more than 256 MB.
    """
    return read_archive(path, read_fit)


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


def read_fit(path: str | Path, content: Mapping[str, bytes]) -> SavedFit:
    """The fit that the members of an archive hold."""
    if missing := [m for m in MEMBERS if m not in content]:
        raise ValueError(f"it lacks {', '.join(missing)}")
    model = json.loads(content["model.json"])
    if model["format"] != FORMAT:
        raise ValueError(f"its format is {model['format']!r}")
    made = model["made"]
    if not isinstance(made, dict) or not {"created", "feasid"} <= set(made):
        raise ValueError("it does not say when and by what it was made")
    require_version(str(path), f"a fit saved by feasid {made['feasid']}; fit again", model, VERSION)
    robot, source = robot_from_data(model["robot"]), model["source"]
    if source is not None:
        robot = with_source(robot, _read_source(source, content["description"]))
    numbers = _read_arrays(content["arrays.npz"], f"arrays.npz of {path}")
    spread, beta = numbers["covariance"], numbers["beta"]
    if spread.shape != 2 * beta.shape:
        raise ValueError(f"its covariance has shape {spread.shape}, its values {beta.shape}")
    base = base_parameters(robot, measured=model["measured"])
    if base.size == len(beta) and not np.allclose(base.K @ robot.values, beta, rtol=1e-6):
        raise ValueError("its parameters are not those of its base parameters")
    proof, outside = content.get("certificate.json"), tuple(map(str, model["outside"]))
    region = _read_residual(base, model["ranges"], numbers)
    return SavedFit(
        robot=robot,
        base=base,
        covariance=spread,
        reduced=Reduced.from_file(io.BytesIO(content["reduced.npz"]), f"reduced.npz of {path}"),
        certificate=None if proof is None else Certificate(json.loads(proof), outside),
        log_options=model["log_options"],
        notes=tuple(Note(text, code, **values) for text, code, values in model["notes"]),
        fitted_errors=_read_errors(model["errors"]),
        stored_residual=region,
        delay=float(numbers.get("delay", 0.0)),
        stored_law=ErrorLaw.from_arrays(numbers),
        stored_posterior=Posterior.from_arrays(region.feasible, numbers),
        made=model["made"],
        text=model["summary"],
        stored_display=_read_display(model["display"]),
        report_content=json.loads(content["report.json"]),
        quality=SavedQuality(*model["quality"]),
    )


def _read_source(kept: Mapping[str, Any], text: bytes) -> Source:
    """The description as text, which names no place from which anything could be opened."""
    reading = {k: v for k, v in kept["reading"].items() if k in READING}
    known = {
        "floating": lambda v: v is None or isinstance(v, bool),
        "lock": lambda v: isinstance(v, dict) and all(map(_is_number, v.values())),
        "gravity": lambda v: v is None or (len(v) == 3 and all(map(_is_number, v))),
        "ignore": lambda v: all(isinstance(name, str) for name in v),
    }
    if wrong := [k for k, v in reading.items() if not known[k](v)]:
        raise ValueError(f"its description was read with {wrong[0]}={quote(reading[wrong[0]])}")
    return Source(TEXT, str(kept["format"]), text, reading=reading)


def _read_errors(kept: Mapping[str, Any]) -> dict[str, float]:
    if not kept or not all(type(error) in (int, float) for error in kept.values()):
        raise ValueError(f"its errors are {quote(kept)}")
    return {name: float(error) for name, error in kept.items()}


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and np.isfinite(value)


def _read_display(kept: Mapping[str, Any]) -> Display:
    """What the fit showed."""
    shown = Display(**{**kept, "measures": [Measure(**m) for m in kept["measures"]]})
    shown.text()  # what is not text shows itself here
    return shown


def _read_arrays(data: bytes, name: str) -> dict[str, Any]:
    arrays = read_arrays(unpack_archive(io.BytesIO(data), name, MAX_UNPACKED_BYTES))
    for key, array in arrays.items():
        if array.dtype.kind != "f":
            raise ValueError(f"{name} holds {key!r} of {array.dtype}, which are no numbers")
    return arrays


def _read_residual(
    base: BaseParameters, kept: Mapping[str, Any], numbers: Mapping[str, Array]
) -> ResidualRegion:
    """What ranges need."""
    r, rho, best = (numbers[name] for name in ("r", "rho", "best"))
    if r.shape != (base.size, base.size) or rho.shape != r.shape[:1]:
        raise ValueError(f"its triangle has shape {r.shape} for {base.size} base parameters")
    if best.shape != (base.robot.size,):
        raise ValueError(f"its best model has {best.size} of {base.robot.size} parameters")
    feasible, believed = (
        feasible_set_from_data(base.robot, kept[k]) for k in ("feasible", "believed")
    )
    return ResidualRegion(base, r, rho, float(kept["deviation"]), feasible, believed, best)


KINDS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (Robot, Body, Rotor, Drive, Member, Limits, Coupling, Loop)
}

KIND, OWN_KIND = "kind", "own kind"
"""What a part is, and a field of that name: a loop's."""

UNSAVED_FIELDS = ("source",)
"""The file that a robot was read from is kept beside its data, not inside."""


def to_data(value: Any) -> Any:
    """A robot, or a part of one, as what JSON can hold."""
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value).__name__
        if isinstance(value, CustomJointTerm):
            raise OutputError(
                f"feature {value.name!r} is code, which no file holds: save a model without it",
                feature=value.name,
            )
        if kind not in KINDS:
            raise DescriptionError(f"a {kind} cannot be saved")
        parts = {
            f.name: getattr(value, f.name) for f in fields(value) if f.name not in UNSAVED_FIELDS
        }
        named = {OWN_KIND if name == KIND else name: to_data(v) for name, v in parts.items()}
        return {KIND: kind, **named}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {KIND: "mapping", "entries": {str(k): to_data(v) for k, v in value.items()}}
    if isinstance(value, tuple | list):
        return [to_data(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value


def robot_from_data(data: Any) -> Robot:
    """The robot that `to_data` made plain.

    Raises
    ------
    DescriptionError
        Something is missing, of another kind, or not known to this version.
    """
    try:
        robot = _from_data(data)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise DescriptionError(f"this is not a saved robot: {error}") from error
    if not isinstance(robot, Robot):
        raise DescriptionError("this is not a saved robot")
    return robot


def _from_data(data: Any) -> Any:
    if isinstance(data, list):
        parts = tuple(_from_data(v) for v in data)
        numbers = bool(parts) and all(isinstance(v, int | float | np.ndarray) for v in parts)
        return np.array(parts, dtype=np.float64) if numbers else parts
    if not isinstance(data, dict):
        return data
    named = {KIND if name == OWN_KIND else name: v for name, v in data.items() if name != KIND}
    if data[KIND] == "mapping":
        return {k: _from_data(v) for k, v in data["entries"].items()}
    kind = KINDS[data[KIND]]
    known = {f.name: f for f in fields(kind)}
    unknown = set(named) - set(known)
    if unknown:
        raise DescriptionError(
            f"a saved {data[KIND]} has {sorted(unknown)}, unknown to this feasid: update it"
        )
    needed = {n for n, f in known.items() if f.default is MISSING and f.default_factory is MISSING}
    if needed - set(named):
        raise ValueError(f"a {data[KIND]} lacks {sorted(needed - set(named))}")
    for name, value in named.items():
        if known[name].type == "str" and not isinstance(value, str):
            raise ValueError(f"the {name} of a {data[KIND]} is {value!r}, which is no text")
    return kind(**{name: _from_data(value) for name, value in named.items()})


def with_source(robot: Robot, source: Any) -> Robot:
    """The robot with the file that it came from."""
    return replace(robot, source=source)
