"""What an experiment or a use moves and measures, and what one leaves unknown for another.

Torques of a use are functions of its base parameters beta_B = K_B delta. An experiment leaves
delta free along its null vectors N_A; so of beta_B it determines what is in the null space of
(K_B N_A)', and rank(K_B N_A) combinations are missing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array, Mask
from feasid.errors import InputError, did_you_mean
from feasid.robot.bodies import read_only_array
from feasid.robot.description import Robot
from feasid.robot.rotations import exponential

if TYPE_CHECKING:
    from scipy import sparse

Joints = str | Collection[str]

WORDS = ("measured", "held", "gravity", "static", "everything")


@dataclass(frozen=True, eq=False)
class Experiment:
    """Which joints move, which torques are measured, at rest or not, in which gravity.

    Parameters
    ----------
    measured : str or collection of str, optional
        Joints whose torques are measured; default all.
    held : str, collection of str, or mapping of str to position
        Joints that stay where they are, at home or at a position [rad or m].
    static : bool
        Postures at rest only.
    gravity : array_like, shape (3,), optional
        In the base frame [m/s^2]; default the robot's.
    """

    measured: Joints | None = None
    held: Joints | Mapping[str, npt.ArrayLike] = ()
    static: bool = False
    gravity: npt.ArrayLike | None = None

    @classmethod
    def parse(cls, words: Sequence[str]) -> Experiment:
        """From words: ``measured=hip,knee held=base,elbow:1.57 static gravity=0,0,-1.62``."""
        given: dict[str, str] = {}
        for word in words:
            key, _, value = word.partition("=")
            if key not in WORDS:
                hint = did_you_mean(key, WORDS)
                raise InputError(f"{word!r} is no part of an experiment{hint}: {', '.join(WORDS)}")
            if bool(value) == (key in ("static", "everything")):
                raise InputError(f"{word!r}: {key} takes {'no value' if value else 'a value'}")
            given[key] = value
        measured = given["measured"].split(",") if "measured" in given else None
        held = dict(_place(entry) for entry in given.get("held", "").split(",") if entry)
        gravity = _numbers(given["gravity"], "gravity") if "gravity" in given else None
        return cls(measured, held, "static" in given, gravity)

    @property
    def measured_joints(self) -> tuple[str, ...] | None:
        """Joints that are measured, None for all."""
        return None if self.measured is None else tuple(_names(self.measured))

    def measured_bodies(self, robot: Robot) -> set[int] | None:
        """Bodies on the joints that are measured, None for all."""
        if self.measured is None:
            return None
        return {robot.joint_index(j) for j in _names(self.measured)}

    def held_bodies(self, robot: Robot) -> set[int]:
        """Bodies on the joints that are held."""
        return {robot.joint_index(j) for j in _names(self.held)}

    def apply_to(self, robot: Robot) -> Robot:
        """The robot in this gravity, at home where its joints are held.

        Raises
        ------
        InputError
            Names a joint that shares a drive with others, or is held off its spring's rest.
        """
        if self.gravity is not None:
            robot = robot.with_gravity(self.gravity)
        for name in _names(self.held):
            shared = [d for d in robot.drives if len(d.coupling) > 1 and name in d.coupling]
            if shared:
                raise InputError(
                    f"joint {name!r} cannot be held: drive {shared[0].name!r} moves it together "
                    "with others",
                    joint=name,
                )
        if not isinstance(self.held, Mapping):
            return robot
        bodies = [*robot.bodies]
        for name, value in self.held.items():
            i = robot.joint_index(name)
            body = bodies[i]
            places = np.atleast_1d(value) * np.ones(body.dof)
            q = read_only_array(places, (body.dof,), f"position of joint {name!r}")
            if q.any() and any("k" in d.symbols and name in d.coupling for d in robot.drives):
                raise InputError(
                    f"joint {name!r} has a spring: it can be held at its rest position only",
                    joint=name,
                )
            turn, shift = exponential(body.motion @ q)
            bodies[i] = replace(
                body,
                rotation=body.rotation @ turn,
                position=body.position + body.rotation @ shift,
            )
        return replace(robot, bodies=tuple(bodies))


def _names(joints: Joints) -> Collection[str]:
    return (joints,) if isinstance(joints, str) else joints


def _place(entry: str) -> tuple[str, float]:
    """``elbow:1.57`` or ``elbow``."""
    name, separator, value = entry.rpartition(":")
    if not separator:
        return entry, 0.0
    return name, _numbers(value, f"position of joint {name!r}")[0]


def _numbers(text: str, what: str) -> list[float]:
    try:
        return [float(v) for v in text.split(",")]
    except ValueError:
        raise InputError(f"{what} must be numbers separated by commas, not {text!r}") from None


MISSING_TOLERANCE = 1e-9
"""Entries of K_B N_A below this, relative to the terms they are made of, are rounding."""


@dataclass(frozen=True, eq=False)
class IdentifiableSpace:
    """Base parameters as subspaces for comparing them: K, null vectors, names.

    Attributes
    ----------
    matrix : sparse array, shape (nb, n)
    nullspace : sparse array, shape (n, n - nb)
    independent : ndarray, shape (nb,)
    names : tuple of (body, symbol)
    expressions : tuple of str
    """

    matrix: sparse.csc_array
    nullspace: sparse.csc_array
    independent: np.ndarray
    names: tuple[tuple[str, str], ...]
    expressions: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class MissingCombinations:
    """Combinations that a use needs and an experiment leaves unknown.

    Attributes
    ----------
    experiment, use : Knowledge
    """

    experiment: IdentifiableSpace
    use: IdentifiableSpace

    def __post_init__(self) -> None:
        if self.experiment.names != self.use.names:
            raise InputError("an experiment and a use are compared for one robot's parameters")

    @cached_property
    def nullspace_image(self) -> Array:
        """K_B N_A with rows and columns of unit size, shape (nb, k); rounding is zero."""
        k, null = self.use.matrix, self.experiment.nullspace
        product, size = (k @ null).toarray(), (abs(k) @ abs(null)).toarray()
        product[np.abs(product) <= MISSING_TOLERANCE * size] = 0.0
        for axis in (0, 1):
            norm = np.linalg.norm(product, axis=axis, keepdims=True)
            product = product / np.where(norm > 0, norm, 1.0)
        return np.asarray(product)

    @cached_property
    def size(self) -> int:
        """How many combinations the use needs and the experiment leaves unknown."""
        if not self.nullspace_image.any():
            return 0
        s = np.linalg.svd(self.nullspace_image, compute_uv=False)
        return int((s > MISSING_TOLERANCE * s[0]).sum())

    @cached_property
    def missing(self) -> Mask:
        """Which of the use's base parameters the experiment does not know, shape (nb,)."""
        return np.asarray(self.nullspace_image.any(axis=1))

    def by_body(self) -> dict[str, list[str]]:
        """The use's base parameters that are not known, by the body of their leading parameter."""
        out: dict[str, list[str]] = {}
        for r in np.flatnonzero(self.missing).tolist():
            body = self.use.names[int(self.use.independent[r])][0]
            out.setdefault(body, []).append(self.use.expressions[r])
        return out

    def table(self) -> str:
        """Counts per body, then the combinations that are not known."""
        needed: dict[str, int] = {}
        for column in self.use.independent.tolist():
            body = self.use.names[column][0]
            needed[body] = needed.get(body, 0) + 1
        lacking = self.by_body()
        width = max(map(len, ["body", *needed]))
        lines = [f"{'body':{width}}  needed  not known"]
        lines += [f"{b:{width}}  {n:>6}  {len(lacking.get(b, ())):>9}" for b, n in needed.items()]
        for body, combinations in lacking.items():
            lines += ["", f"{body}: the experiment leaves unknown"]
            lines += [f"  {text}" for text in combinations]
        return "\n".join(lines)

    def __str__(self) -> str:
        total = len(self.use.independent)
        if self.size == 0:
            return f"the experiment tells all {total} combinations that the use needs"
        return (
            f"of {total} combinations that the use needs, {self.size} stay unknown; "
            f"they enter {int(self.missing.sum())} base parameters"
        )

    __repr__ = __str__
