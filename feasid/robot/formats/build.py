"""A robot of moving bodies from a description: links that move together are added up.

Links without joints are added to the body that carries them. Of a link with several joints, the
last one carries it, and the others carry bodies without mass named ``link/joint``. Friction, drive
inertia and springs of joints become drives with these values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.core.errors import DescriptionError, InputError, missing_extra
from feasid.robot.bodies import Body, Member, lumped_parameters
from feasid.robot.couplings import Coupling, Loop
from feasid.robot.description import GRAVITY, Robot, Source
from feasid.robot.drives import Drive
from feasid.robot.formats import terms
from feasid.robot.formats.description import Description, Joint, Link, NeedsCompilerError
from feasid.robot.rotations import compose, exponential

WORLD = "world"  #: Name of the base in equality constraints.
LIGHTEST = 1e-9  #: Mass [kg] and moments [kg m^2] of the motor of an elastic joint in a file.


def build_robot(
    description: Description,
    source: Source,
    floating: bool | None = None,
    gravity: npt.ArrayLike | None = None,
    ignore: frozenset[str] = frozenset(),
) -> Robot:
    """Build the robot of a description; for the options see `feasid.load_robot`.

    Bodies are named after their moving link and have its frame. `source` gets notes on what was
    repaired, read and left out. Raises DescriptionError: something changes the dynamics that is not
    modelled and that `ignore` does not name. Raises InputError: `floating` contradicts the
    description. Raises MissingExtraError: masses that only the format's compiler knows.
    """
    left_out = [*terms.refuse_effects(description.effects, ignore), *description.left_out]
    notes = [*description.all_notes]
    floats = _has_floating_base(description, floating, notes)
    values = _link_parameters(description)
    tree = _BodyBuilder()
    for link in description.parents_first():
        tree.add_link(link, values.get(link.name), floats)
    if not tree.moving:
        raise InputError(f"robot {description.name!r} has no moving joint")
    # Links without mass and geometry that carry others, in a file that gives links a mass, are
    # frames between joints. A last body without mass is none: it could not be moved.
    carrying = {b.parent for b in tree.moving}
    weighed = any(link.mass is not None for link in description.links)
    bodies = []
    for body in tree.moving:
        members = tree.members.get(body.name, [])
        if members:
            several = tuple(members) if len(members) > 1 else ()
            body = replace(body, inertial=lumped_parameters(members), members=several)
        if description.has_frames:
            heavy = any(m.inertial is not None and m.inertial.any() for m in members)
            frame = not heavy and not any(description.link(m.name).drawings() for m in members)
            body = replace(body, massless=weighed and body.name in carrying and frame)
        bodies.append(body)
    bodies = list(_drop_zero_inertias(description, bodies, tree, notes))
    left_out += [
        terms.LeftOut(f"<dynamics> of a {joint.kind} joint", joint.name)
        for joint in description.joints
        if not joint.one_dof and joint.terms.values
    ]
    drives = (*tree.drives, *description.shared)
    notes += [*terms.term_notes(drives), *terms.left_out_notes(left_out)]
    stated_gravity = description.gravity if gravity is None else gravity
    robot = Robot(
        tuple(bodies),
        np.asarray(GRAVITY if stated_gravity is None else stated_gravity, dtype=np.float64),
        description.name,
        drives,
        source=replace(source, notes=(*source.notes, *notes)),
        fixed=tuple(tree.members[None]),
    )
    # Motors of elastic joints have no mass but that which programs need.
    light = {b.joint for b in bodies if b.inertial is not None and b.inertial[9] <= LIGHTEST}
    motors = light & {*robot.elastic.values()}
    passive = tuple(link for link, motor in robot.elastic.items() if motor in motors)
    bodies = [
        replace(b, inertial=None, members=(), massless=True) if b.joint in motors else b
        for b in bodies
    ]
    return _add_constraints(replace(robot, bodies=tuple(bodies), passive=passive), description)


def _has_floating_base(description: Description, asked: bool | None, notes: list[str]) -> bool:
    """Whether the root link floats: as the option says; by default only if no joint moves."""
    roots = {None, *(x.name for x in description.links if not (x.parent or x.joints))}
    hung = (link for link in description.links if link.parent in roots)
    stated = any(j.kind == "floating" for link in hung for j in link.joints)
    if description.world and asked and not stated:
        raise InputError(
            f"floating=True is for descriptions without a world: {description.path} itself "
            f"defines what floats"
        )
    if description.world or stated:
        return False
    immobile = not any(link.joints for link in description.links)
    path = description.path
    if immobile and asked is False:
        raise InputError(
            f"{path}: robot {description.name!r} has no moving joint: it can only float", path=path
        )
    if immobile and asked is None:
        root = next(link.name for link in description.links if link.parent is None)
        notes.append(f"{path}: no joint moves: the root link {root!r} floats")
    return asked or immobile


def _link_parameters(description: Description) -> dict[str, Array | None]:
    """Ten parameters per link in its frame, scaled to the total mass that the file sets."""
    try:
        if description.unknown:
            raise NeedsCompilerError("; ".join(description.unknown[:3]))
        values = {link.name: link.parameters for link in description.links}
    except NeedsCompilerError as error:
        need = missing_extra(str(error), "MuJoCo's compiler", "mujoco")
        hint = "then load_robot(path, use_mujoco=True)"
        raise type(need)(f"{need}, {hint}", **need.data) from error
    total = sum(float(v[9]) for v in values.values() if v is not None)
    if not description.total_mass or total <= 0:
        return values
    scale = description.total_mass / total
    return {name: None if v is None else v * scale for name, v in values.items()}


class _BodyBuilder:
    """The bodies of a robot while links are added to them, parents first."""

    def __init__(self) -> None:
        self.places: dict[str, tuple[str | None, Array, Array]] = {}
        self.members: dict[str | None, list[Member]] = {None: []}
        self.moving: list[Body] = []
        self.drives: list[Drive] = []

    def add_link(self, link: Link, inertial: Array | None, floats: bool) -> None:
        """Add a link, with a body for each of its joints."""
        carrier, rotation, position = (None, np.eye(3), np.zeros(3))
        joints = link.joints
        if link.parent is not None:
            carrier, rotation, position = self.places[link.parent]
        elif floats and not joints:
            joints = (Joint(terms.FLOATING_JOINT, "floating"),)
        home = compose(rotation, position, link.home.rotation, link.home.position)
        for k, joint in enumerate(joints):
            last = k == len(joints) - 1
            label = link.name if last else f"{link.name}/{joint.name}"
            if joint.reference:  # the file's home has the joint there, the robot's at zero
                home = compose(*home, *exponential(joint.motion[:, 0] * -joint.reference))
            parts = (label, carrier, *home, joint.motion, joint.name)
            self.moving.append(Body(*parts, limits=joint.limits, massless=not last))
            carrier, home = label, (np.eye(3), np.zeros(3))
            self.drives += joint.terms.drives(label, joint.name) if joint.one_dof else ()
        self.places[link.name] = (carrier, *home)
        self.members.setdefault(carrier, []).append(Member(link.name, *home, inertial))


def _drop_zero_inertias(
    description: Description, bodies: Sequence[Body], tree: _BodyBuilder, notes: list[str]
) -> Iterator[Body]:
    """The bodies, without the inertia of those of which the file says that it is zero.

    A body that moves has a mass: a zero in the file is a value that nobody filled in, and says no
    more than a missing one.
    """
    missing: list[str] = []
    frames: list[str] = []
    for body in bodies:
        links = [description.link(m.name) for m in tree.members.get(body.name, ())]
        zeros = any(link.mass == 0 and not any(link.moments or ()) for link in links)
        if zeros and (body.inertial is None or not body.inertial.any()):
            (frames if body.massless else missing).append(body.name)
            body = body if body.massless else replace(body, inertial=None)
        yield body
    if missing:
        notes.append(
            f"{description.path}: mass 0 is given for moving {_join_names('link', missing)}: taken "
            f"as not given (known={{{missing[0]!r}: [0] * 10}} in a fit means zero)"
        )
    if frames:
        notes.append(
            f"{description.path}: mass 0 is given for moving {_join_names('link', frames)} without "
            f"shapes that carry others: taken as mere frames without mass"
        )


def _join_names(word: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return f"{word}{'s' * (len(names) > 1)} {', '.join(map(repr, names[:6]))}{more}"


# -- equality constraints -------------------------------------------------------------------------


def _add_constraints(robot: Robot, description: Description) -> Robot:
    """The robot with the description's equality constraints.

    MuJoCo keeps them by soft forces; here they hold exactly. The joints of motors are independent
    where they can be.
    """
    bonds = description.bonds
    if not bonds:
        return robot
    references = {j.name: j.reference for j in description.joints if j.one_dof}
    couplings = []
    for bond in bonds:
        if bond.kind == "joint":
            # q1 - ref1 = a0 + a1 (q2 - ref2), solved for q1.
            a0, a1 = bond.factors
            factors = {bond.second: a1} if bond.second and a1 != 0.0 else {}
            shift = a1 * references.get(bond.second, 0.0) if factors else 0.0
            offset = references.get(bond.first, 0.0) + a0 - shift
            couplings.append(Coupling(bond.first, factors, offset))
    robot = replace(robot, couplings=tuple(couplings))
    if all(b.kind == "joint" for b in bonds):
        return robot
    places: dict[str, Place] = {WORLD: (None, np.eye(3), np.zeros(3)), **link_places(robot)}
    home: dict[str | None, tuple[Array, Array]] = {None: (np.eye(3), np.zeros(3))}
    home.update(robot.pose(references))
    loops = []
    for bond in (b for b in bonds if b.kind != "joint"):
        for name in (bond.first, bond.second):
            if name not in places:
                raise DescriptionError(f"equality {bond.name!r}: there is no body {name!r}")
        (body1, turn1, at1), (body2, turn2, at2) = places[bond.first], places[bond.second]
        axes1, origin1 = compose(*home[body1], turn1, at1)
        axes2, origin2 = compose(*home[body2], turn2, at2)
        first, second = bond.first_point, bond.second_point
        if first is None:  # the same point at home
            second = np.zeros(3) if second is None else second
            first = axes1.T @ (origin2 + axes2 @ second - origin1)
        elif second is None:
            second = axes2.T @ (origin1 + axes1 @ first - origin2)
        frame = axes1.T @ axes2 if bond.turn is None else bond.turn
        frame1, point1 = compose(turn1, at1, frame, first)
        frame2, point2 = compose(turn2, at2, np.eye(3), second)
        loops.append(Loop(bond.name, body1, body2, point1, point2, bond.kind, frame1, frame2))
    start = {j: references[j] for j in robot.joints if j in references}
    motors = tuple(description.motors)
    tried = replace(robot, loops=tuple(loops), active=motors, configuration=start)
    # More motors than degrees of freedom cannot all be independent.
    return robot.with_loops(loops, [joint for joint in motors if joint in tried.coordinates], start)


Place = tuple[str | None, Array, Array]
"""A link of the file: its body of the robot (None: the base) and its pose in it."""


def link_places(robot: Robot) -> dict[str, Place]:
    """The place of every link, by name."""
    out: dict[str, Place] = {m.name: (None, m.rotation, m.position) for m in robot.fixed}
    for body in robot.bodies:
        links = (Member(body.name), *body.members)
        out |= {m.name: (body.name, m.rotation, m.position) for m in links}
    return out
