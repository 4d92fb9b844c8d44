"""A fit is written to last: what `feasid.identification.saved` reads back.

A ``.feasid`` file is a ZIP archive of ``model.json`` (the robot with its parameters, options,
notes, errors, what the fit shows, versions, hashes), ``arrays.npz`` (covariance), ``reduced.npz``
(the log, reduced), ``certificate.json`` (for ``feasid verify``) and the description as it was.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import feasid
from feasid.core.display import Display
from feasid.core.files import write_aside
from feasid.errors import CertificateError
from feasid.feasibility.constraints.sets import as_plain
from feasid.feasibility.proof.claim import Certificate
from feasid.identification.fitted import Fitted
from feasid.logs.digest import digest
from feasid.robot.description import Source
from feasid.robot.serial import as_data

FORMAT, VERSION = "feasid model", 2

READING = ("floating", "lock", "gravity", "use_mujoco", "ignore")
"""Options of `feasid.load_robot` that are kept, by which a written file is read back alike."""


def save(
    fit: Fitted,
    path: str | Path,
    text: str,
    shown: Display,
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
        "made": made(fit),
        "robot": as_data(fit.robot),
        "source": None if source is None else _origin(source),
        "quality": [fit.quality.level, [str(r) for r in fit.quality.reasons]],
        "measured": _plain(fit.base.experiment.measured),
        "log_options": _plain(fit.log_options),
        "notes": [[str(n), n.code, _plain(n.values)] for n in fit.notes],
        "errors": {str(k): float(v) for k, v in fit.relative_error.items()},
        "summary": text,
        "display": asdict(shown),
        "ranges": {
            "deviation": fit.deviation,
            "feasible": as_plain(fit.feasible),
            "believed": as_plain(fit.believed),
        },
    }
    arrays = io.BytesIO()
    r, rho, _ = fit.triangle
    np.savez_compressed(
        arrays, covariance=fit.covariance, beta=fit.beta, r=r, rho=rho, best=fit.optimum.delta
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", json.dumps(model, indent=1, default=str))
        archive.writestr("arrays.npz", arrays.getvalue())
        archive.writestr("reduced.npz", replace(fit.reduced, strata=()).to_bytes())
        archive.writestr("report.json", json.dumps(report, allow_nan=False))
        if certificate is not None:
            archive.writestr("certificate.json", json.dumps(certificate.data))
        if source is not None:
            archive.writestr("description", source.text)
    write_aside(path, buffer.getvalue(), overwrite=overwrite)


def made(fit: Fitted) -> dict[str, Any]:
    """Where a model came from: versions, time, hashes of its description and its logs."""
    source = fit.robot.source
    return {
        "feasid": feasid.__version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "pandas")},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "description": None if source is None else hashlib.sha256(source.text).hexdigest(),
        "logs": [{"name": r.name, "sha256": digest(r)} for r in fit.recordings],
        "samples": fit.reduced.samples,
    }


def _origin(source: Source) -> dict[str, Any]:
    reading = {k: v for k, v in source.reading.items() if k in READING}
    return {"path": source.path, "format": source.format, "reading": _plain(reading)}


def _plain(value: Any) -> Any:
    """Options and numbers as JSON knows them."""
    if is_dataclass(value):
        return _plain(vars(value))
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(v) for v in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
