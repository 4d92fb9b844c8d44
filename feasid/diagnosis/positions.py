"""Positions that are exchanged, run backwards, count from another zero, or are in degrees.

Every guess is a whole motion for the description's inverse dynamics. All are computed in one
batch on a few hundred samples; the promising ones again on all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np
from scipy.optimize import minimize_scalar

from feasid.core.arrays import Array
from feasid.diagnosis.findings import Finding
from feasid.diagnosis.joint_models import (
    EXPLAINED,
    Hypothesis,
    Screen,
    ScreenSamples,
    all_explained,
    contradicts,
)
from feasid.diagnosis.signals import DEGREE, degrees_finding
from feasid.diagnosis.torque_columns import exchange_finding
from feasid.dynamics.regressor import inverse_dynamics

GAIN = 0.4
"""Another zero or direction must leave at most this share of the product of all residuals."""

SWAP_GAIN = 0.55
"""Exchanging two joints' motions must leave at most this share of it."""

GAINING = 0.8
"""Joints gain by a change that lowers their residual by this factor."""

WIDE = 3.2
"""Positions beyond this may be degrees [rad]."""

FEW = 240
"""Samples of the first look."""

MOST_SWAPPED = 8
"""Joints, the least explained ones, whose positions are tried the other way round."""

SEEN_AGAIN = 4
"""Guesses that are computed on all samples."""

TURNS = (-90.0, -45.0, 45.0, 90.0, 180.0)
"""Zeros that are tried [degrees]; the best is refined."""

ROUND = 0.85
"""A multiple of 45 degrees is taken when it gains at least this share of the logarithm."""

SMALLEST = 12.0
"""Errors of a zero below this are not told from errors of the description [degrees]."""


@dataclass(frozen=True)
class Guess:
    """A motion that may be the true one: `order` of columns, then `factor` q + `zero`."""

    kind: str
    joints: tuple[int, ...]
    change: Callable[[ScreenSamples], ScreenSamples]
    with_torque: bool = False
    zero: float = 0.0


def find_wrong_positions(screen: Screen, names: Sequence[str]) -> Iterator[Hypothesis]:
    """What would be better if some joint's positions were others."""
    if screen.cad is None or all_explained(screen):
        return
    guesses = [
        *_exchange_guesses(screen),
        *_reversal_guesses(screen),
        *_zero_guesses(screen),
        *_degree_guesses(screen),
    ]
    shares = _first_look(screen, guesses)
    for k in np.argsort(shares)[:SEEN_AGAIN]:
        if shares[k] < 1.5 * SWAP_GAIN:
            yield from _confirm_guess(screen, guesses[int(k)], names)


def _revolute_coordinates(screen: Screen) -> list[int]:
    """Coordinates of revolute joints."""
    robot = screen.robot
    return [
        rows.start
        for body, rows in zip(robot.bodies, robot.rows, strict=True)
        if body.dof == 1 and body.motion[:3].any()
    ]


def _exchange_guesses(screen: Screen) -> Iterator[Guess]:
    worst = sorted(np.argsort(-screen.residuals)[:MOST_SWAPPED].tolist())
    for i, j in combinations(worst, 2):
        yield Guess("exchange", (i, j), partial(_swap_coordinates, i=i, j=j))


def _swap_coordinates(s: ScreenSamples, i: int, j: int) -> ScreenSamples:
    """The samples with the motions of two coordinates exchanged."""
    order = np.arange(s.q.shape[1])
    order[[i, j]] = order[[j, i]]
    return replace(s, q=s.q[:, order], dq=s.dq[:, order], ddq=s.ddq[:, order])


def _reversal_guesses(screen: Screen) -> Iterator[Guess]:
    for j in _revolute_coordinates(screen):
        for with_torque in (False, True):
            change = partial(
                _change_coordinate, j=j, factor=-1.0, torque=-1.0 if with_torque else 1.0
            )
            yield Guess("reverse", (j,), change, with_torque)


def _zero_guesses(screen: Screen) -> Iterator[Guess]:
    for j in _revolute_coordinates(screen):
        for angle in TURNS:
            yield Guess(
                "zero", (j,), partial(_change_coordinate, j=j, zero=np.deg2rad(angle)), zero=angle
            )


def _degree_guesses(screen: Screen) -> Iterator[Guess]:
    largest = np.abs(screen.samples.q).max(axis=0)
    for j in _revolute_coordinates(screen):
        if largest[j] > WIDE:
            yield Guess("degrees", (j,), partial(_change_coordinate, j=j, factor=float(DEGREE)))


def _change_coordinate(
    s: ScreenSamples, j: int, factor: float = 1.0, zero: float = 0.0, torque: float = 1.0
) -> ScreenSamples:
    """The samples with one motion scaled, its zero moved and its torque scaled."""
    q, dq, ddq, tau = s.q.copy(), s.dq.copy(), s.ddq.copy(), s.tau
    for x in (q, dq, ddq):
        x[:, j] *= factor
    q[:, j] += zero
    if torque != 1.0:
        tau = tau.copy()
        tau[..., j] *= torque
    return replace(s, q=q, dq=dq, ddq=ddq, tau=tau)


def _first_look(screen: Screen, guesses: Sequence[Guess]) -> Array:
    """Shares of all guesses, on a coarse subsample."""
    few = screen.samples.subsample(max(1, len(screen.samples.t) // FEW))
    own = Screen(screen.robot, few)
    if not guesses or own.described is None:
        return np.ones(len(guesses))
    moved = [g.change(few) for g in guesses]
    q, dq, ddq = (np.concatenate([getattr(s, k) for s in moved]) for k in ("q", "dq", "ddq"))
    cad = inverse_dynamics(own.described, q, dq, ddq)
    parts = np.split(cad, len(moved))
    return np.array([own.share(Screen(own.robot, s, c)) for s, c in zip(moved, parts, strict=True)])


def _confirm_guess(screen: Screen, guess: Guess, names: Sequence[str]) -> Iterator[Hypothesis]:
    """Test a guess on all samples; yields a hypothesis where the residuals confirm it."""
    if guess.kind == "zero":
        yield from _refine_zero(screen, guess, names)
        return
    other = Screen(screen.robot, guess.change(screen.samples))
    share = screen.share(other)
    if not _is_credible(screen, other):
        return
    if guess.kind == "exchange" and share < SWAP_GAIN:
        i, j = guess.joints
        finding = exchange_finding("q", {i: j, j: i}, share, names)
        yield Hypothesis(share, finding, lambda: other, unknowns=2.0)
    elif guess.kind == "reverse" and share < GAIN:
        j = guess.joints[0]
        alone = not (np.delete(other.residuals / screen.residuals, j) < GAINING).any()
        if alone and not guess.with_torque:  # then it is the torque's sign
            return
        finding = _reversed_finding(names[j], share, guess.with_torque)
        yield Hypothesis(share, finding, lambda: other, unknowns=1.0)
    elif guess.kind == "degrees" and share < GAIN:
        why = f"is {1 / DEGREE:.3g} times what the torques show"
        yield Hypothesis(share, degrees_finding(names[guess.joints[0]], "", why), lambda: other)


def _is_credible(screen: Screen, other: Screen) -> bool:
    """Whether a joint gains and is understood then, and none that is understood loses."""
    own, after = screen.residuals, other.residuals
    gaining = (after < GAINING * own) & (after < EXPLAINED)
    return bool(gaining.any()) and not contradicts(screen, after)


def _reversed_finding(name: str, share: float, with_torque: bool) -> Finding:
    kinds = ("q", "dq", "ddq", "tau") if with_torque else ("q", "dq", "ddq")
    what = "position and torque count" if with_torque else "position counts"
    shown = {f"{k}_{name}": -1 for k in kinds if k in ("q", "tau")}
    return Finding(
        "reversed",
        "error",
        f"the {what} against the description's axis: the other way round the product of all "
        f"residuals falls to {share:.0%}",
        f"units={shown} (velocities alike)",
        (name,),
        tuple(f"{k}_{name}" for k in kinds),
        options={"units": {f"{k}_{name}": -1.0 for k in kinds}},
        values={"share": share, "torque": with_torque},
    )


def _refine_zero(screen: Screen, guess: Guess, names: Sequence[str]) -> Iterator[Hypothesis]:
    """The zero that explains most, near a first guess."""
    j = guess.joints[0]

    def at(degrees: float, of: Screen) -> Screen:
        return Screen(of.robot, _change_coordinate(of.samples, j, zero=float(np.deg2rad(degrees))))

    few = Screen(screen.robot, screen.samples.subsample(max(1, len(screen.samples.t) // FEW)))
    best = minimize_scalar(
        lambda d: few.share(at(d, few)),
        bounds=(guess.zero - 30, guess.zero + 30),
        method="bounded",
        options={"xatol": 1.0, "maxiter": 12},
    )
    angle, whole = float(best.x), 45.0 * round(float(best.x) / 45.0)
    share, neat = screen.share(at(angle, screen)), screen.share(at(whole, screen))
    if whole and neat < share**ROUND:
        angle, share = whole, neat
    angle = (angle + 180.0) % 360.0 - 180.0 or 180.0
    if share > GAIN or abs(angle) < SMALLEST or not _is_credible(screen, at(angle, screen)):
        return
    name, radians = names[j], round(float(np.deg2rad(angle)), 4)
    finding = Finding(
        "zero",
        "error",
        f"the position counts from another zero than the description's: {angle:+.0f} degrees "
        f"added, the product of all residuals falls to {share:.0%}",
        f"offsets={{{name!r}: {radians:g}}}",
        (name,),
        (f"q_{name}",),
        options={"offsets": {name: radians}},
        values={"share": share, "degrees": angle},
    )
    yield Hypothesis(share, finding, lambda: at(angle, screen), unknowns=1.0)
