"""Mechanisms in exact rationals: as robots in floating point, and as regressors modulo a prime.

The regressor at random configurations over the field of a prime P with about 31 bits has, except
with a probability near n / P, the rank that it has over the rationals: an oracle without any
tolerance. Rotations are random points of the circle or of the quaternions over the field; for a
helical joint the angle's point and the displacement are independent, as a transcendental
function of the angle is.
"""

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

import feasid

P = 2**31 - 1

FREE = {"R": [2], "P": [5], "H": [2], "S": [0, 1, 2], "C": [2, 5], "PL": [2, 3, 4], "T3": [3, 4, 5]}
FREE |= {"U": [0, 1], "F": [0, 1, 2, 3, 4, 5]}
"""Motion subspaces in the joint's frame: (angular | linear) unit directions."""


@dataclass(frozen=True)
class Half:
    """A rational times the root of 2 over 2, as in rotations by 45 degrees."""

    twice: Fraction

    def __float__(self):
        return float(self.twice) * 2**0.5 / 2


def tilted(rotation, n):
    """Turned about the second axis by an angle of nearly 2 / n."""
    bottom = n * n + 1
    c, s = Fraction(n * n - 1, bottom), Fraction(2 * n, bottom)
    turn = [[c, 0, s], [0, 1, 0], [-s, 0, c]]
    return [[sum(r[k] * turn[k][j] for k in range(3)) for j in range(3)] for r in rotation]


def turned_by_45_degrees(rotation):
    """A rational rotation, turned about its third axis."""
    out = []
    for x, y, z in rotation:
        out.append([Half(x + y) if x + y else 0, Half(y - x) if y - x else 0, z])
    return out


@dataclass
class Rotor:
    """On the joint's parent, turning at gear * q about its z axis."""

    gear: Fraction
    rotation: list
    position: list
    symmetric: bool = True


@dataclass
class Joint:
    """Home pose in the parent and free directions of one joint, all rational."""

    parent: int
    kind: str
    rotation: list
    position: list
    pitch: Fraction = Fraction(0)
    rotor: Rotor | None = None


@dataclass
class Mechanism:
    """A tree of such joints in a gravity field, with drives as (symbols, {joint: factor})."""

    joints: list
    gravity: list
    drives: tuple = ()

    def robot(self, scale=1.0):
        """As a robot in floating point, lengths times `scale`."""
        bodies = []
        for i, joint in enumerate(self.joints):
            motion = np.eye(6)[:, FREE[joint.kind]]
            motion[3:] *= scale
            if joint.kind == "H":
                motion[5] = float(joint.pitch) * scale
            rotor = None
            if joint.rotor is not None:
                pose = floats(joint.rotor.rotation), scale * floats(joint.rotor.position)
                rotor = feasid.Rotor(float(joint.rotor.gear), *pose, joint.rotor.symmetric)
            parent = None if joint.parent < 0 else str(joint.parent + 1)
            pose = floats(joint.rotation), scale * floats(joint.position)
            bodies.append(feasid.Body(str(i + 1), parent, *pose, motion, rotor=rotor))
        drives = []
        for k, (symbols, coupling) in enumerate(self.drives):
            own = len(coupling) == 1
            name = str(next(iter(coupling)) + 1) if own else f"drive{k}"
            factors = {str(j + 1): float(c) for j, c in coupling.items()}
            drives.append(feasid.Drive(name, factors, symbols))
        return feasid.Robot(bodies, scale * floats(self.gravity), drives=drives)


def floats(values):
    """Nested rationals as an array of doubles."""
    return np.array(np.vectorize(float)(np.array(values, dtype=object)), dtype=float)


def fractions(values):
    """Nested strings or numbers as Fractions."""
    if isinstance(values, list | tuple):
        return [fractions(v) for v in values]
    return Fraction(values)


def rational_rotation(rng, axis_aligned=False):
    """Rotation matrix with rational entries, from a small integer quaternion."""
    if axis_aligned:
        choices = [(1, 0, 0, 0), (1, 1, 0, 0), (1, 0, 1, 0), (1, 0, 0, 1), (0, 1, 0, 0)]
        choices += [(1, 1, 1, 1), (1, -1, 0, 0), (1, 0, -1, 0), (1, 1, -1, 1), (0, 0, 1, 1)]
        w, x, y, z = choices[rng.integers(len(choices))]
    else:
        w, x, y, z = 0, 0, 0, 0
        while w * w + x * x + y * y + z * z == 0:
            w, x, y, z = (int(v) for v in rng.integers(-3, 4, 4))
    n = w * w + x * x + y * y + z * z
    rows = [
        [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ]
    return [[Fraction(int(v), int(n)) for v in row] for row in rows]


# -- arithmetic modulo P -------------------------------------------------------------------------


def mod(values):
    """Nested Fractions as residues."""
    if isinstance(values, list | tuple):
        return np.array([mod(v) for v in values])
    if isinstance(values, Half):
        return mod(values.twice) * 2**15 % P  # 2^32 = 2 modulo 2^31 - 1
    value = Fraction(values)
    return value.numerator % P * pow(value.denominator, -1, P) % P


def dot(a, b):
    """Matrix product modulo P of (..., i, j) and (..., j, k)."""
    return (a[..., :, :, None] * b[..., None, :, :] % P).sum(axis=-2) % P


def matvec(a, b):
    return (a * b[..., None, :] % P).sum(axis=-1) % P


def cross(a, b):
    i, j = [1, 2, 0], [2, 0, 1]
    return (a[..., i] * b[..., j] - a[..., j] * b[..., i]) % P


def power(point, exponent):
    """Point (cos, sin) of the circle for `exponent` times the angle."""
    if exponent < 0:
        return power(np.stack([point[0], -point[1] % P]), -exponent)
    c, s = np.ones_like(point[0]), np.zeros_like(point[0])
    for _ in range(exponent):
        c, s = (c * point[0] - s * point[1]) % P, (c * point[1] + s * point[0]) % P
    return np.stack([c, s])


def circle(rng, n):
    """Random points on the circle over the field."""
    t = rng.integers(1, P, n)
    bottom = np.array([pow(int(v), -1, P) for v in (1 + t * t) % P])
    return np.stack([(1 - t * t) % P * bottom % P, 2 * t % P * bottom % P])


def about_z(point):
    c, s = point
    out = np.zeros((c.size, 3, 3), dtype=np.int64)
    out[:, 0, 0] = out[:, 1, 1] = c
    out[:, 1, 0], out[:, 0, 1] = s, -s % P
    out[:, 2, 2] = 1
    return out


def any_rotation(rng, n):
    out = about_z(circle(rng, n))
    for turn in ([1, 2, 0], [2, 0, 1], [0, 1, 2]):
        out = dot(out, about_z(circle(rng, n))[:, turn][:, :, turn])
    return out


def wrench_columns(w, dw, a):
    """Moment and force per unit of each parameter, (n, 3, 10) each, modulo P."""
    n = len(w)
    moment, force = (np.zeros((n, 3, 10), dtype=np.int64) for _ in range(2))
    unit = np.eye(3, dtype=np.int64)
    for k, (r, c) in enumerate([(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]):
        inertia = np.zeros((3, 3), dtype=np.int64)
        inertia[r, c] = inertia[c, r] = 1
        moment[:, :, k] = (matvec(inertia, dw) + cross(w, matvec(inertia, w))) % P
    for k in range(3):
        e = np.broadcast_to(unit[k], (n, 3))
        moment[:, :, 6 + k] = cross(e, a)
        force[:, :, 6 + k] = (cross(dw, e) + cross(w, cross(w, e))) % P
    force[:, :, 9] = a
    return moment, force


SYMMETRIC = np.zeros((10, 4), dtype=np.int64)
SYMMETRIC[[0, 3, 5, 8, 9], [0, 0, 1, 2, 3]] = 1


def exact_regressor(mechanism, samples, seed=0, static=False, held=()):
    """Regressor modulo P, shape (samples, dof, n), in the order of the robot's parameters.

    Joints whose indices are in `held` stay at home.
    """
    rng = np.random.default_rng(seed)
    robot = mechanism.robot()
    out = np.zeros((samples, robot.dof, robot.size), dtype=np.int64)
    draw = lambda *shape: rng.integers(0, P, (samples, *shape))  # noqa: E731
    still = 0 if static else 1
    states, axes = [], []
    eye = np.broadcast_to(np.eye(3, dtype=np.int64), (samples, 3, 3))
    none = np.zeros((samples, 3), dtype=np.int64)
    u_all, du_all = draw(robot.dof) * still, draw(robot.dof) * still
    for i in held:
        u_all[:, robot.rows[i]] = du_all[:, robot.rows[i]] = 0
    base = eye, none, none, none, np.broadcast_to(-mod(mechanism.gravity) % P, (samples, 3))

    def move(parent, rotation, position, turn, shift, ang, lin, dang, dlin):
        """World pose and body-frame velocity and acceleration of a child."""
        r0, p0, w0, dw0, a0 = parent
        place = (mod(position) + matvec(np.broadcast_to(mod(rotation), (samples, 3, 3)), shift)) % P
        r = dot(np.broadcast_to(mod(rotation), (samples, 3, 3)), turn)
        e = np.swapaxes(r, -1, -2)
        w_in, dw_in = matvec(e, w0), matvec(e, dw0)
        a_in = (a0 + cross(dw0, place) + cross(w0, cross(w0, place))) % P
        a_in = matvec(e, a_in)
        w = (w_in + ang) % P
        dw = (dw_in + dang + cross(w_in, ang)) % P
        # d/dt of (E v_p + lin) in inertial terms, with lin constant in the moving frame
        a = (a_in + dlin + 2 * cross(w_in, lin) + cross(ang, lin)) % P
        return dot(r0, r), (p0 + matvec(r0, place)) % P, w, dw, a

    for i, joint in enumerate(mechanism.joints):
        parent = base if joint.parent < 0 else states[joint.parent]
        free, rows = FREE[joint.kind], robot.rows[i]
        screws = np.zeros((6, len(free)), dtype=np.int64)
        screws[free, np.arange(len(free))] = 1
        if joint.kind == "H":
            screws[5, 0] = mod(joint.pitch)
        u, du = u_all[:, rows], du_all[:, rows]
        twist = matvec(np.broadcast_to(screws, (samples, *screws.shape)), u)
        rate = matvec(np.broadcast_to(screws, (samples, *screws.shape)), du)
        points = circle(rng, samples)
        gear = joint.rotor.gear if joint.rotor else Fraction(0)
        turn, shift = eye, none.copy()
        angle = points  # point of the angle that the gear's denominator divides
        if i in held:
            angle = np.stack([np.ones(samples, dtype=np.int64), np.zeros(samples, np.int64)])
        elif any(f < 3 for f in free):
            if len(free) == 1 or joint.kind in ("C", "PL"):
                turn = about_z(power(points, gear.denominator))
            else:
                turn = any_rotation(rng, samples)
        for f in free:
            if f >= 3 and i not in held:
                shift[:, f - 3] = draw()
        if joint.kind == "H" and i not in held:
            shift[:, 2] = draw()
        moves = *np.hsplit(twist, 2), *np.hsplit(rate, 2)
        state = move(parent, joint.rotation, joint.position, turn, shift, *moves)
        states.append(state)
        chain = [] if joint.parent < 0 else axes[joint.parent]
        world = []
        for k in range(len(free)):
            s = np.broadcast_to(screws[:, k], (samples, 6))
            world.append(
                (rows.start + k, matvec(state[0], s[:, :3]), matvec(state[0], s[:, 3:]), state[1])
            )
        axes.append([*chain, *world])
        add(out, state, axes[i], robot.inertial_columns[i])
        if joint.rotor is not None:
            g, spin, pose = mod(gear), none.copy(), (joint.rotor.rotation, joint.rotor.position)
            spin[:, 2] = 1
            moves = spin * (g * u % P) % P, none, spin * (g * du % P) % P, none
            r_state = move(parent, *pose, about_z(power(angle, gear.numerator)), none, *moves)
            own = (rows.start, matvec(r_state[0], spin) * g % P, none, r_state[1])
            reduce = SYMMETRIC if joint.rotor.symmetric else None
            add(out, r_state, [*chain, own], robot.rotor_columns(i), reduce)
    for k in range(len(robot.drives)):
        symbols, coupling = mechanism.drives[k]
        c = np.zeros(robot.dof, dtype=np.int64)
        for j, factor in coupling.items():
            c[robot.rows[j].start] = mod(factor)
        columns = robot.drive_columns(k)
        signals = {
            "Ia": matvec(du_all[:, None, :], c[None])[:, 0],
            "fv": matvec(u_all[:, None, :], c[None])[:, 0],
            "fo": np.ones(samples, dtype=np.int64),
        }
        for symbol in symbols:
            out[:, :, columns[symbol]] = signals[symbol][:, None] * c % P
    return out


def add(out, state, axes, columns, reduce=None):
    """Add a body's part to the rows of the joints that carry it."""
    r, p, w, dw, a = state
    moment, force = wrench_columns(w, dw, a)
    moment, force = dot(r, moment), dot(r, force)
    for row, turn, slide, at in axes:
        arm = (p - at) % P
        # turn . (moment + arm x force) + slide . force
        lever = np.stack([cross(arm, force[:, :, k]) for k in range(10)], axis=-1)
        part = dot(turn[:, None, :], (moment + lever) % P) + dot(slide[:, None, :], force)
        part = part[:, 0] % P
        if reduce is not None:
            part = dot(part[:, None, :], np.broadcast_to(reduce, (len(part), 10, 4)))[:, 0]
        out[:, row, columns] = part


def exact_count(mechanism, seed=0, static=False, measured=None, held=()):
    """Number of base parameters, exactly."""
    return len(exact_base(mechanism, seed, static, measured, held)[0])


def measured_rows(mechanism, seed, static, measured, held):
    """Rows of the measured joints at as many samples as the rank may need."""
    robot = mechanism.robot()
    rows = list(range(robot.dof))
    if measured is not None:
        rows = [r for j in measured for r in range(robot.rows[j].start, robot.rows[j].stop)]
    few = len(rows) < robot.dof or held
    samples = -(-(robot.size + 8) // max(len(rows), 1)) + (robot.size if few else 4)
    y = exact_regressor(mechanism, samples, seed, static, held)[:, rows]
    return y.reshape(-1, robot.size)


# -- random mechanisms ---------------------------------------------------------------------------

GEARS = [Fraction(g) for g in ("1", "-1", "2", "-2", "1/2", "5", "-3", "100", "7/2")]


def random_mechanism(rng, largest=12, kinds="RRRRPPPHSCULF", terms=True, rotors=True):
    """A tree of mixed joints, often with parallel, perpendicular or intersecting axes."""
    kinds = {"L": "PL", "T": "T3"} | {k: k for k in kinds if k not in "LT"} | {"all": kinds}
    n = int(rng.integers(1, largest + 1))
    aligned = rng.random() < 0.7
    joints = []
    for i in range(n):
        kind = kinds[kinds["all"][rng.integers(len(kinds["all"]))]]
        parent = int(rng.integers(-1, i)) if rng.random() < 0.3 else i - 1
        rotation = rational_rotation(rng, aligned)
        if rng.random() < 0.3:
            rotation = fractions(np.eye(3, dtype=int).tolist())
        position = [Fraction(int(v), 10) for v in rng.integers(-4, 5, 3)]
        if rng.random() < 0.4:
            position = [v * int(rng.integers(0, 2)) for v in position]
        pitch = Fraction(int(rng.integers(1, 5)), 20) if kind == "H" else Fraction(0)
        rotor = None
        if rotors and kind in "RPH" and rng.random() < 0.3:
            rotor = Rotor(
                GEARS[rng.integers(len(GEARS))],
                rational_rotation(rng, True),
                [Fraction(int(v), 10) for v in rng.integers(-2, 3, 3)],
                bool(rng.random() < 0.6),
            )
        joints.append(Joint(parent, kind, rotation, position, pitch, rotor))
    draw = rng.random()
    gravity = [Fraction(0)] * 3
    if draw > 0.6:
        gravity = [Fraction(0), Fraction(0), Fraction(-981, 100)]
    elif draw > 0.2:
        gravity = [Fraction(int(v)) for v in rng.integers(-9, 10, 3)]
    drives = random_drives(rng, joints) if terms and rng.random() < 0.5 else ()
    return Mechanism(joints, gravity, drives)


def random_drives(rng, joints):
    """Own and shared drives on the joints of one degree of freedom."""
    single = [i for i, j in enumerate(joints) if len(FREE[j.kind]) == 1]
    drives = []
    for i in single:
        if rng.random() < 0.7:
            symbols = tuple(s for s in ("Ia", "fv", "fo") if rng.random() < 0.7)
            if symbols:
                drives.append((symbols, {i: Fraction(1)}))
    for _ in range(int(rng.integers(0, 3))):
        if len(single) >= 2:
            some = rng.choice(single, size=min(len(single), int(rng.integers(2, 4))), replace=False)
            factors = {int(j): Fraction(int(rng.choice([-2, -1, 1, 1, 3]))) for j in some}
            drives.append((("Ia", "fv", "fo"), factors))
    return tuple(drives)


def reframed(robot, rng, scale=1.0):
    """The same mechanism in other body frames and another base frame, lengths times `scale`."""
    from scipy.spatial.transform import Rotation

    poses = {None: (Rotation.from_quat(rng.normal(size=4)).as_matrix(), np.zeros(3))}
    bodies = []
    for body in robot.bodies:
        turn, offset = Rotation.from_quat(rng.normal(size=4)).as_matrix(), rng.normal(size=3)
        poses[body.name] = turn, offset
        # new frame = old frame * (turn, offset); base frame likewise
        up_turn, up_offset = poses[body.parent]
        rotation = up_turn.T @ body.rotation @ turn
        position = up_turn.T @ (body.position + body.rotation @ offset - up_offset)
        motion = np.vstack(
            [
                turn.T @ body.motion[:3],
                turn.T @ (body.motion[3:] + np.cross(body.motion[:3].T, offset).T),
            ]
        )
        motion[3:] *= scale
        rotor = body.rotor
        if rotor is not None:
            rotor = feasid.Rotor(
                rotor.gear,
                up_turn.T @ rotor.rotation,
                scale * up_turn.T @ (rotor.position - up_offset),
                rotor.symmetric,
            )
        bodies.append(
            feasid.Body(body.name, body.parent, rotation, scale * position, motion, rotor=rotor)
        )
    gravity = scale * poses[None][0].T @ robot.gravity
    return feasid.Robot(bodies, gravity, drives=robot.drives)


HARD = json.loads(
    (Path(__file__).parents[1] / "tests" / "data" / "rpna_hard_cases.json").read_text()
)["cases"]


def mechanism_of(case):
    joints = []
    for j in case["joints"]:
        rotor = None
        if "rotor" in j:
            r = j["rotor"]
            rotor = Rotor(Fraction(r["gear"]), fractions(r["R"]), fractions(r["p"]))
        pitch = Fraction(j["pitch"])
        joints.append(
            Joint(j["parent"], j["type"], fractions(j["R"]), fractions(j["p"]), pitch, rotor)
        )
    return Mechanism(joints, fractions(case["gravity"]))


# -- exact reduced row echelon form ---------------------------------------------------------------


def exact_echelon(matrix):
    """Reduced row echelon form modulo P: leading columns, and the rows (rank, n)."""
    m = np.array(matrix, dtype=np.int64) % P
    leading = []
    for column in range(m.shape[1]):
        rank = len(leading)
        hits = np.flatnonzero(m[rank:, column])
        if hits.size == 0:
            continue
        m[[rank, rank + int(hits[0])]] = m[[rank + int(hits[0]), rank]]
        m[rank] = m[rank] * pow(int(m[rank, column]), -1, P) % P
        others = np.flatnonzero(m[:, column])
        others = others[others != rank]
        m[others] = (m[others] - m[others, column, None] * m[rank] % P) % P
        leading.append(column)
        if rank + 1 == len(m):
            break
    return leading, m[: len(leading)]


def exact_base(mechanism, seed=0, static=False, measured=None, held=()):
    """Leading columns and K modulo P, without columns of Coulomb friction."""
    return exact_echelon(measured_rows(mechanism, seed, static, measured, held))


def residue(value, largest=10**5):
    """A double as the residue of a fraction next to it that is no chance, None without one."""
    near = Fraction(float(value)).limit_denominator(largest)
    if abs(float(near) - value) > 1e-13 * max(1.0, abs(value)):
        return None
    return near.numerator % P * pow(near.denominator, -1, P) % P
