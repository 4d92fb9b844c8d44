"""Design of exciting motions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt

from feasid.applications.excitation import constraint_check, parallel_search
from feasid.applications.excitation import design as designs
from feasid.applications.excitation.certificate import certify_motion, value_per_joint
from feasid.applications.excitation.problem import Problem
from feasid.applications.excitation.search import Progress, SearchClock
from feasid.applications.excitation.trajectory import Trajectory, sample_times
from feasid.core.arguments import (
    Count,
    Natural,
    NonNegative,
    Positive,
    Rate,
    checked,
    count,
    number,
)
from feasid.core.arrays import Array
from feasid.core.errors import ExcitationError
from feasid.core.progress import step
from feasid.core.threads import one_thread
from feasid.robot.description import Robot


@checked
@one_thread()
def excite(
    robot: Robot,
    duration: Annotated[float, number(0.1, 86400.0)] = 10.0,
    *,
    harmonics: Annotated[int, count(1, designs.MOST_HARMONICS)] = 5,
    objective: str | Mapping[str, float] = "logdet",
    family: Literal["fourier", "spline"] = "fourier",
    position: Any = None,
    velocity: Any = None,
    acceleration: Any = None,
    jerk: Any = None,
    torque: Any = None,
    workspace: Mapping[str, Any] | None = None,
    floor: float | None = None,
    capsules: Mapping[str, Sequence[Any]] | None = None,
    meshes: str | Path | None = None,
    collision: bool = True,
    clearance: NonNegative = 0.01,
    ignore: Sequence[tuple[str, str]] = (),
    given: designs.Given = None,
    prior: npt.ArrayLike | None = None,
    noise: Any = 1.0,
    task: Any = None,
    rest: bool = True,
    slow: Annotated[float, number(0.0, 0.999)] = 0.0,
    friction: Sequence[str] | None = None,
    drive_inertia: bool | None = None,
    rate: Rate = 100.0,
    seed: Count = 0,
    time_limit: Positive = 60.0,
    rounds: Count | None = None,
    starts: Natural | None = None,
    workers: Natural = 1,
    optimiser: Callable[[constraint_check.ExcitationProblem], npt.ArrayLike] | None = None,
) -> Trajectory:
    """Design a periodic motion that determines a robot's base parameters as well as possible.

    Parameters
    ----------
    robot : Robot
        All joints must have one degree of freedom. If the robot declares no joint terms, viscous,
        Coulomb and offset friction are added, as in `feasid.fit`.
    duration : float
        Period [s], from 0.1 to 86 400.
    harmonics : int
        Number L of harmonics of the Fourier series; splines get as many coefficients, 2 L + 1 per
        joint.
    objective : {"logdet", "condition", "prediction", "gains"} or mapping
        "logdet", "condition", "prediction" or "gains", or weights of several. "logdet" maximises
        log det of the information matrix (D-optimal). "condition" minimises the condition number of
        the base regressor, as Swevers et al. (1997); in SI units it depends mostly on the units,
        and motions that minimise it spend much time near standstill. "prediction" minimises the
        torque variance on the `task` (I-optimal). "gains" minimises the variance of ratios of servo
        gains identified from positions and commands, see `feasid.fit` with ``command=``: `noise` is
        then gain times encoder step over sqrt(12). A mapping weighs several:
        ``{"condition": 1, "logdet": 0.5}`` minimises log condition - 0.5 log det / parameters.
    family : {"fourier", "spline"}
        A Fourier series, or periodic B-splines of degree five.
    position, velocity, acceleration, jerk, torque : optional
        Limits in SI: a number b for -b to b, (low, high), or a mapping from joint to either.
        Numbers may be arrays (dof,). Default the description's. Torques are computed from the
        description's parameters, and their limits hold with all of its friction and without any.
    workspace : mapping of link to (low, high), optional
        Boxes in which the origins of links' frames stay, corners (3,) in the base frame [m].
    floor : float, optional
        Height [m] in the base frame above which all capsules stay.
    capsules : mapping of link to sequence of (start, end, radius), optional
        Shapes of links, in their frames [m]. Default around the description's primitives.
    meshes : path, optional
        Folder below which the description's collision meshes (STL, OBJ) lie. Each counts by its
        convex hull. ``package://arm/a.stl`` is ``arm/a.stl`` there, or ``a.stl``. Without it no
        mesh is opened, and a note names the links.
    collision : bool
        Whether links must not collide. Links of bodies that a joint connects may touch.
    clearance : float
        Distance [m] between links.
    ignore : sequence of (link, link)
        Pairs of links that may touch.
    given : Reduced, Trajectory or sequence of these, optional
        Logs and motions that exist already: the new motion adds the information that they lack.
    prior : array_like, shape (nb,), optional
        Standard deviations of the base parameters before the motion: information, and the units
        in which "condition" counts.
    noise : float, array_like or mapping
        Standard deviation of the torque noise per joint [N m or N].
    task : Trajectory, (q, dq, ddq) or sequence of these, optional
        Motions whose torque is to be predicted; default random ones within the limits.
    rest : bool
        Start and end at rest, with zero acceleration, as robot controllers require; False lets one
        period follow the other without a stop.
    slow : float
        Share, below 1, by which the middle of the period is slowed down, to show friction at low
        speed.
    friction, drive_inertia : optional
        Joint terms that count, as in `feasid.fit`.
    rate : float
        Samples per second that will be logged [Hz].
    seed : int
        Seed of the search.
    time_limit : float
        Time of searching [s].
    rounds : int, optional
        Number of perturbations and further starts after the first ones, by default as many as time
        allows. Set it for results that do not depend on the speed of the machine.
    starts : int, optional
        Random starts before the perturbations, by default as many as a quarter of the time allows,
        with `rounds` six.
    workers : int
        Number of processes that search at once, including this one. One per core finds better
        motions in the same time. With `rounds` the motion does not depend on it.
    optimiser : callable, optional
        Takes an `ExcitationProblem` (objective, gradient, barrier, margins) and returns its
        unknowns: SciPy's, CasADi's or any other in place of the search. What it returns is scaled
        into the limits and certified like a motion of the search.

    Returns
    -------
    Trajectory

    Raises
    ------
    InputError
        Limits are missing or contradictory, a frame does not exist, or no posture is inside the
        workspace. This is checked before the search.
    ExcitationError
        No motion that satisfies all constraints was found in time; the message names the violated
        ones.
    KeyboardInterrupt
        Ctrl-C before the first motion was found. Afterwards Ctrl-C returns the best motion so far,
        with a note.
    """
    robot.require_motors()
    weights = {objective: 1.0} if isinstance(objective, str) else dict(objective)
    on_task = designs.needs_task(weights, task)
    basis = designs.make_basis(family, duration, harmonics, slow)
    setting = designs.design_setting(
        robot, friction, drive_inertia,
        {"position": position, "velocity": velocity, "acceleration": acceleration, "jerk": jerk,
         "torque": torque},
        {"workspace": workspace, "floor": floor, "capsules": capsules, "meshes": meshes,
         "collision": collision, "clearance": clearance, "ignore": ignore},
        seed,
    )  # fmt: skip
    deviation = value_per_joint(noise, setting.robot, "noise")
    information, prior_deviations = designs.equations_from_other_data(
        given, prior, setting.base, deviation
    )
    expected = ratios = None
    if "gains" in weights:
        expected, information, ratios = designs.expected_gains(setting, information)
    problem = designs.make_problem(
        setting, basis, harmonics, rest, deviation, information, prior_deviations, rate, expected
    )
    rng = np.random.default_rng(seed)
    if on_task:
        ratios = designs.task_information(task, problem, setting, rate, rng)
    objectives = designs.ObjectiveFamily(tuple(weights.items()), ratios)
    clock = SearchClock(time_limit)
    if optimiser is None:
        # With a number of rounds, the motion must not depend on the number of workers.
        search = parallel_search.ParallelSearch(
            problem, objectives, seed, time_limit, rounds, starts,
            workers if rounds is None else max(1, min(rounds, parallel_search.FIXED_SEARCHES)),
        )  # fmt: skip
        with step("searching") as advance:
            limited = partial(advance, total=time_limit)
            report = _progress_reporter(limited, objective, problem, rate * duration)
            candidates, loss_notes = parallel_search.run_searches(search, workers, report)
    else:
        # The caller's, on the finer grid of the last stages.
        start = designs.random_motion(problem, rng)
        design = constraint_check.ExcitationProblem(problem.with_finer_grid(), objectives, start)
        unknowns = constraint_check.as_unknowns(optimiser(design), design.size)
        candidates, loss_notes = parallel_search.SearchResult(np.inf, (unknowns,), 1), []
    z, end = _best_feasible_motion(candidates, problem, clock.seconds)
    notes = [*setting.notes, *end, *loss_notes]
    return _make_trajectory(setting, problem, z, rate, deviation, information, task, notes)


def _progress_reporter(
    advance: Callable[..., None],
    objective: str | Mapping[str, float],
    problem: Problem,
    samples: float,
) -> Progress:
    """Report progress in units of the certificate; limits may not be kept yet.

    The search counts information per sample, in its units of parameters and noise.
    """
    size, deviation = len(problem.scale), 1.0 / np.sqrt(samples)
    units = 2.0 * (np.log(problem.scale).sum() + size * np.log(problem.weights).mean())

    def report(seconds: float, value: float) -> None:
        texts = {
            "condition": f"condition number about {np.exp(value):.1f}",
            "logdet": f"log det about {-size * value - units:+.1f}",
            "prediction": f"standard error of torques about {deviation * np.exp(value):.3g}",
            "gains": f"standard error of gain ratios about {deviation * np.exp(value):.3g}",
        }
        text = texts.get(str(objective), f"objective {value:.4f}")
        advance(seconds, text=f"best so far {text}")

    return report


def _best_feasible_motion(
    result: parallel_search.SearchResult, problem: Problem, seconds: float
) -> tuple[Array, list[str]]:
    """The best motion that satisfies all constraints, and how the search ended."""
    if result.interrupted and not result.candidates:
        raise KeyboardInterrupt
    t = constraint_check.check_times(problem)
    for z in result.candidates:
        motion = constraint_check.shrink_into_limits(problem, z, t)
        if motion is not None:
            how = "interrupted" if result.interrupted else "searched"
            return motion, [f"{how} for {seconds:.0f} s, {result.descents} descents"]
    violations: list[str] = []
    for z in result.candidates:
        coefficients = problem.coordinates.coefficients(z)
        margins = constraint_check.smallest_margins_of_design(problem, coefficients, t)
        violations += [m.name for m in sorted(margins, key=lambda m: m.slack) if m.slack < 0]
    why = "; ".join(dict.fromkeys(violations[:3])) or "there was no time for a start"
    raise ExcitationError(
        f"no motion that keeps all limits was found in {seconds:.0f} s; in the "
        f"way: {why}; allow more time or loosen it",
        broken=violations,
    )


def _make_trajectory(
    setting: designs.DesignSetting,
    problem: Problem,
    z: Array,
    rate: float,
    noise: Array,
    known: Array,
    task: Any,
    notes: list[str],
) -> Trajectory:
    coefficients = problem.coordinates.coefficients(z)
    motion = designs.motion_at(problem, z, sample_times(problem.basis.period, rate))
    reference: Sequence[Array] = motion
    if task is not None:
        parts = zip(*designs.task_motions(task), strict=True)
        reference = [np.concatenate(arrays) for arrays in parts]
    certificate = certify_motion(
        setting.robot,
        setting.columns,
        tuple(setting.base.expressions),
        motion,
        reference,
        noise=noise,
        rate=rate,
        known=known,
        margins=constraint_check.smallest_margins_of_design(
            problem, coefficients, constraint_check.check_times(problem)
        ),
        expected=problem.expected,
    )
    return Trajectory(
        setting.robot,
        problem.basis,
        coefficients,
        rate,
        setting.bounds,
        certificate,
        tuple(notes),
        setting.constraints,
    )
