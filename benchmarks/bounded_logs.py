"""Bounds that exclude the description, on every packaged log: kept by the fit and all it shows.

    python -m benchmarks.bounded_logs [LOG ...]

Prints the mass of the last body with its range, by log and kind of bound, and ends where a fit, a
range or a drawn model breaks the bound.
"""

import sys
from functools import cache

import cvxpy as cp
import numpy as np

import feasid
from feasid.core.errors import InputError
from feasid.robot.inertia import pseudo_inertia

LOGS = ("unitree_z1", "kinova_gen3", "staubli_tx40", "kuka_lwr4", "double_pendulum", "wam7")

PLAIN_MASS = 2.0
"""Of bodies that the description leaves open, those of the WAM [kg]."""

ASIDE = 0.03
"""From the described centre of mass to the middle of where the bounds want it [m]."""

ROUNDING = 1e-9
"""Of these tests' own arithmetic; the package verifies its answers exactly."""

REFUSALS = ("chains do not mix", "constraints that are not affine")
"""Reasons why a posterior cannot be drawn from, as the refusal states them."""

QUICK = {"diagnose": False, "calibration": None, "candidates": ()}


@cache
def reduced(name):
    """A log, its robot, and the data that a fit needs of the log."""
    log = feasid.datasets.load(name)
    robot, options = log.attrs["robot"], log.attrs.get("options", {})
    if name == "wam7":
        log = log.iloc[::20]  # 50 samples per second of motions below a quarter of a hertz
    return log, robot, feasid.reduce(log, robot, candidates=(), **options)


def described(robot):
    """Masses [kg] and centres [m] by body, from the description or a plain assumption."""
    out = {}
    for body in robot.bodies:
        ten = np.full(10, np.nan) if body.inertial is None else np.asarray(body.inertial, float)
        mass = ten[9] if ten[9] > 0 else PLAIN_MASS
        out[body.name] = mass, ten[6:9] / mass if np.isfinite(ten[6:9]).all() else np.zeros(3)
    return out


def bounds(robot):
    """Options by name, and what they ask of masses, first moments and ten parameters by body."""
    bodies = described(robot)
    first, last = robot.bodies[0].name, robot.bodies[-1].name
    middle = robot.bodies[len(robot.bodies) // 2].name
    total = sum(mass for mass, _ in bodies.values())
    mass, centre = bodies[middle]
    aim = centre + ASIDE
    low, high = aim - ASIDE / 2, aim + ASIDE / 2
    corners = [aim + 0.6 * ASIDE * (np.eye(4, 3)[k] - np.full(3, 0.25)) for k in range(4)]

    def com(ten):
        return ten[middle][6:9] / ten[middle][9]

    def in_box(ten):
        return (low - ROUNDING <= com(ten)).all() and (com(ten) <= high + ROUNDING).all()

    def in_hull(ten):
        matrix = np.vstack([np.array(corners).T, np.ones(4)])
        return np.linalg.solve(matrix, np.append(com(ten), 1.0)).min() > -ROUNDING

    def in_cylinder(ten):
        c = com(ten) - aim
        return abs(c[2]) <= ASIDE + ROUNDING and np.hypot(*c[:2]) <= ASIDE / 2 + ROUNDING

    def mass_in_ellipsoid(ten):
        P = pseudo_inertia(ten[middle])
        shape = np.diag([*(-1.0 / np.square([0.4, 0.4, 0.4])), 1.0])
        shift = np.eye(4)
        shift[:3, 3] = -aim
        return np.trace(shape @ shift @ P @ shift.T) >= -ROUNDING

    end = np.array([0.0, 0.0, ASIDE])
    light = 0.6 * (bodies[first][0] + bodies[last][0])
    tube = (aim - end, aim + end, ASIDE / 2)
    return {
        "total_mass": ({"total_mass": 0.8 * total}, lambda t: mass_of(t) <= 0.8 * total),
        "total_mass below": (
            {"total_mass": (1.3 * total, None)}, lambda t: mass_of(t) >= 1.3 * total
        ),
        "mass": (
            {"mass": {middle: (None, 0.5 * mass)}}, lambda t: 0 < t[middle][9] <= 0.5 * mass
        ),
        "mass below": (
            {"mass": {middle: (1.7 * mass, None)}}, lambda t: t[middle][9] >= 1.7 * mass
        ),
        "mass_sums": (
            {"mass_sums": {"ends": ([first, last], None, light)}},
            lambda t: t[first][9] + t[last][9] <= light,
        ),
        "com_box": ({"com_box": {middle: (low, high)}}, in_box),
        "com_ellipsoid": (
            {"com_ellipsoid": {middle: (aim, np.full(3, ASIDE / 2))}},
            lambda t: np.linalg.norm(com(t) - aim) <= ASIDE / 2 + ROUNDING,
        ),
        "com_cylinder": ({"com_cylinder": {middle: tube}}, in_cylinder),
        "com_hull": ({"com_hull": {middle: corners}}, in_hull),
        "inertia_ellipsoid": (
            {"inertia_ellipsoid": {middle: (aim, np.full(3, 0.4))}}, mass_in_ellipsoid
        ),
        "linear": (
            {"linear": {"balance": ({(first, "m"): 1.0, (last, "m"): -3.0}, 0.0, None)}},
            lambda t: t[first][9] >= 3 * t[last][9] - ROUNDING,
        ),
        "constraints": (
            {"constraints": lambda p: p[middle, "m"] <= 0.6 * mass},
            lambda t: t[middle][9] <= 0.6 * mass,
        ),
        "constraints, not affine": (
            {"constraints": lambda p: cp.norm(p[middle].com_moment) <= 0.01 * p[middle].mass},
            lambda t: np.linalg.norm(t[middle][6:9]) <= 0.01 * t[middle][9] + ROUNDING,
        ),
        "known": (
            {"known": {middle: [np.nan] * 9 + [1.2 * mass]}},
            lambda t: np.isclose(t[middle][9], 1.2 * mass, rtol=ROUNDING, atol=0.0),
        ),
        "equal": (
            {"equal": [(first, last)]},
            lambda t: np.allclose(t[first], t[last], rtol=ROUNDING, atol=ROUNDING),
        ),
    }  # fmt: skip


KINDS = tuple(bounds(feasid.Robot.from_dh([(0, 1, 0, 0)] * 3)))


def mass_of(ten):
    return sum(values[9] for values in ten.values())


def check_bound(name, kind):
    """Assert that a fit within a bound, its range and its drawn models keep it; the range."""
    log, robot, data = reduced(name)
    options, holds = bounds(robot)[kind]
    fit = feasid.fit(data, robot, **QUICK, **options)
    columns = fit.description.inertial_columns
    names = [body.name for body in fit.description.bodies]
    ten = dict(zip(names, fit.delta[columns], strict=True))
    assert holds(ten)
    assert fit.feasible.violations(fit.delta) == ()
    assert feasid.check(fit).feasible is not False
    assert "error" in repr(fit)
    assert str(fit.summary())
    assert np.isfinite(fit.errors(log.iloc[: len(log) // 3])["all"])
    assert fit.quality.level
    span = fit.range(f"{names[-1]}.m")
    assert span.lower <= ten[names[-1]][9] * (1 + ROUNDING)
    for values in drawn(fit):
        assert holds(dict(zip(names, values[columns], strict=True)))
    return span


def drawn(fit):
    """Two models of the posterior; none where the log leaves too much open, which is said."""
    try:
        return fit.sample(2, seed=0).parameters
    except InputError as error:
        if not any(reason in str(error) for reason in REFUSALS):
            raise
        return ()


def main():
    """Print a line for each log and kind of bound."""
    for name in sys.argv[1:] or LOGS:
        for kind in KINDS:
            print(f"{name:16} {kind:24} {check_bound(name, kind)}", flush=True)


if __name__ == "__main__":
    main()
