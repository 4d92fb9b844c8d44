"""Joint terms: what multiplies each coefficient of friction, springs and drive inertia.

A drive along the combination ``c . q`` of joint positions adds to the joint torques the sum over
its terms of ``c * coefficient * factor``. Each term is defined in this table only; the
regressor, energies, gradients, generated code, sign constraints, the words of ``friction=`` and the
documentation follow from it. `feasid.certificate` keeps its own list of signs, because a checker
must not trust what it checks; a test compares the two.

A new term is one entry of `JOINT_TERMS` here and its symbol in that list.

This module imports no NumPy, because the table of options, which reads the words, must be light.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

BEYOND = 0.5
"""Share of the width of a spring's range over which its tangent continues it on either side."""

STRIBECK_SPEED, WIDE_STRIBECK_SPEED = 0.05, 0.15
"""Speeds [rad/s or m/s] over which friction of breaking away (fb, fe) fades; friction that fades at
a speed between them is nearly a sum of both."""


@dataclass(frozen=True, eq=False)
class JointState:
    """The state of one drive, by which factors are computed."""

    #: Its coordinate ``c . q``, velocity and acceleration: arrays, expressions or dual numbers.
    q: Any
    #: ``q`` less the position at which the drive's spring is slack; `deflections` bounds it.
    deflection: Any
    bounded: Any  #: The same within the drive's `spring_range`.
    ripple: Any  #: Periods per 2 pi rad of each wave of the drive's ripple.
    dq: Any  #: See `q`.
    ddq: Any  #: See `q`.
    sign: Any  #: Sign of ``dq``, or ``tanh(dq / transition)`` where the drive has a transition.
    #: Torque of the rigid bodies at the joint by the load model, of a term that needs it at rest
    #: that of their weight; None where no term needs it.
    load: Any
    #: The functions that factors are written in: abs, sqrt, exp, sin and cos of NumPy, which apply
    #: to arrays and to any other object that has a method of the same name, as expressions of
    #: generated code and dual numbers have.
    f: Any


def deflections(
    q: Any, rest: Any, low: Any, high: Any, clip: Callable[..., Any]
) -> tuple[Any, Any]:
    """`deflection` and `bounded` of springs known from `low` to `high`.

    Their tangent continues them by `BEYOND` of this width; farther away they are constant, as a
    cubic polynomial seen over a tenth of a joint's range has hundreds of newton metres at its ends.
    """
    more = BEYOND * (high - low)
    return clip(q, low - more, high + more) - rest, clip(q, low, high) - rest


@dataclass(frozen=True, eq=False)
class JointTerm:
    """One term of a drive."""

    symbol: str  #: The coefficient's symbol, second level of its parameter name.
    #: The word of ``friction=`` that adds the term; several terms may share one. Empty for drive
    #: inertia, which has an option of its own, and ripple, of which only a log tells the periods.
    word: str
    name: str  #: As messages call it.
    #: The factor as documentation writes it: v the velocity, a the acceleration, s the sign of v, x
    #: the position, and "load".
    formula: str
    #: The factor by a `JointState`; a term that is constant may return a number.
    factor: Callable[[JointState], Any]
    kind: Literal["inertia", "friction", "spring", "ripple"]
    #: Which of the drive's coordinate and its derivatives the factor is a function of. It decides
    #: whether the term adds to the potential energy, the dissipation or the kinetic energy;
    #: constants count as functions of q.
    varies_with: Literal["q", "dq", "ddq"]
    nonnegative: bool = False  #: Whether the coefficient must not be negative.
    #: Symbol of the coefficient that this one must not exceed in size, if any.
    bounded_by: str = ""
    #: Whether the factor changes its sign with the drive's coordinate; otherwise it is even.
    odd: bool = True
    #: The factor is homogeneous of this degree in the drive's coordinate and its derivatives; None
    #: when it is not homogeneous.
    degree: float | None = 1.0
    needs_load: bool = False  #: Whether the factor depends on the load.
    #: Whether that load is the weight of the bodies alone, as if they rested.
    at_rest: bool = False

    @property
    def linear(self) -> bool:
        """Whether the factor is proportional to the coordinate or one of its derivatives."""
        return self.odd and self.degree == 1.0

    def scaling(self, ratio: float) -> float | None:
        """The coefficient w with ``ratio * factor(ratio * x) = w * factor(x)``.

        A unit of the coefficient of a drive that turns at `ratio` times the joint's velocity is w
        at the joint. None where there is no such number: the factor is not homogeneous, and the
        ratio is not 1 or -1.
        """
        if self.degree is None and abs(ratio) != 1.0:
            return None
        size: float = abs(ratio) ** (1.0 + (self.degree or 0.0))
        return size if self.odd or ratio >= 0 else -size


def _stribeck(state: JointState, speed: float = STRIBECK_SPEED) -> Any:
    ratio = state.dq / speed
    return state.sign * state.f.exp(-(ratio * ratio))


JOINT_TERMS = (
    # Drive inertia, viscous, Coulomb and offset friction: Sousa and Cortesao (2014) eq. (27).
    JointTerm("Ia", "", "drive inertia", "a", lambda m: m.ddq, "inertia", "ddq", nonnegative=True),
    JointTerm("fv", "viscous", "viscous friction", "v", lambda m: m.dq, "friction", "dq",
              nonnegative=True),
    JointTerm("fc", "coulomb", "Coulomb friction", "s", lambda m: m.sign, "friction", "dq",
              nonnegative=True, degree=0.0),
    JointTerm("fo", "offset", "offset friction", "1", lambda m: 1.0, "friction", "q",
              odd=False, degree=0.0),
    JointTerm("k", "spring", "spring stiffness", "x", lambda m: m.deflection, "spring", "q"),
    # Friction of lubricated gears: with the square root of the speed, and with the load.
    JointTerm("fs", "sqrt", "root friction", "s sqrt|v|",
              lambda m: m.sign * m.f.sqrt(m.f.abs(m.dq)), "friction", "dq",
              nonnegative=True, degree=0.5),
    JointTerm("fl", "load", "load friction", "s |load|",
              lambda m: m.sign * m.f.abs(m.load), "friction", "dq",
              nonnegative=True, degree=0.0, needs_load=True),
    JointTerm("fw", "weight", "weight friction", "s |weight|",
              lambda m: m.sign * m.f.abs(m.load), "friction", "dq",
              nonnegative=True, degree=0.0, needs_load=True, at_rest=True),
    JointTerm("fb", "stribeck", "Stribeck friction", f"s exp(-(v / {STRIBECK_SPEED})^2)",
              _stribeck, "friction", "dq", nonnegative=True, degree=None),
    JointTerm("fe", "stribeck", "wide Stribeck friction",
              f"s exp(-(v / {WIDE_STRIBECK_SPEED})^2)",
              lambda m: _stribeck(m, WIDE_STRIBECK_SPEED), "friction", "dq", nonnegative=True,
              degree=None),
    # Viscous friction that differs by direction: fv v + fd |v| opposes v while |fd| <= fv.
    JointTerm("fd", "direction", "direction-dependent friction", "|v|",
              lambda m: m.f.abs(m.dq), "friction", "dq", bounded_by="fv", odd=False),
    # Within the spring's range `bounded` is the deflection: these are x^2 and x^3, then tangents.
    JointTerm("k2", "spring", "quadratic stiffness", "x^2",
              lambda m: m.bounded * (2.0 * m.deflection - m.bounded), "spring", "q", odd=False,
              degree=2.0),
    JointTerm("k3", "spring", "cubic stiffness", "x^3",
              lambda m: m.bounded * m.bounded * (3.0 * m.deflection - 2.0 * m.bounded), "spring",
              "q", degree=3.0),
    JointTerm("gs", "compensator", "sine of a gravity compensator", "sin x",
              lambda m: m.f.sin(m.q), "spring", "q", degree=None),
    JointTerm("gc", "compensator", "cosine of a gravity compensator", "cos x",
              lambda m: m.f.cos(m.q), "spring", "q", odd=False, degree=None),
    # Ripple of motors, gears and sensors: a wave of the position, or two.
    JointTerm("rs", "", "sine of a ripple", "sin n x",
              lambda m: m.f.sin(m.q * m.ripple[0]), "ripple", "q", degree=None),
    JointTerm("rc", "", "cosine of a ripple", "cos n x",
              lambda m: m.f.cos(m.q * m.ripple[0]), "ripple", "q", odd=False, degree=None),
    JointTerm("rs2", "", "sine of a second ripple", "sin n2 x",
              lambda m: m.f.sin(m.q * m.ripple[1]), "ripple", "q", degree=None),
    JointTerm("rc2", "", "cosine of a second ripple", "cos n2 x",
              lambda m: m.f.cos(m.q * m.ripple[1]), "ripple", "q", odd=False, degree=None),
)  # fmt: skip
"""Every term, in the order of parameters."""

SIGNED_FEATURES = tuple(f"p{k}" for k in range(1, 10))
"""Symbols of a drive's features with coefficients of at least zero; see `CustomJointTerm`."""

FREE_FEATURES = tuple(f"u{k}" for k in range(1, 10))
"""Symbols of a drive's features with coefficients of either sign."""

FEATURE_SYMBOLS = (*SIGNED_FEATURES, *FREE_FEATURES)

TERMS = {term.symbol: term for term in JOINT_TERMS}  #: The terms by symbol.

AT_REST = frozenset(t.symbol for t in JOINT_TERMS if t.at_rest)
"""Symbols of terms whose load is the weight of the bodies alone."""

DRIVE_SYMBOLS = (*TERMS, *FEATURE_SYMBOLS)
"""Symbols that a drive may have, in the order of parameters."""

NONNEGATIVE = frozenset(t.symbol for t in JOINT_TERMS if t.nonnegative).union(SIGNED_FEATURES)
"""Symbols of coefficients that must not be negative."""

USUAL_SYMBOLS = ("Ia", "fv", "fc", "fo")
"""What a drive has unless its symbols are given: eq. (27) of Sousa and Cortesao (2014)."""


FRICTION = {
    word: tuple(term.symbol for term in JOINT_TERMS if term.word == word)
    for word in dict.fromkeys(term.word for term in JOINT_TERMS if term.word)
}
"""Symbols by the words of ``friction=``."""

RIPPLE = ("rs", "rc", "rs2", "rc2")
"""Symbols of ripple: sine and cosine of n x, of as many n as `feasid.robot.drives.Drive.ripple`."""

SEARCHED = {**FRICTION, "ripple": RIPPLE}  #: Symbols by the words of ``candidates=``.
USUAL_FRICTION = ("viscous", "coulomb", "offset")  #: The words that a fit takes by default.

FURTHER_FRICTION = tuple(word for word in FRICTION if word not in USUAL_FRICTION)
"""The words that a fit takes where it is asked to, or where the log supports them."""
