"""The same ranks in exact rational arithmetic, where a robot's geometry is rational.

Rank decisions in floating point need a tolerance. When rotations are orthogonal matrices of
rationals (right angles, or 3-4-5 triangles) and lengths are decimals, the recursion of Wensing et
al. (2024), Alg. 1 and 2, can be run as it is written, with powers and without tolerances: that
is what certifies a result of `feasid.identifiability.nullspace`. Numbers are
``fractions.Fraction``, or python-flint's when it is installed, which is faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from feasid.identifiability.echelon import Echelon, Nullblock
from feasid.identifiability.frames import SYMMETRIC
from feasid.identifiability.rational import (
    Matrix,
    NotRational,
    Subspace,
    Vector,
    apply,
    beside,
    bilinear,
    cross,
    decimal,
    motion_transform,
    parameter_map,
    parameter_rate,
    product,
    rational_rotation,
    rational_screw,
    rational_type,
    screw_size,
    to_float,
    to_number,
    transposed,
)
from feasid.robot.parts import Body


@dataclass(frozen=True)
class RankCheck:
    """Whether the ranks and the leading parameters were confirmed exactly.

    ``certified`` with ``reason`` empty, or not certified and the reason why. ``arithmetic`` names
    the library that did it.
    """

    certified: bool
    reason: str = ""
    arithmetic: str = ""

    def __bool__(self) -> bool:
        return self.certified


def certify(echelon: Echelon, blocks: Sequence[Nullblock]) -> RankCheck:
    """Repeat the recursion in rationals and compare every joint's rank and leading parameters."""
    try:
        exact = exact_blocks(echelon)
    except NotRational as missing:
        return RankCheck(False, str(missing))
    for body, ours, block in zip(echelon.run.robot.bodies, blocks, exact, strict=True):
        if ours.independent.tolist() != block.independent.tolist():
            count, found = block.independent.size, ours.independent.size
            return RankCheck(
                False,
                f"joint {body.joint!r}: {count} base parameters in exact arithmetic, {found} in "
                f"floating point{', others lead' if count == found else ''}",
            )
    return RankCheck(True, "", rational_type()[1])


def exact_blocks(echelon: Echelon) -> tuple[Nullblock, ...]:
    """The blocks of an echelon form from exact arithmetic.

    Raises
    ------
    NotRational
        Says which joint's geometry is not, or what else is not covered.
    """
    run = echelon.run
    if run.measured is not None or run.shared_columns:
        raise NotRational("only for all joints measured and drives of single joints")
    if any(step.state.virtual.shape[1] for step in run.run):
        raise NotRational("only for joints whose free directions form a group")
    zero = to_number(0)
    gravity = [to_number(-decimal(float(g))) for g in run.robot.gravity]
    ground = ExactState([], [zero, zero, zero, *gravity], [], [])
    states: list[ExactState] = []
    out = []
    for i, (body, p) in enumerate(zip(run.robot.bodies, run.robot.parents, strict=True)):
        state, rows = _exact_step(echelon, i, body, states[p] if p >= 0 else ground)
        states.append(state)
        out.append(_block(echelon, i, rows))
    return tuple(out)


def _block(echelon: Echelon, i: int, rows: Matrix) -> Nullblock:
    """Null vectors of exact rows, the leading parameters first in the order of preference."""
    columns, units, _, inertial = echelon.layout(i)
    order = echelon.order(i, len(columns)).tolist()
    span = Subspace([[row[k] for k in order] for row in rows])
    leading = sorted(order[k] for k in span.rows)
    bound = [k for k in range(len(columns)) if k not in leading]
    vectors = np.zeros((len(columns), len(bound)))
    vectors[bound, np.arange(len(bound))] = 1.0
    place = {column: at for at, column in enumerate(order)}
    for pivot, row in span.rows.items():
        own = order[pivot]
        for k, column in enumerate(bound):
            value = row[place[column]]
            if value:
                vectors[own, k] = -to_float(value) * units[column] / units[own]
    return Nullblock(
        columns,
        units,
        vectors,
        np.array(bound, dtype=np.intp),
        np.array(leading, dtype=np.intp),
        inertial,
        echelon.drive_symbols(i),
        np.zeros(len(bound)),
    )


# -- the recursion -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ExactState:
    """Spans at a body: velocities, gravity's point and differences, functionals."""

    motion: Matrix
    point: Vector
    differences: Matrix
    firm: Matrix


def _exact_step(
    echelon: Echelon, i: int, body: Body, parent: ExactState
) -> tuple[ExactState, Matrix]:
    run = echelon.run
    zero = to_number(0)
    what = f"joint {body.joint!r}"

    def numbers(values: Iterable[Fraction]) -> Vector:
        return [to_number(v) for v in values]

    rotation = [
        numbers(r) for r in rational_rotation(body.rotation, f"the home rotation of {what}")
    ]
    position = numbers(decimal(float(v)) for v in body.position)
    screws = [numbers(rational_screw(s, what)) for s in body.motion.T]
    lift = motion_transform(rotation, position)
    lower = transposed(parameter_map(lift))
    turns = [cross(s) for s in screws]
    maps = [transposed(parameter_rate(s)) for s in screws]
    stacked = [list(s) for s in screws]
    width = 10
    rotor = body.rotor
    if rotor is not None:
        turn = [numbers(r) for r in rational_rotation(rotor.rotation, f"the rotor of {what}")]
        place = numbers(decimal(float(v)) for v in rotor.position)
        speed = to_number(decimal(rotor.gear) / decimal(screw_size(body.motion[:, 0])))
        spin = [zero, zero, speed, zero, zero, zero]
        view = motion_transform(turn, place)
        lift, lower = lift + view, lower + transposed(parameter_map(view))
        turns = [beside(turns[0], cross(spin))]
        maps = [beside(maps[0], transposed(parameter_rate(spin)))]
        stacked[0] += spin
        width = 20
    carried = Subspace(apply(lift, parent.motion)).close(turns).basis
    point = apply(lift, [parent.point])[0]
    moved = [image for t in turns for image in apply(t, [point])]
    differences = Subspace([*apply(lift, parent.differences), *moved]).close(turns).basis
    kept = Subspace(apply(lower, parent.firm)).close(maps).basis
    rows = [[*r, zero, zero] for m in maps for r in apply(m, kept)]
    rows += [[*_felt(v, s, width), zero, zero] for s in stacked for v in [*carried, *differences]]
    # a screw is divided by its size, so a drive's terms are divided by it too
    unit = to_number(1 / decimal(screw_size(body.motion[:, 0]))) if len(stacked) == 1 else zero
    for s in stacked:
        rows.append([*_felt(point, s, width), zero, unit])
        if not run.static:
            rows += [[*_felt(v, s, width), unit * unit, zero] for v in stacked]
    firm = Subspace([*(k[:10] for k in kept), *(r[:10] for r in rows)]).basis
    own = [] if run.static else [s[:6] for s in stacked]
    motion = Subspace([*(v[:6] for v in carried), *own]).basis
    differences = Subspace([d[:6] for d in differences]).basis
    state = ExactState(motion, point[:6], differences, firm)
    return state, _own_columns(echelon, i, rows, width)


def _own_columns(echelon: Echelon, i: int, rows: Matrix, width: int) -> Matrix:
    """Rows on the columns of a block: symmetric rotors reduced, absent drive terms left out."""
    run = echelon.run
    rotor, drive = run.robot.bodies[i].rotor, run.own_drives[i]
    symbols = () if drive is None else run.robot.drives[drive].symbols
    reduce = None
    if rotor is not None and rotor.symmetric:
        reduce = [[to_number(int(v)) for v in row] for row in SYMMETRIC]
    out = []
    for row in rows:
        new = row[:10]
        if width > 10:
            part = row[10:20]
            new = new + (part if reduce is None else product([part], reduce)[0])
        for k, symbol in enumerate(("Ia", "fo")):
            if symbol in symbols:
                new.append(row[width + k])
        out.append(new)
    return out


def _felt(vector: Vector, screw: Vector, width: int) -> Vector:
    """The momentum functional of stacked bodies."""
    out = bilinear(vector[:6], screw[:6])
    return out if width == 10 else out + bilinear(vector[6:], screw[6:])
