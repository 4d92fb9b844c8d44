"""What decides the meaning of reduced data, as one short mark."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from feasid.robot.description import Robot


def fingerprint(robot: Robot, columns: Sequence[int]) -> str:
    """Hash of what decides the meaning of reduced data: geometry, gravity, names and columns."""
    digest = hashlib.sha256()
    for body, parent in zip(robot.bodies, robot.parents, strict=True):
        for array in (body.rotation, body.position, body.motion):
            digest.update(np.ascontiguousarray(array + 0.0).tobytes())
        digest.update(f"{body.name}\0{body.joint}\0{parent}\0".encode())
        if body.rotor is not None:
            digest.update(np.r_[body.rotor.gear, body.rotor.position].tobytes())
            digest.update(np.ascontiguousarray(body.rotor.rotation).tobytes())
    for drive in robot.drives:
        terms = drive.name, sorted(drive.coupling.items()), drive.symbols
        named = "".join(f"{f.name}\0" for f in drive.features)
        digest.update((repr(terms) + named).encode())
        for number in (drive.transition, drive.rest):
            if number:
                digest.update(repr(number).encode())
    digest.update("".join(robot.ties).encode())
    if robot.load_model is not None:
        digest.update(np.ascontiguousarray(robot.load_model + 0.0).tobytes())
    digest.update(np.ascontiguousarray(robot.gravity + 0.0).tobytes())
    digest.update(np.asarray(columns, dtype=np.int64).tobytes())
    return digest.hexdigest()[:32]
