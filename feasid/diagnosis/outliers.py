"""Diagnosis of stretches in which a torque is far from what the motion explains."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from feasid.core.arrays import Array, Mask
from feasid.diagnosis.findings import Finding
from feasid.diagnosis.screen import ScreenSamples, thin
from feasid.dynamics.regressor import regressor
from feasid.logs.motion import Motion, Rows, blocks
from feasid.robot.description import Robot

OUTLIER = 12.0
"""Residuals beyond so many robust standard deviations are outliers."""

LEAST_SPREAD = 0.01
"""The usual scatter is taken to be at least this share of the torque's deviation."""

REVERSING = 0.06
"""Below this share of its largest velocity a joint may be about to turn round."""

NEGLIGIBLE = 1e-9
"""Columns of a regressor below this share of the largest are rounding."""


def outliers(motion: Motion, robot: Robot) -> list[Finding]:
    """Stretches in which a joint's torque is far from what its motion explains elsewhere."""
    samples: ScreenSamples | None = thin(motion, 0)
    if samples is None:
        return []
    findings = []
    if not robot.drives:
        robot = robot.with_joint_terms(drive_inertia=True)
    slowest = motion.cutoff or 0.1 * samples.rate
    wide = int(np.ceil(samples.rate / samples.step / slowest))
    model = regressor(robot, samples.q, samples.dq, samples.ddq)
    for j, name in enumerate(robot.coordinates):
        tau = samples.torque[:, j]
        columns = np.asarray(model[:, j])
        rest = tau - _fitted(columns, tau, np.ones(len(tau), dtype=bool))
        calm = np.abs(rest - np.median(rest)) < OUTLIER * _spread(rest, tau)
        if not calm.all():  # a collision bends the first fit: the second leaves it out
            rest = tau - _fitted(columns, tau, calm)
        rest = rest - np.median(rest)
        spread = _spread(rest, tau)
        if spread == 0:
            continue
        limit = OUTLIER * spread * np.where(_reversing(samples.dq[:, j], wide), 3.0, 1.0)
        far = np.flatnonzero(np.abs(rest) > limit).astype(np.int64)
        # What happened in less time than this, the filter would have spread.
        least = max(2, int(0.25 * samples.rate / samples.step / slowest))
        parts = [p for p in blocks(_joined(far), "") if p.count >= least]
        share = sum(p.count for p in parts) / len(rest)
        if not parts or share > 0.1:
            continue
        spans = tuple((int(samples.rows[p.first]), int(samples.rows[p.last])) for p in parts[:20])
        when = tuple((float(samples.t[p.first]), float(samples.t[p.last])) for p in parts[:20])
        worst = float(np.abs(rest[far]).max() / spread)
        findings.append(
            Finding(
                "outliers",
                "warning",
                f"the torque leaves its usual scatter (up to {worst:.0f} standard deviations) in "
                f"{len(parts)} stretch(es), the first at t = {when[0][0]:.4g} s: contact?",
                f"exclude=[{', '.join(f'({a:.4g}, {b:.4g})' for a, b in when[:3])}]",
                (name,),
                (f"tau_{name}",),
                spans,
                when,
                options={"exclude": when},
            )
        )
    return findings


def _reversing(velocity: Array, wide: int) -> Mask:
    """Samples around a change of direction, where filtered friction is hard to model."""
    turns = np.concatenate([[False], np.diff(np.sign(velocity)) != 0])
    near = np.convolve(turns, np.ones(2 * wide + 1), "same") > 0.5
    return np.asarray(near | (np.abs(velocity) < REVERSING * np.abs(velocity).max()))


def _spread(rest: Array, torque: Array) -> float:
    """Usual scatter of a residual: robust, and not absurdly small."""
    typical = 1.4826 * float(np.median(np.abs(rest - np.median(rest))))
    return max(typical, LEAST_SPREAD * float(torque.std()))


def _fitted(columns: Array, torque: Array, of: Mask) -> Array:
    """What a row's own parameters explain of a torque, fitted to some of its samples."""
    from scipy.linalg import lstsq

    size = np.linalg.norm(columns, axis=0)
    seen = size > NEGLIGIBLE * max(float(size.max()), 1e-300)
    columns = columns[:, seen] / size[seen]
    found = lstsq(columns[of], torque[of], cond=1e-6, lapack_driver="gelsy")[0]
    return np.asarray(columns @ found)


def _joined(indices: Rows) -> Rows:
    """Indices with gaps of up to two filled."""
    if not len(indices):
        return indices
    out = {int(k) for k in indices}
    for a, b in pairwise(indices):
        if b - a <= 3:
            out.update(range(int(a), int(b)))
    return np.array(sorted(out), dtype=np.int64)
