"""Reduced data as the arrays of a file, and back."""

from __future__ import annotations

import io
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.notes import Note
from feasid.errors import InputError
from feasid.reduction.strata import Strata

if TYPE_CHECKING:
    from feasid.reduction.triangle import Reduced

FORMAT = 3
"""Version of the saved file."""


def content(reduced: Reduced) -> bytes:
    """A NumPy ``.npz`` archive without pickled objects."""
    arrays: dict[str, Any] = {
        "format": np.array(FORMAT),
        "fingerprint": np.array(reduced.fingerprint),
        "columns": np.array(reduced.columns),
        "samples": np.array(reduced.samples),
        "rows": np.array(reduced.rows),
        "period": np.array(reduced.period),
        "notes": np.array([n.to_json() for n in reduced.notes], dtype=np.str_),
        "sources": np.array(reduced.sources, dtype=np.str_),
        "digests": np.array(reduced.digests, dtype=np.str_),
        "cutoff": np.array(np.nan if reduced.cutoff is None else reduced.cutoff),
    }
    for r, (support, triangle) in enumerate(zip(reduced.supports, reduced.triangles, strict=True)):
        arrays[f"support_{r}"] = np.array(support, dtype=np.int64)
        arrays[f"triangle_{r}"] = triangle
    for r, strata in enumerate(reduced.strata):
        arrays |= {f"{f.name}_{r}": getattr(strata, f.name) for f in fields(Strata)}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def values_of(archive: Any) -> dict[str, Any]:
    """What an archive says of `Reduced`, by attribute.

    Raises
    ------
    InputError
        Its format is newer.
    ValueError, LookupError
        It is damaged.
    """
    version = int(archive["format"])
    if version > FORMAT:
        raise InputError(f"reduced data of format {version} need a newer feasid")
    columns = tuple(int(c) for c in archive["columns"])
    supports: list[tuple[int, ...]] = []
    triangles: list[Array] = []
    while f"triangle_{len(triangles)}" in archive:
        support = archive[f"support_{len(triangles)}"]
        triangle = np.asarray(archive[f"triangle_{len(triangles)}"], dtype=np.float64)
        size = support.size + 1
        if triangle.shape != (size, size) or not np.isfinite(triangle).all():
            raise ValueError(f"triangle {len(triangles)} is damaged")
        if support.size and not (support.min() >= 0 and support.max() < len(columns)):
            raise ValueError(f"support {len(triangles)} is damaged")
        supports.append(tuple(int(s) for s in support))
        triangles.append(triangle)
    if not triangles:
        raise ValueError("there is no triangle in it")
    read = Note.of_json if version > 1 else Note
    cutoff, samples = float(archive["cutoff"]), int(archive["samples"])
    return {
        "fingerprint": str(archive["fingerprint"]),
        "columns": columns,
        "supports": tuple(supports),
        "triangles": tuple(triangles),
        "samples": samples,
        "notes": tuple(read(str(n)) for n in archive["notes"]),
        "cutoff": None if np.isnan(cutoff) else cutoff,
        "sources": tuple(str(x) for x in archive["sources"]),
        "digests": tuple(str(x) for x in archive.get("digests", ())),
        "rows": int(archive["rows"]) if version > 1 else samples,
        "strata": tuple(
            Strata.of_archive(archive, r, len(s) + 1)
            for r, s in enumerate(supports)
            if f"counts_{r}" in archive
        ),
        "period": float(archive["period"]) if version > 2 else 0.0,
    }
