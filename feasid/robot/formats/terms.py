"""Joint terms and effects that description files hold besides rigid bodies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from feasid.core.errors import DescriptionError, InputError, did_you_mean
from feasid.robot.drives import Drive
from feasid.robot.joint_terms import JOINT_TERMS, NONNEGATIVE, TERMS

FLOATING_JOINT = "floating_base"  #: Name of the joint of a root that floats.
SHOWN = 6  #: Names of one kind that a note lists; the rest is counted.


TERM_FIELDS = {"Ia": "inertia", "fv": "viscous", "fc": "coulomb", "k": "stiffness"}
"""Field of `JointTerms` per symbol of a joint term."""


def symbols_of_fields(fields: Iterable[str]) -> tuple[str, ...]:
    """Symbols of the joint terms that a format with these fields of `JointTerms` holds."""
    return tuple(symbol for symbol, field in TERM_FIELDS.items() if field in {*fields})


@dataclass(frozen=True)
class JointTerms:
    """A joint's terms in SI units and radians; zero if the file gives none."""

    inertia: float = 0.0
    viscous: float = 0.0
    coulomb: float = 0.0
    stiffness: float = 0.0
    slack: float = 0.0
    """Rest position of the spring."""

    @property
    def values(self) -> dict[str, float]:
        """Value per drive symbol, those that are not zero."""
        named = ((symbol, getattr(self, name)) for symbol, name in TERM_FIELDS.items())
        return {symbol: value for symbol, value in named if value}

    def drives(self, body: str, joint: str) -> Iterator[Drive]:
        """The joint's drive; none without terms."""
        if values := self.values:
            rest, numbers = self.slack if "k" in values else 0.0, np.array([*values.values()])
            yield Drive(body, {joint: 1.0}, tuple(values), numbers, rest=rest, from_file=True)


NO_TERMS = JointTerms()


def sum_drives(drives: Iterable[Drive]) -> dict[tuple[tuple[str, float], ...], dict[str, float]]:
    """Values of drives per coupling and symbol, springs slack at zero; those without values none.

    Drives of one joint count as one with factor 1, each term scaled by `JointTerm.scaling`; a
    spring slack at `rest` is one slack at zero with the offset ``-c k rest``.
    """
    out: dict[tuple[tuple[str, float], ...], dict[str, float]] = {}
    for drive in drives:
        if drive.values is None:
            continue
        key, c = tuple(sorted(drive.coupling.items())), 1.0
        weights = dict.fromkeys(drive.symbols, 1.0)
        if len(key) == 1:
            ratio = key[0][1]
            custom = 1.0 if ratio == 1.0 else None  # terms of the caller's own are not scaled
            scaled = {s: TERMS[s].scaling(ratio) if s in TERMS else custom for s in drive.symbols}
            if None not in scaled.values():
                ((joint, c),) = key
                key, weights = ((joint, 1.0),), {s: w for s, w in scaled.items() if w is not None}
        terms = dict(zip(drive.symbols, map(float, drive.values), strict=True))
        # -k (x - rest) is a spring slack at zero and a constant torque.
        if drive.rest and terms.get("k"):
            terms["fo"] = terms.get("fo", 0.0) - terms["k"] * drive.rest
        total = out.setdefault(key, {})
        for symbol, value in terms.items():
            total[symbol] = total.get(symbol, 0.0) + weights.get(symbol, c) * value
    return out


def term_notes(drives: Iterable[Drive]) -> Iterator[str]:
    """One line on the joint terms that a file gives; they are initial values to `feasid.fit`."""
    drives = tuple(drives)
    counts = {t: sum(t.symbol in d.symbols for d in drives) for t in JOINT_TERMS}
    counted = [f"{t.name} of {n} joint{'s' * (n > 1)}" for t, n in counts.items() if n]
    if counted:
        yield f"joint terms in the file, taken as initial values: {', '.join(counted)}"


def negative_notes(joints: Iterable[tuple[str, str, JointTerms]]) -> Iterator[str]:
    """One line per (place, joint, terms) with negative friction or drive inertia."""
    for place, joint, terms in joints:
        values = terms.values.items()
        bad = [f"{TERMS[s].name} {v:g}" for s, v in values if v < 0 and s in NONNEGATIVE]
        if bad:
            yield (
                f"{place}: joint {joint!r} has negative {' and '.join(bad)}, which no passive "
                "joint has; verdicts cover rigid bodies only"
            )


@dataclass(frozen=True)
class LeftOut:
    """Something in a file that the robot does not have: its kind and name."""

    kind: str
    name: str


def count_by_kind(things: Iterable[LeftOut]) -> str:
    """Things by kind, with their number and names."""
    kinds: dict[str, list[str]] = {}
    for thing in things:
        kinds.setdefault(thing.kind, []).append(thing.name)
    parts = []
    for kind, every in kinds.items():
        names = [*dict.fromkeys(name for name in every if name)]
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        quoted = ", ".join(map(repr, names[:SHOWN]))
        count = f"{len(every)} x " if len(every) > 1 else ""
        parts.append(f"{count}{kind}{f' ({quoted}{more})' if quoted else ''}")
    return "; ".join(parts)


def left_out_notes(things: Iterable[LeftOut]) -> Iterator[str]:
    """One line with everything that was left out, by kind and name."""
    if parts := count_by_kind(things):
        yield f"in the file, but not in the model: {parts}"


# -- what changes the dynamics and is not modelled -------------------------------------------------

EFFECTS = {
    "tendon": "a tendon with a force or inertia of its own",
    "fluid": "drag in a fluid",
    "gravcomp": "gravity compensation",
    "actuator": "an actuator with damping or armature of its own",
    "nonlinear": "a spring or damper that is not linear, or that MuJoCo's compiler chooses",
    "multidof": "joint terms of a joint with several degrees of freedom",
    "equality": "an equality constraint other than linear ones of joints, connect and weld",
    "flex": "a deformable body",
    "plugin": "a plugin",
}
"""What ``load_robot(path, ignore=...)`` may leave out."""


@dataclass(frozen=True)
class UnmodelledEffect:
    """One thing that changes the dynamics and is not modelled: kind, where, and what."""

    kind: str
    path: str
    line: int
    text: str


def check_ignored(ignore: Iterable[str]) -> frozenset[str]:
    """The names of effects to leave out, or say which one does not exist."""
    ignored = (ignore,) if isinstance(ignore, str) else tuple(ignore)
    for name in ignored:
        if name not in EFFECTS:
            raise InputError(
                f"ignore={name!r} is not known{did_you_mean(name, EFFECTS)}: choose of "
                f"{', '.join(EFFECTS)}"
            )
    return frozenset(ignored)


def refuse_effects(
    effects: Iterable[UnmodelledEffect], ignored: frozenset[str]
) -> Iterator[LeftOut]:
    """Refuse the first effect that is not ignored; list the others."""
    for effect in effects:
        if effect.kind not in ignored:
            raise DescriptionError(
                f"{effect.path}:{effect.line}: {effect.text}: {EFFECTS[effect.kind]} is not "
                f"modelled; load_robot(path, ignore=[{effect.kind!r}]) reads the model without it",
                path=effect.path,
                line=effect.line,
                effect=effect.kind,
            )
        yield LeftOut(f"{EFFECTS[effect.kind]} (ignored as asked)", effect.text)
