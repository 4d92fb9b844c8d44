"""One fit, one model: single cases beside the array, and bounds that cannot hold together.

What was decided once holds for everything that is asked of the fit later. `tests/together` runs
all of them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import cvxpy as cp
import numpy as np

import feasid
from feasid.core.errors import FeasidError

from .acts import contact, verdict
from .arms import described_bodies, load, world
from .judge import (
    TIMES,
    assert_named,
    assert_right_or_in_doubt,
    assert_shown,
    doubts,
    is_right,
    reported_error,
)
from .rows import Row

MASS_ONLY = [np.nan] * 9
"""The first nine of ten parameters, unknown."""

HEAVY = 1.8
"""Times the description's masses where priors have something to get wrong."""

LEAST_SHARE = 0.33
"""Of the description's mass, that every plausible body has."""


@cache
def fitted(robot="serial", kind="clean"):
    """The default fit, without a diagnosis."""
    arm = world(robot, kind)
    return arm, feasid.fit(arm.log, arm.description, diagnose=False, **arm.options)


def fit_with(arm, **options):
    fit = feasid.fit(arm.log, arm.description, diagnose=False, **arm.options, **options)
    assert_shown(fit)
    return fit


def judged(arm, **options):
    """A fit that is right or in doubt, and whose verdict is about itself."""
    fit = fit_with(arm, **options)
    assert_right_or_in_doubt(arm, fit)
    verdict(arm, fit, None)
    return fit


@cache
def heavy():
    """The serial arm, described too heavy."""
    bodies = {name: HEAVY * ten for name, ten in described_bodies().items()}
    return replace(world("serial"), description=load("serial", bodies))


def light_hand(p):
    """The first moment of the last body is smaller than it truly is."""
    return [cp.norm(cp.hstack([p["l3", s] for s in ("lx", "ly", "lz")])) <= 0.05]


def a_strong_prior(folder):
    judged(heavy(), prior="scaled", prior_weight=1e6)


def a_euclidean_prior(folder):
    """Right, in doubt, or not solved and said so."""
    try:
        judged(heavy(), prior="euclidean", prior_weight=1e6)
    except FeasidError as error:
        assert_named(error, ["prior", "l1", "l2", "l3"])


def a_wrong_constraint(folder):
    judged(world("serial"), constraints=light_hand)


def bounds_of_the_z1(folder):
    """As the README gives bounds that somebody knows."""
    log = feasid.datasets.load("unitree_z1")
    options = {"diagnose": False, "calibration": None, "candidates": ()}
    box = {"link02": ([-0.15, -0.1, -0.1], [0.0, 0.1, 0.1])}
    fit = feasid.fit(log, total_mass=4.0, mass={"link03": (0.3, 0.6)}, com_box=box, **options)
    assert_shown(fit)
    assert fit.bodies["mass"].sum() <= 4.0
    assert 0.3 <= fit.bodies.loc["link03", "mass"] <= 0.6


def of_a_late_log(**options):
    """These fits take out the delay as the default one does."""

    def run(folder):
        arm, default = fitted("serial", "late")
        assert arm.error(fit_with(arm, **options).robot) <= TIMES * reported_error(arm, default)

    return run


def contact_after_a_sign(folder):
    arm = world("serial")
    turned = [log.assign(tau_j2=-log["tau_j2"]) for log in (arm.log, arm.test_log)]
    arm = replace(
        arm, log=turned[0], test_log=turned[1], live=turned[1], options={"units": {"tau_j2": -1}}
    )
    fit = fit_with(arm)
    assert is_right(arm, fit)
    contact(arm, fit, folder)


def saved(folder):
    arm, fit = fitted()
    fit.save(folder / "one.feasid")
    return arm, fit, feasid.load(folder / "one.feasid")


def saved_writing(folder):
    """Clients that change friction's sign at once need the samples, which no file keeps."""
    _, fit, back = saved(folder)
    one, other = fit.write(folder / "a.urdf").errors, back.write(folder / "b.urdf").errors
    assert [*other.columns] == ["fit", "file"]
    np.testing.assert_allclose(other["fit"], one["fit"], rtol=1e-6)
    assert (folder / "a.urdf").read_bytes() == (folder / "b.urdf").read_bytes()
    assert other.loc["all", "file"] <= 1.1 * one.loc["all", [*one.columns[1:]]].max()


def saved_prior(folder):
    arm, fit, back = saved(folder)
    priors = [feasid.GaussianPrior.of(f) for f in (fit, back)]
    one, other = (fit_with(arm, prior=p) for p in priors)
    np.testing.assert_allclose(other.beta, one.beta, rtol=1e-9, atol=1e-12)


def plausible_bounds(folder):
    """The other bodies keep a plausible mass, or a note says which bounds were given up."""
    arm = world("serial")
    fit = fit_with(arm, total_mass=4.3)
    least = LEAST_SHARE * arm.description.values[arm.description.inertial_columns[:, 9]]
    light = fit.bodies["mass"].to_numpy() < least
    codes = {note.code for note in fit.notes}
    assert not light.any() or "mass-released" in codes or doubts(fit), fit.bodies["mass"]


def ends(wanted, robot, log, act, *labels):
    """A row like those of the array, of which fewer ends are allowed."""

    def run(folder):
        assert Row(("diagnose:no", *labels), robot, log, act).run(folder) in wanted

    return run


RIGHT, NOT_REFUSED = ("right",), ("right", "in doubt")

CASES = {
    "commands of a serial arm": ends(RIGHT, "serial", "commands", "verdict"),
    "commands of an arm with rotors": ends(RIGHT, "rotors", "commands", "verdict"),
    "a bound far below what the log needs": ends(
        NOT_REFUSED, "serial", "clean", "verdict", "mass:a tenth"
    ),
    "a total mass far below what the log needs": ends(
        NOT_REFUSED, "serial", "clean", "verdict", "total_mass:a third"
    ),
    "a prior that outweighs the log": a_strong_prior,
    "a Euclidean prior that outweighs the log": a_euclidean_prior,
    "a constraint that the truth breaks": a_wrong_constraint,
    "the true mass is known": ends(RIGHT, "serial", "clean", "verdict", "known:true mass"),
    "bounds that exclude the description of the Z1": bounds_of_the_z1,
    "robust weights of a late log": of_a_late_log(robust="huber"),
    "contact of a log with wrong gains": ends(NOT_REFUSED, "serial", "gains", "contact"),
    "contact of a log with a turned sign": contact_after_a_sign,
    "a saved fit writes with the same errors": saved_writing,
    "a saved fit is a prior": saved_prior,
    "plausible bounds beside a bound that excludes the description": plausible_bounds,
    "samples of a mimic joint": ends(NOT_REFUSED, "mimic", "clean", "samples"),
    "contact of a mimic joint": ends(NOT_REFUSED, "mimic", "clean", "contact"),
    "samples of a locked gripper": ends(NOT_REFUSED, "locked", "clean", "samples"),
    "contact of a locked gripper": ends(NOT_REFUSED, "locked", "clean", "contact"),
}

SLOW = {
    *("a Euclidean prior that outweighs the log", "samples of a mimic joint"),
    *("a constraint that the truth breaks", "bounds that exclude the description of the Z1"),
    *("a saved fit is a prior", "samples of a locked gripper"),
}


def heavy_last_body(p):
    return [p["l3", "m"] >= 5.0]


OUTER = ["l2", "l3"], 3.0, None

KNOWN_MASS = {"l3": [*MASS_ONLY, 3.0]}

PAIRS = {
    "known, total": ({"known": KNOWN_MASS, "total_mass": 2.0}, ["total mass", "known", "l3"]),
    "known, mass": ({"known": KNOWN_MASS, "mass": {"l3": (None, 2.0)}}, ["mass of l3", "known"]),
    "masses, sum": (
        {"mass": {"l2": (None, 1.0), "l3": (None, 1.0)}, "mass_sums": {"outer": OUTER}},
        ["mass of l2", "mass of l3", "outer"],
    ),
    "sums": (
        {"mass_sums": {"outer": OUTER, "every": (["l1", "l2", "l3"], None, 2.0)}},
        ["outer", "every"],
    ),
    "box, ellipsoid": (
        {
            "com_box": {"l3": ([0, 0, 0], [0.1, 0.1, 0.1])},
            "com_ellipsoid": {"l3": ([0, 0, 0.5], [0.1, 0.1, 0.1])},
        },
        ["com of l3 z upper", "com of l3 in ellipsoid"],
    ),
    "box, body in ellipsoid": (
        {
            "com_box": {"l3": ([0, 0, 0.3], [0.1, 0.1, 0.4])},
            "inertia_ellipsoid": {"l3": ([0, 0, 0], [0.1, 0.1, 0.1])},
        },
        ["com of l3 z lower", "mass of l3 in ellipsoid"],
    ),
    "hull, cylinder": (
        {
            "com_hull": {"l3": [[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]]},
            "com_cylinder": {"l3": ([0, 0, 0.3], [0, 0, 0.4], 0.05)},
        },
        ["com of l3 above start of cylinder", "com of l3 in hull"],
    ),
    "linear, mass": (
        {"linear": {"heavy": ({("l3", "m"): 1.0}, 4.0, None)}, "mass": {"l3": (None, 3.5)}},
        ["heavy", "mass of l3"],
    ),
    "equal, masses": (
        {"equal": [("l2", "l3")], "mass": {"l2": (None, 2.0), "l3": (3.0, None)}},
        ["equal", "mass of l2", "mass of l3"],
    ),
    "equal, known": (
        {"equal": [("l2", "l3")], "known": {"l2": [*MASS_ONLY, 2.0], **KNOWN_MASS}},
        ["l2 and l3 equal", "known"],
    ),
    "mirrored, masses": (
        {"mirrored": [("l2", "l3", "y")], "mass": {"l2": (None, 2.0), "l3": (3.0, None)}},
        ["mirrored", "mass of l2", "mass of l3"],
    ),
    "constraints, mass": (
        {"constraints": heavy_last_body, "mass": {"l3": (None, 3.5)}},
        ["constraint", "mass of l3"],
    ),
}
"""Bounds that cannot hold together, and what a refusal has to name: all of them."""

QUICK_PAIRS = {"known, mass", "hull, cylinder"}
