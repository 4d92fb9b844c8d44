"""The predictable part of held-out residuals: by position, speed, load, time or path.

Noise repeats nothing. If functions of the motion predict the residual of held-out segments, the
model lacks a term or the log has a fault. The functions that predict most of it indicate the cause.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array, Mask
from feasid.identification.assessment.rows import HeldOutRows
from feasid.identification.regression.folds import FOLDS, seconds_of_folds
from feasid.identification.regression.low_pass import GaussianLowPass
from feasid.logs.motion import Run

RIDGE = 0.02
"""Ridge on functions of deviation 1, as a share of their rows: there are more of them than a short
log can separate."""

PARTS = 5  #: Contiguous parts of a log, each of whose residuals is predicted from the others'.
MOST_ROWS = 20_000  #: Number of filtered rows beyond which every n-th is used.

CLOSE = 0.9
"""Kinds of functions that predict this share of what the best kind predicts are as good; of these
the one with the fewest functions is named."""

SLOW = 0.05
"""Share of a joint's RMS speed over which it starts to move: the sign of a velocity v is taken as
``tanh(v / (SLOW * rms(v)))``."""

MOVING, MOSTLY = 0.9, 0.5
"""Mean sign in the window of a row beyond which the joint moves there, and the share of moving rows
from which only they count: no model describes friction near standstill, and on logs without a fault
it is most of the residual."""

BURST, BRIEF, APART = 8.0, 0.15, 1.0
"""Errors beyond so many medians are far off; a time with them is short up to this share of all, and
ends where the next one is so many seconds away: reversals have single ones at any time."""

NEGLIGIBLE = 0.05
"""Least share of the squared residual in the rows that count; below it there is no finding."""

BREAKAWAY, STICKING = 0.1, 0.02
"""Speeds [rad/s or m/s] within which functions look for friction of its own near standstill."""

FIRST_WAVE, LAST_WAVE, WAVES = 3, 80, 8
"""Periods per 2 pi rad of waves of a joint's position, and how many of them: narrow pulses of a
motor or a gear have many, of which a fit models two (`ripple`)."""

WAVES_OF_POSITION = "waves of position"  #: Their name in messages.

BINS = 4096  #: Bins of 2 pi rad in which a residual is summed up before its waves are sought.

REACHES = np.array([[0.003], [0.01], [0.03], [0.1], [0.3]])
"""Distances [rad or m] after a reversal within which friction or a gear turns over."""


@dataclass(frozen=True)
class Structure:
    """The predictable share of a joint's held-out residual."""

    share: float  #: of its square, 0 to 1.
    correlate: str = ""  #: the kind of functions that predict most of it alone, empty if none does.
    #: Begin and end of a short time that holds most of its square [s], as a contact does.
    burst: tuple[float, ...] = ()


Part = tuple[Array, npt.NDArray[np.bool_], dict[str, Array]]
"""Residual of a run's rows, whether the joint moves in them, and functions (k, rows) by kind."""


def unexplained_structure(rows: HeldOutRows, measured: Mask) -> tuple[Structure, ...]:
    """The predictable share of every joint's residual on seconds that were not fitted.

    None for joints that were not `measured` (dof,).
    """
    models = rows.models
    unseen = np.zeros(len(models.base.independent))
    betas = np.array([models.models.get(f, unseen) for f in range(FOLDS)])
    begins = np.array([run.t[0] for run in rows.runs])
    errors = rows.errors(seconds_of_folds(rows.t + begins[rows.run]) % FOLDS, betas)
    # Per joint, periods per 2 pi rad of the waves of position that the error holds most of.
    places = (rows.q * (BINS / (2.0 * np.pi))).astype(np.intp) % BINS
    waves = []
    for at, error in zip(places.T, errors.T, strict=True):
        held = np.abs(np.fft.rfft(np.bincount(at, error, BINS)))[FIRST_WAVE:LAST_WAVE]
        waves.append(np.asarray(FIRST_WAVE + np.argsort(held)[-WAVES:], dtype=np.float64))
    parts: list[list[Part]] = [[] for _ in rows.supports]
    for number, run in enumerate(rows.runs):
        mine = np.flatnonzero(rows.run == number)
        if not len(mine):
            continue
        window = GaussianLowPass(float(models.reduced.cutoff or 0.0), run.rate)
        first = number % rows.step
        shared = _functions_of_motion(run, window, rows.t[mine], first, rows.step, waves)
        t = shared["time"]
        for j, (sign, torque) in enumerate(zip(shared["sign"], rows.torque[mine].T, strict=True)):
            slow = [shared[kind][j] for kind in ("sign", "breakaway", "sticking")]
            functions = {  # by the kind that a message names
                "position": shared["position"],
                WAVES_OF_POSITION: shared["waves"][j],
                "speed": np.vstack([shared["speed"], shared["quadratic"][j]]),
                "speed near standstill": np.vstack(slow),
                "acceleration": shared["acceleration"],
                "load": np.vstack([sign * np.abs(torque), torque]),
                "time": np.vstack([t, t * sign, t**2]),
                "path since its last reversal": shared["path"][j],
                "rate of the torque, as a delay would": rows.slope[mine, j][None],
            }
            parts[j].append((errors[mine, j], np.abs(shared["moving"][j]) > MOVING, functions))
    bursts = [find_burst(rows.t + begins[rows.run], error) for error in errors.T]
    return tuple(
        replace(_predictable_structure(p), burst=burst) if p and s else Structure(0.0)
        for p, s, burst in zip(parts, measured, bursts, strict=True)
    )


def find_burst(t: Array, error: Array) -> tuple[float, ...]:
    """Begin and end of a short time with most of a squared error; empty without one."""
    far = np.sort(t[np.abs(error) > BURST * float(np.median(np.abs(error)))])
    for times in np.split(far, np.flatnonzero(np.diff(far) > APART) + 1) if len(far) else []:
        inside = (t >= times[0]) & (t <= times[-1])
        if inside.mean() < BRIEF and np.sum(error[inside] ** 2) > MOSTLY * np.sum(error**2):
            return float(times[0]), float(times[-1])
    return ()


def _functions_of_motion(
    run: Run, window: GaussianLowPass, t: Array, first: int, step: int, waves: Sequence[Array]
) -> dict[str, Array]:
    """Functions (k, rows) that any joint's torque may depend on, and filtered ones of each.

    `waves`: of each joint, periods per 2 pi rad.
    """
    every = window.kept_rows(len(run), run.anchor, run.own)
    steps = slice(first, None, step)
    centres = every[: first + step * len(t)]
    q, v, a = (x[every[steps][: len(t)]].T for x in (run.q, run.dq, run.ddq))
    part = slice(int(centres[0]) - window.half_width, int(centres[-1]) + window.half_width + 1)
    speed = run.dq[part].T
    sign = np.sign(speed)
    slow = np.maximum(SLOW * np.sqrt(np.mean(speed**2, axis=1, keepdims=True)), 1e-300)
    comb = window.decimating_filter()

    def filtered(signal: Array) -> Array:
        return comb.filter_rows(signal, len(centres))[:, steps][:, : len(t)]

    # Bristles that bend over `REACHES` while a joint moves, as shares of their most, (reaches, N):
    # exact for any step, because they depend on the distance alone.
    bristles = []
    for path, way in zip(run.q[part].T, sign, strict=True):
        moved = np.append(0.0, np.cumsum(np.abs(np.diff(path))))
        shape, bent = np.empty((len(REACHES), len(path))), np.zeros((len(REACHES), 1))
        for rows in np.split(np.arange(len(path)), np.flatnonzero(np.diff(way)) + 1):
            unbent = np.exp((moved[max(rows[0] - 1, 0)] - moved[rows]) / REACHES)
            shape[:, rows] = way[rows[0]] + (bent - way[rows[0]]) * unbent
            bent = shape[:, rows[-1:]]
        bristles.append(shape)
    phases = (np.outer(n, x) for n, x in zip(waves, run.q[part].T, strict=True))
    turning = [np.vstack([np.sin(x), np.cos(x)]) for x in phases]
    return {
        "position": np.vstack([np.sin(q), np.cos(q), np.sin(2 * q), np.cos(2 * q), q, q**3]),
        "waves": np.stack([filtered(x) for x in turning]),
        "speed": np.vstack([v, v**2]),
        "acceleration": a,
        "time": t[None],
        "sign": filtered(sign),
        "moving": filtered(np.tanh(speed / slow)),
        "breakaway": filtered(sign * np.exp(-((speed / BREAKAWAY) ** 2))),
        "sticking": filtered(np.tanh(speed / STICKING)),
        "quadratic": v * np.abs(v),
        "path": np.stack([filtered(x) for x in bristles]),
    }


def _predictable_structure(parts: list[Part]) -> Structure:
    """The share of a residual that functions predict, and those that do it best alone."""
    error = np.concatenate([e for e, _, _ in parts])
    moving = np.concatenate([m for _, m, _ in parts])
    used = np.flatnonzero(moving if moving.mean() > MOSTLY else np.ones(len(error), bool))
    if not error[used] @ error[used] > NEGLIGIBLE * (error @ error):
        return Structure(0.0)
    used = used[:: -(-len(used) // MOST_ROWS)]
    error = error[used]
    kinds = {kind: np.hstack([f[kind] for *_, f in parts])[:, used].T for kind in parts[0][-1]}
    kind_of = np.repeat([*kinds], [x.shape[1] for x in kinds.values()])
    # Of functions of deviation 1, their mean and the error, in each part of the log.
    functions = np.hstack([*kinds.values()])
    deviation = functions.std(axis=0)
    X = (functions - functions.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    X = np.column_stack([X, np.ones(len(error)), error])
    grams = np.array([x.T @ x for x in np.split(X, len(error) * np.arange(1, PARTS) // PARTS)])
    share = _predicted_share(grams, kind_of != "")
    alone = {kind: _predicted_share(grams, kind_of == kind) for kind in kinds}
    most = max(alone.values())
    close = [kind for kind, part in alone.items() if part > 0 and part >= CLOSE * most]
    best = min(close, key=lambda kind: kinds[kind].shape[1], default="")
    return Structure(max(share, most), best)


def _predicted_share(grams: Array, functions: Mask) -> float:
    """Share of the squared error that these functions predict where they were not fitted.

    Ridge regression on all parts of the log but one, for each.
    """
    used = np.append(functions, [True, True])
    part = grams[:, used][:, :, used]
    others = part.sum(axis=0) - part
    size, total = part[:, -2, -2].sum(), float(part[:, -1, -1].sum())
    if size < 2 * PARTS or not total > 0:
        return 0.0
    ridge = RIDGE * size * np.eye(part.shape[1] - 1)
    ridge[-1, -1] = 0.0  # of the mean
    solution = np.linalg.solve(others[:, :-1, :-1] + ridge, others[:, :-1, -1:])
    signs = np.concatenate([-solution, np.ones((PARTS, 1, 1))], axis=1)
    return max(0.0, 1.0 - float(np.sum(signs * (part @ signs))) / total)
