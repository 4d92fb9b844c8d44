"""Joint terms of one drive: friction, drive inertia, springs, and torques of the caller's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from feasid.core.arguments import NonNegative, call_user_function, checked
from feasid.core.arrays import Array
from feasid.core.errors import DescriptionError, InputError
from feasid.robot.bodies import Body, Member, lumped_parameters, place_member, read_only_array
from feasid.robot.joint_terms import (
    DRIVE_SYMBOLS,
    FEATURE_SYMBOLS,
    FREE_FEATURES,
    RIPPLE,
    TERMS,
    USUAL_SYMBOLS,
    JointState,
    deflections,
)
from feasid.robot.rotations import compose, exponential


@checked
@dataclass(frozen=True, eq=False)
class CustomJointTerm:
    """A joint torque that you define, linear in one fitted coefficient."""

    name: str  #: As tables and messages call it.
    #: ``function(q, dq, ddq, load)`` of arrays (N,) of the drive's own coordinate and of the rigid
    #: bodies' torque at its joint by the description (None unless `load`); returns (N,).
    function: Callable[[Array, Array, Array, Array | None], Array]
    positive: bool = False  #: The coefficient is at least zero, as of a torque that dissipates.
    load: bool = False  #: The function looks at the load.

    def values(self, q: Array, dq: Array, ddq: Array, load: Array | None) -> Array:
        """The feature for a motion.

        Parameters
        ----------
        q, dq, ddq : ndarray, shape (N,)
            Of the drive's joint.
        load : ndarray, shape (N,), or None
            Load at the joint, for functions that take it.

        Returns
        -------
        ndarray, shape (N,)

        Raises
        ------
        InputError
            The function raises, or does not return one finite number per sample.
        """
        what = f"the function of feature {self.name!r}, called with q, dq, ddq and load,"
        returned = call_user_function(what, self.function, q, dq, ddq, load)
        values = np.asarray(returned, dtype=np.float64)
        if values.shape != q.shape or not np.isfinite(values).all():
            raise InputError(
                f"feature {self.name!r} must return {q.shape[0]} finite numbers, one per sample; "
                f"got an array of shape {values.shape}",
                feature=self.name,
            )
        return values


@checked
@dataclass(frozen=True, eq=False)
class Drive:
    """Drive inertia, friction and springs along a combination c . q of joint positions.

    The drive adds ``c`` times the sum of its coefficients, each times its factor, to the joint
    torques; c is the unit vector of one joint, except for motors that move several joints. The
    factors of the usual terms are those of eq. (27) of Sousa and Cortesao (2014), ``Ia c.ddq + fv v
    + fc sign(v) + fo`` with v = c.dq; all terms are in `feasid.robot.joint_terms.JOINT_TERMS`. With
    a transition, tanh(v / transition) takes the place of sign(v); the load of load-dependent
    friction is the rigid bodies' torque at the joint, see ``Robot.load_model``.
    """

    name: str  #: First level of its parameter names: the body's name for an ordinary joint.
    coupling: Mapping[str, float]  #: Factor per joint name.
    #: Which of `feasid.robot.joint_terms.DRIVE_SYMBOLS` it has; kept in that order, whatever the
    #: order given.
    symbols: tuple[str, ...] = USUAL_SYMBOLS
    #: Shape (len(symbols),): one per symbol, given in the order in which the symbols are given.
    values: Array | None = None
    #: Speed [rad/s or m/s] over which Coulomb friction changes its sign; 0 for at once.
    transition: NonNegative = 0.0
    rest: float = 0.0  #: Where the spring is slack [rad or m].
    #: Smallest and largest position [rad or m] from which springs are known; None if they hold
    #: everywhere. See `feasid.robot.joint_terms.deflections`.
    spring_range: tuple[float, float] | None = None
    #: Periods per 2 pi rad of each wave of its ripple, two at most; of ``rs rc``, and ``rs2 rc2``.
    ripple: tuple[float, ...] = ()
    #: The terms are those for which a description file gives values; `feasid.fit` takes the usual
    #: friction besides.
    from_file: bool = False
    #: What ``p1 p2 ...`` (positive ones, in order) and ``u1 u2 ...`` (the others) multiply.
    features: tuple[CustomJointTerm, ...] = ()

    def __post_init__(self) -> None:
        unknown = [s for s in self.symbols if s not in DRIVE_SYMBOLS]
        if unknown or not self.symbols:
            raise DescriptionError(f"drive {self.name!r} needs some of {DRIVE_SYMBOLS}: {unknown}")
        if len(set(self.symbols)) < len(self.symbols):
            raise DescriptionError(f"drive {self.name!r} has a symbol twice: {[*self.symbols]}")
        for term in (TERMS[s] for s in self.symbols if s in TERMS):
            if term.bounded_by and term.bounded_by not in self.symbols:
                raise DescriptionError(
                    f"drive {self.name!r}: {term.name} ({term.symbol}) is bounded by "
                    f"{TERMS[term.bounded_by].name} ({term.bounded_by}), which it lacks"
                )
            if term.needs_load and len(self.coupling) > 1:
                raise DescriptionError(
                    f"drive {self.name!r} moves several joints: {term.name} is of one joint"
                )
        lacking = {*RIPPLE[2 * len(self.ripple) :]} & {*self.symbols}
        if lacking or any(n <= 1 for n in self.ripple) or len({*self.ripple}) < len(self.ripple):
            raise DescriptionError(
                f"drive {self.name!r}: ripple must give the periods per turn of every wave: "
                "numbers above 1, no two of them equal"
            )
        missing = sorted({*self.symbols} & {*FEATURE_SYMBOLS} - {*feature_symbols(self.features)})
        if missing:
            raise DescriptionError(f"drive {self.name!r} has {missing}, but no such feature")
        ordered = tuple(s for s in DRIVE_SYMBOLS if s in self.symbols)
        if self.spring_range and not self.spring_range[0] < self.spring_range[1]:
            raise DescriptionError(f"drive {self.name!r}: spring_range must increase")
        if not self.coupling or not all(c for c in self.coupling.values()):
            raise DescriptionError(f"drive {self.name!r} needs finite non-zero factors per joint")
        if self.values is not None:
            values = read_only_array(self.values, (len(ordered),), f"values of drive {self.name!r}")
            by_symbol = dict(zip(self.symbols, values, strict=True))
            sorted_values = read_only_array([by_symbol[s] for s in ordered], values.shape, "")
            object.__setattr__(self, "values", sorted_values)
        object.__setattr__(self, "symbols", ordered)

    @property
    def spring_ends(self) -> tuple[float, float]:
        """`spring_range`, infinite where springs hold everywhere."""
        return self.spring_range or (-np.inf, np.inf)

    @property
    def depends_on_load(self) -> bool:
        """Whether any of the drive's terms depends on the load."""
        return any(self.needs_load(symbol) for symbol in self.symbols)

    def needs_load(self, symbol: str) -> bool:
        """Whether the term `symbol` depends on the load; an unknown symbol raises `InputError`."""
        return self.feature(symbol).load if symbol not in TERMS else TERMS[symbol].needs_load

    def factor(
        self, symbol: str, q: Array, dq: Array, ddq: Array, *, load: Array | None = None
    ) -> Array:
        """Factor of the coefficient `symbol` in this drive's torque.

        Friction as in Sousa and Cortesao (2014) eq. (27), and the further terms of
        `feasid.robot.joint_terms.JOINT_TERMS`.

        Parameters
        ----------
        symbol : str
        q, dq, ddq : ndarray, shape (N,)
            The drive's coordinate ``c . q`` [rad or m], its velocity and acceleration.
        load : ndarray, shape (N,), optional
            Torque of the rigid bodies at the joint, for terms that depend on it [N m or N]; for
            terms in `AT_REST`, that of the bodies at rest.

        Returns
        -------
        ndarray, shape (N,)

        Raises
        ------
        InputError
            The drive has no such term, or the term depends on the load and `load` is missing.
        """
        if symbol not in DRIVE_SYMBOLS:
            raise InputError(f"unknown drive symbol {symbol!r}")
        if self.needs_load(symbol) and load is None:
            raise InputError(f"drive {self.name!r}: {symbol} needs the load, which is not given")
        if symbol not in TERMS:
            return self.feature(symbol).values(q, dq, ddq, load)
        sign = np.tanh(dq / self.transition) if self.transition else np.sign(dq)
        term, springs = TERMS[symbol], (q, q)
        if term.kind == "spring":
            springs = deflections(q, self.rest, *self.spring_ends, np.clip)
        value = term.factor(JointState(q, *springs, self.ripple, dq, ddq, sign, load, np))
        return np.asarray(value) if np.shape(value) else np.full_like(dq, value)

    def feature(self, symbol: str) -> CustomJointTerm:
        """The custom term with this `symbol`; raises `InputError` if there is none."""
        symbols = feature_symbols(self.features)
        if symbol not in symbols:
            has = f"it has {', '.join(symbols)}" if symbols else "it has none"
            raise InputError(f"drive {self.name!r} has no feature {symbol!r}; {has}")
        return self.features[symbols.index(symbol)]


factor_of = inspect.unwrap(Drive.factor)  #: Without the check of arguments: arrays are right.


def feature_symbols(features: Sequence[CustomJointTerm]) -> list[str]:
    """The symbol of each feature: ``p1 p2 ...`` of positive ones, ``u1 u2 ...`` of the others."""
    kinds = ["p" if feature.positive else "u" for feature in features]
    if max(map(kinds.count, "pu")) > len(FREE_FEATURES):
        raise DescriptionError(f"a joint has at most {len(FREE_FEATURES)} features of a kind")
    return [f"{kind}{kinds[: k + 1].count(kind)}" for k, kind in enumerate(kinds)]


def drive_with_terms(
    known: Drive | None, body: Body, symbols: tuple[str, ...], features: tuple[CustomJointTerm, ...]
) -> Drive:
    """A joint's drive with `symbols`, features, spring and ripple, keeping the values that it had.

    A file that gives some terms says that the others are zero.
    """
    symbols = (*symbols, *feature_symbols(features))
    if known is None:
        return Drive(body.name, {body.joint: 1.0}, symbols, features=features)
    symbols += tuple(s for s in known.symbols if s in ("k", *RIPPLE) and s not in symbols)
    values = None
    if known.values is not None:
        # Values without those of the new symbols would say that these are zero.
        had = dict(zip(known.symbols, known.values, strict=True))
        if known.from_file or all(s in had for s in symbols):
            values = np.array([had.get(s, 0.0) for s in symbols])
    return replace(known, symbols=symbols, values=values, from_file=False, features=features)


def hold_joint(
    bodies: tuple[Body, ...],
    drives: tuple[Drive, ...],
    fixed: tuple[Member, ...],
    joint: str,
    q: Array,
) -> tuple[tuple[Body, ...], tuple[Drive, ...], tuple[Member, ...]]:
    """A robot's bodies, drives and fixed links with one joint held at q, shape (n_d,)."""
    held_body = next(body for body in bodies if body.joint == joint)
    turn, shift = exponential(held_body.motion @ q)
    rotation, position = compose(held_body.rotation, held_body.position, turn, shift)
    joined = [place_member(m, rotation, position) for m in _links(held_body)]
    remaining = []
    for body in bodies:
        if body is held_body:
            continue
        if body.name == held_body.parent:
            # The parent gets the held body's links, inertia and rotor.
            member = replace(joined[0], name=held_body.name, inertial=held_body.inertial)
            parts = [Member(body.name, inertial=body.inertial), member]
            rotor = held_body.rotor
            if rotor is not None and rotor.values is not None:
                # A balanced rotor has the same inertia at every angle.
                angle = 0.0 if rotor.symmetric else rotor.gear * float(q[0])
                turned = rotor.rotation @ exponential(np.array([0, 0, angle, 0, 0, 0]))[0]
                ten = rotor.reduction @ rotor.values
                parts.append(Member(f"{held_body.name} rotor", turned, rotor.position, ten))
            body = replace(
                body,
                inertial=lumped_parameters(parts),
                members=(*_links(body), *joined),
                massless=body.massless and held_body.massless and rotor is None,
            )
        elif body.parent == held_body.name:
            home = compose(rotation, position, body.rotation, body.position)
            rotor = body.rotor
            if rotor is not None:
                turned, moved = compose(rotation, position, rotor.rotation, rotor.position)
                rotor = replace(rotor, rotation=turned, position=moved)
            parent = held_body.parent
            body = replace(body, parent=parent, rotation=home[0], position=home[1], rotor=rotor)
        remaining.append(body)
    pairs = [(d, {j: c for j, c in d.coupling.items() if j != joint}) for d in drives]
    # A spring is slack at a sum of positions, to which the joint adds a constant from now on.
    return (
        tuple(remaining),
        tuple(
            replace(d, coupling=coupling, rest=d.rest - d.coupling.get(joint, 0.0) * float(q[0]))
            for d, coupling in pairs
            if coupling
        ),
        fixed if held_body.parent is not None else (*fixed, *joined),
    )


def _links(body: Body) -> tuple[Member, ...]:
    """The links of a body; its own alone when it does not list any."""
    return body.members or (Member(body.name, inertial=body.inertial),)
