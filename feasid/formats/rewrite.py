"""New inertials for the links of a file: which numbers to write, exactly possible as decimals.

Links that move as one body share one set of parameters that only make sense together: the moving
link gets the body's parameters minus those of the links fixed to it. When what remains could not
exist, or a fixed link could not, the fixed links' mass and inertia become zero and the moving link
carries all. Links on joints that are only held (``lock=``) still move for other programs, which
refuse moving links without mass: these keep their inertial, or a share of it where the whole is
more than the body has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import InputError, OutputError
from feasid.exact.decimals import Number
from feasid.exact.inertia import can_exist
from feasid.formats.terms import summed
from feasid.formats.xml import representable, written
from feasid.robot import inertia
from feasid.robot.bodies import Body, Member, lumped, parameters_in_body
from feasid.robot.description import Robot
from feasid.robot.rotations import is_signed_permutation

UNCHANGED = 1e-14
"""Relative difference that is rounding: the file keeps its own digits."""

AGREEMENT = 1e-9
"""Relative to the body's scale, how well a written file must reproduce the robot."""

HELD_SHARES = (*(0.5**k for k in range(20)), 1e-9)
"""Shares of the inertials of held links that are tried, until the body's own link can exist."""

_LIFTS = (0.0, 1e-16, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10)
"""Multiples of tr(I) that may be added to the diagonal to make the decimals exactly definite."""


@dataclass(frozen=True)
class NewInertial:
    """Numbers to write for one link, in the axes that its inertial already has.

    ``com`` None leaves the centre of mass as it is; `reset_axes` turns the axes into the link's.
    """

    mass: float
    moments: tuple[float, ...]
    com: tuple[float, ...] | None = None
    reset_axes: bool = False

    def is_possible(self) -> bool:
        """Whether the decimals, as written, are the inertia of some body with volume."""
        exact = [Fraction(written(v)) for v in (self.mass, *self.moments)]
        return can_exist(exact[0], exact[1:])


def new_inertials(
    body: Body,
    links: Sequence[Member],
    harmless: Callable[[str], bool],
    axes: Callable[[str], Array | None],
    emptied: NewInertial,
    held: Collection[str] = (),
) -> dict[str, NewInertial]:
    """What to write for the links of one body; empty when its parameters are the file's.

    Parameters
    ----------
    body : Body
    links : sequence of Member
        The body's links with the parameters that the file gives, the moving one first.
    harmless : callable
        Whether a fixed link, by name, can stay as it is.
    axes : callable
        Axes of a link's inertial in the link's, by name, (3, 3); None when there are none to keep.
    emptied : NewInertial
        What a fixed link gets when the moving one carries all.
    held : collection of str
        Links that have a joint of their own in the file, at which the robot holds them.

    Raises
    ------
    InputError
        The body's parameters cannot exist; names it.
    """
    before, target = lumped(links), body.inertial
    if (
        target is None
        or body.massless
        or (before is not None and disagreement(before, target) <= UNCHANGED)
    ):
        return {}
    own, children = links[0], [m for m in links[1:] if m.inertial is not None]
    if all(harmless(m.name) for m in children):
        rest = target - sum((parameters_in_body(m) for m in children), start=np.zeros(10))
        new = inertial_of(rest, axes(own.name))
        if new is not None:
            return {own.name: new}
    kept = [m for m in children if m.name in held]
    for member in kept:
        if not harmless(member.name):
            raise InputError(
                f"the parameters of link {member.name!r}, whose joint is held, cannot exist: "
                f"correct them first",
                link=member.name,
            )
    moved = sum((parameters_in_body(m) for m in kept), start=np.zeros(10))
    for share in HELD_SHARES if kept else (1.0,):
        new = inertial_of(target - share * moved, axes(own.name))
        if new is not None:
            out = {own.name: new} | {m.name: emptied for m in children if m not in kept}
            return out if share == 1 else out | _scaled_inertials(kept, share, axes)
    raise InputError(
        f"the parameters of body {body.name!r} cannot exist: its pseudo-inertia is not "
        f"positive definite, so no simulator would load the file; correct them first",
        body=body.name,
    )


def _scaled_inertials(
    members: Sequence[Member], share: float, axes: Callable[[str], Array | None]
) -> dict[str, NewInertial]:
    """The share of each link's inertial; links without mass stay as they are."""
    out = {}
    for member in members:
        own = np.zeros(10) if member.inertial is None else share * member.inertial
        new = inertial_of(own, axes(member.name)) if own[9] > 0 else None
        if new is not None:
            out[member.name] = new
    return out


def inertial_of(delta: Array, axes: Array | None = None) -> NewInertial | None:
    """Numbers for a link with these ten parameters, exactly possible; None when they are not.

    The `axes` of the file's inertial are kept when turning into them does not round.
    """
    if not delta[9] > 0:
        return None
    mass, com, about_com = inertia.to_mass_com_inertia(delta)
    turn = np.eye(3) if axes is None else axes
    reset = not is_signed_permutation(turn)
    if not reset:
        about_com = turn.T @ about_com @ turn
    trace = float(np.trace(about_com))
    for lift in _LIFTS:
        lifted = about_com + lift * trace * np.eye(3)
        moments = tuple(representable(lifted[r, c]) for r, c in inertia.UPPER)
        new = NewInertial(float(mass), moments, tuple(map(representable, com)), reset)
        if new.is_possible():
            return new
    return None


def disagreement(a: Array, b: Array) -> float:
    """Largest difference of two bodies' parameters, relative to mass and size of `b`."""
    mass = abs(b[9]) or 1.0
    gyration = float(np.sqrt(abs(b[0] + b[3] + b[5]) / mass)) or 1.0
    scale = mass * np.array([gyration**2] * 6 + [gyration] * 3 + [1.0])
    return float((np.abs(a - b) / scale).max())


def is_harmless(mass: Number, moments: Sequence[Number]) -> bool:
    """Whether an inertial can stay as it is: possible, or without mass and inertia."""
    exact = [n.exact for n in moments]
    return can_exist(mass.exact, exact) or not (mass.exact or any(exact))


# -- joint terms ----------------------------------------------------------------------------------


def wanted_terms(robot: Robot, held: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Per joint the attributes to write: `held` maps drive symbols to attributes.

    Joints of one degree of freedom without a drive get zeros: a file says what the model says.
    Joints with a drive without values keep what the file says.

    Raises
    ------
    InputError
        A term is negative; names the joint.
    """
    values = summed(robot.drives)
    unsaid = {joint for d in robot.drives if d.values is None for joint in d.coupling}
    out = {}
    for body in robot.bodies:
        if body.dof == 1 and body.joint not in unsaid:
            given = values.get(((body.joint, 1.0),), {})
            terms = {
                attribute: representable(given.get(symbol, 0.0))
                for symbol, attribute in held.items()
            }
            for attribute, value in terms.items():
                if value < 0 and attribute != "stiffness":
                    raise InputError(
                        f"joint {body.joint!r}: {attribute} {value:.3g} is negative",
                        joint=body.joint,
                    )
            out[body.joint] = terms
    return out


def check_terms(found: Mapping[str, float], wanted: Mapping[str, float], joint: str) -> None:
    """Refuse a file whose joint terms do not read back as they were written."""
    for attribute, value in wanted.items():
        if abs(found[attribute] - value) > AGREEMENT * abs(value):
            raise not_verified(
                f"{attribute} of joint {joint!r} reads back as {found[attribute]:g}, not {value:g}"
            )


def not_verified(what: str) -> OutputError:
    """The error of a file that does not say what it should."""
    return OutputError(f"nothing was written, since the new file failed verification: {what}")
