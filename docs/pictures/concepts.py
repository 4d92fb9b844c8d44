"""Figures of the concept pages; every curve is computed by the package on a simulated robot."""

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from scipy.signal import butter, filtfilt

import feasid
from feasid.datasets import arm

HERE = Path(__file__).parent
BLUE, RED, GREEN, GREY, YELLOW = "#4477aa", "#ee6677", "#228833", "#999999", "#ccbb44"
GRAVITY = 9.81


def two_links() -> Figure:
    """Two mass distributions of a two-link pendulum with one and the same torque."""
    robot = feasid.Robot.from_dh([(0, 0.4, 0, 0), (0, 0.35, 0, 0)], gravity=(0, -GRAVITY, 0))
    first = np.zeros(20)
    for k, (mass, centre, inertia) in enumerate(((1.0, -0.2, 0.02), (1.0, -0.175, 0.015))):
        first[10 * k + np.array([9, 6, 0, 3, 5])] = (
            mass, mass * centre, inertia, mass * centre**2 + inertia, mass * centre**2 + inertia,
        )  # fmt: skip
    second = first.copy()
    first[9] += 0.8  # a point mass on the elbow's axis, at the end of the first link ...
    second[10 + np.array([9, 6, 3, 5])] += 0.8 * np.array(
        [1, -0.35, 0.35**2, 0.35**2]
    )  # ... or here
    for values in (first, second):
        assert feasid.check(robot.with_values(values)).feasible
    t = np.linspace(0, 4, 400)
    q = np.stack([np.sin(2 * t), 1.2 * np.sin(3.3 * t)], 1)
    dq, ddq = np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0)
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.3), layout="constrained")
    shades = (BLUE, RED)
    for axis, values, colour, label in zip(axes, (first, second), shades, "AB", strict=False):
        joint, angle = np.zeros(2), np.array([-0.9, -0.4])
        for k, length in enumerate((0.4, 0.35)):
            way = np.array([np.cos(angle[k]), np.sin(angle[k])])
            end = joint + length * way
            axis.plot(*np.transpose([joint, end]), "-", color=GREY, lw=8, alpha=0.35)
            axis.plot(*joint, "o", color="k", ms=5)
            mass = values[10 * k + 9]
            centre = end + values[10 * k + 6] / mass * way
            axis.plot(*centre, "o", color=colour, ms=13 * np.sqrt(mass), alpha=0.8)
            axis.annotate(f"{mass:.2f} kg", centre, (12, 12), textcoords="offset points")
            joint = end
        axis.set(xlim=(-0.1, 0.85), ylim=(-0.7, 0.15), aspect="equal")
        axis.set_title(f"mass distribution {label}", color=colour)
        axis.axis("off")
    for values, style, label in (
        (first, {"lw": 5, "alpha": 0.35}, "A"),
        (second, {"lw": 1.2}, "B"),
    ):
        tau = feasid.inverse_dynamics(robot.with_values(values), q, dq, ddq)
        axes[2].plot(t, tau, color=BLUE if label == "A" else RED, **style)
        axes[2].plot([], [], color=BLUE if label == "A" else RED, label=label, **style)
    axes[2].set(xlabel="time [s]", ylabel="joint torques [N m]", title="the torques are equal")
    axes[2].legend(loc="upper right")
    return figure


def triangle() -> Figure:
    """Principal moments that no body has, and the closest ones that a body has."""
    mass, moments = 2.0, np.array([0.02, 0.03, 0.12])
    robot = feasid.Robot([feasid.Body("link", None)])
    values = np.zeros(10)
    values[[0, 3, 5, 9]] = (*moments, mass)
    closest = feasid.correct(robot.with_values(values)).delta
    matrix = closest[[0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(3, 3)
    near = np.sort(np.linalg.eigvalsh(matrix))
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.4), layout="constrained", sharey=True)
    for axis, m, colour, title in (
        (axes[0], moments, RED, "impossible: the largest exceeds the sum of the others"),
        (axes[1], near, GREEN, "the closest body: equality, up to a margin"),
    ):
        axis.bar([0], m[0], color=BLUE, alpha=0.6)
        axis.bar([0], m[1], bottom=m[0], color=BLUE, alpha=0.9)
        axis.bar([1], m[2], color=colour)
        axis.axhline(m[0] + m[1], color="k", lw=0.8, ls="--")
        axis.set_xticks([0, 1], ["$I_1 + I_2$", "$I_3$"])
        axis.set_title(title, fontsize=10)
        square = 6 * (m[0] + m[1] - m[2]) / mass
        said = f"side$^2$ of the box of equal inertia\nalong axis 3: {square:.4f} m$^2$"
        axis.text(0.03, 0.97, said, va="top", fontsize=9, transform=axis.transAxes)
        axis.set_ylim(0, 0.15)
    axes[0].set_ylabel("principal moments [kg m²]")
    return figure


def pseudo_inertia() -> Figure:
    """A cloud of point masses, and the four by four matrix of its moments."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(40, 3)) * (0.12, 0.05, 0.04) + (0.15, 0.05, 0.0)
    masses = rng.uniform(0.01, 0.05, 40)
    lifted = np.c_[points, np.ones(40)]
    matrix = np.einsum("k,ki,kj->ij", masses, lifted, lifted)
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(8.6, 3.6), layout="constrained", width_ratios=(1.2, 1)
    )
    left.scatter(*points.T[:2], s=4000 * masses, color=BLUE, alpha=0.55)
    left.plot(*(matrix[3, :2] / matrix[3, 3]), "x", color=RED, ms=11, mew=2.5)
    left.annotate("centre of mass", matrix[3, :2] / matrix[3, 3], (0.22, 0.22), color=RED,
                  arrowprops={"arrowstyle": "-", "color": RED})  # fmt: skip
    left.set(xlabel="x [m]", ylabel="y [m]", aspect="equal", ylim=(-0.1, 0.28))
    left.set_title("point masses $m_k$ at $x_k$")
    colours = {"sigma": BLUE, "h": YELLOW, "m": RED}
    for i in range(4):
        for j in range(4):
            kind = "m" if i == j == 3 else "h" if 3 in (i, j) else "sigma"
            box = Rectangle((j, 3 - i), 1, 1, color=colours[kind], alpha=0.3, ec="w")
            right.add_patch(box)
            right.text(j + 0.5, 3.5 - i, f"{matrix[i, j]:.3f}", ha="center", va="center")
    right.text(1.5, 4.1, "second moments $\\Sigma$", ha="center", color=BLUE)
    right.text(4.05, 2.5, "first\nmoments\n$h = m c$", va="center", color="#887711")
    right.text(4.05, 0.5, "mass $m$", va="center", color=RED)
    right.set(xlim=(0, 5.2), ylim=(-0.1, 4.5), aspect="equal")
    right.set_title("pseudo-inertia $P$", pad=12)
    right.axis("off")
    return figure


def feasible_set() -> Figure:
    """Cost and feasible set of a pendulum's two parameters."""
    mass, rng = 1.0, np.random.default_rng(25)
    true = np.array([0.30, 0.30**2 / mass + 0.008])  # first moment [kg m], inertia [kg m²]
    t = np.arange(0, 2, 0.01)
    q = 0.25 * np.sin(3.0 * t) + 0.05 * np.sin(5.0 * t)
    ddq = -0.25 * 9 * np.sin(3.0 * t) - 0.05 * 25 * np.sin(5.0 * t)
    rows = np.stack([GRAVITY * np.sin(q), ddq], 1)
    noise = 0.25
    tau = rows @ true + noise * rng.normal(size=len(t))
    least = np.linalg.lstsq(rows, tau)[0]
    h, inertia = np.meshgrid(np.linspace(0.2, 0.42, 700), np.linspace(0.0, 0.2, 700))
    gram, right = rows.T @ rows / noise**2, rows.T @ tau / noise**2
    cost = 0.5 * (gram[0, 0] * h**2 + 2 * gram[0, 1] * h * inertia + gram[1, 1] * inertia**2)
    cost -= right[0] * h + right[1] * inertia
    slack = inertia * mass - h**2
    possible = slack > 0
    best = np.unravel_index(np.argmin(np.where(possible, cost, np.inf)), cost.shape)
    # Entropic divergence of [[I, h], [h, m]] from a description, as feasid's prior of a body.
    given = np.array([[0.15, 0.26], [0.26, mass]])
    inverse = np.linalg.inv(given)
    trace = inverse[0, 0] * inertia + 2 * inverse[0, 1] * h + inverse[1, 1] * mass
    prior = trace - np.log(np.where(possible, slack, 1e-12)) + np.log(np.linalg.det(given)) - 2
    pulled = np.unravel_index(np.argmin(np.where(possible, cost + prior, np.inf)), cost.shape)
    figure, axis = plt.subplots(figsize=(7.2, 4.6), layout="constrained")
    axis.contourf(h, inertia, possible, [0.5, 1.5], colors=[GREEN], alpha=0.13)
    edge = np.linspace(0.2, 0.42, 100)
    axis.plot(edge, edge**2 / mass, color=GREEN, lw=2)
    levels = cost[np.unravel_index(np.argmin(cost), cost.shape)] + np.array([1, 4, 10, 20, 40])
    axis.contour(h, inertia, cost, levels, colors=GREY, linewidths=1)
    for place, colour, mark, said, shift in (
        (least, RED, "X", "least squares:\nno body has these values", (24, -44)),
        ((h[best], inertia[best]), GREEN, "o", "best feasible model:\non the boundary", (30, -26)),
        ((h[pulled], inertia[pulled]), BLUE, "D", "with the prior:\ninside", (-90, 26)),
        ((given[0, 1], given[0, 0]), "k", "s", "description (URDF)", (10, 4)),
        (true, YELLOW, "*", "ground truth", (40, 24)),
    ):  # fmt: skip
        axis.plot(*place, mark, color=colour, ms=13 if mark == "*" else 9, mec="k", mew=0.7)
        axis.annotate(said, place, shift, color=colour if mark != "*" else "#887711",
                      textcoords="offset points", fontsize=9.5,
                      arrowprops={"arrowstyle": "-", "color": GREY, "lw": 0.7})  # fmt: skip
    axis.text(0.207, 0.187, "physically consistent: $I\\,m \\geq h^2$", color=GREEN, fontsize=10)
    axis.text(0.33, 0.03, "grey: equal error on the log", color="#777777", fontsize=9.5)
    axis.set(xlabel="first moment h [kg m]", ylabel="inertia I about the joint [kg m²]")
    axis.set(xlim=(0.2, 0.42), ylim=(0.0, 0.2))
    return figure


def prior_weight() -> Figure:
    """Errors on the fitted log and on another motion by the prior's weight."""
    log = feasid.datasets.load("arm")
    robot = log.attrs["robot"]
    short = log[log["t"] < 1.0]
    other = arm.log(arm.truth(robot), 2)
    values = robot.values.copy()
    for columns, factor in zip(robot.inertial_columns, (1.7, 0.6, 1.6), strict=True):
        values[columns] *= factor
    robot = robot.with_values(values)
    weights = np.logspace(-4, 4, 9)
    errors = []
    for weight in weights:
        fit = feasid.fit(short, robot, prior_weight=weight, candidates=(), diagnose=False)
        errors.append((fit.relative_error["all"], fit.errors(other)["all"]))
    figure, axis = plt.subplots(figsize=(6.6, 3.4), layout="constrained")
    for column, label, colour in (
        (0, "on the fitted log (1 s)", GREY),
        (1, "on another motion", BLUE),
    ):
        axis.loglog(weights, 100 * np.array(errors)[:, column], "o-", color=colour, label=label)
    chosen = feasid.fit(short, robot, candidates=(), diagnose=False)
    said = f"the default's: {100 * chosen.errors(other)['all']:.1f} %"
    axis.axhline(100 * chosen.errors(other)["all"], color=GREEN, ls="--", lw=1, label=said)
    axis.set(xlabel="weight of the prior", ylabel="relative torque error [%]")
    axis.set_yticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
    axis.minorticks_off()
    axis.legend(fontsize=9)
    return figure


def both_sides() -> Figure:
    """Bias of Coulomb friction by the cut-off, for both ways of filtering."""
    t = np.arange(0, 20, 0.005)
    dq = 1.2 * np.cos(2 * t) + 0.8 * np.cos(5.1 * t)
    ddq = np.gradient(dq, t)
    rows = np.stack([ddq, dq, np.sign(dq)], 1)
    true = np.array([0.4, 0.3, 1.0])
    tau = rows @ true
    cutoffs = np.geomspace(1, 20, 12)
    bias: dict[str, list[float]] = {"torques only": [], "both sides": []}
    for cutoff in cutoffs:
        b, a = butter(2, cutoff, fs=200.0)

        def low(x: np.ndarray, b: np.ndarray = b, a: np.ndarray = a) -> np.ndarray:
            return filtfilt(b, a, x, axis=0)[200:-200]

        one = np.linalg.lstsq(rows[200:-200], low(tau))[0]
        two = np.linalg.lstsq(low(rows), low(tau))[0]
        bias["torques only"].append(100 * (one[2] / true[2] - 1))
        bias["both sides"].append(100 * (two[2] / true[2] - 1))
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    part = slice(300, 700)
    b, a = butter(2, 3.0, fs=200.0)
    axes[0].plot(t[part], np.sign(dq)[part], color=GREY, label="sign of the velocity")
    axes[0].plot(
        t[part], filtfilt(b, a, np.sign(dq))[part], color=BLUE, label="after a 3 Hz low-pass"
    )
    axes[0].set(
        xlabel="time [s]", title="what a filter does to Coulomb friction", ylim=(-1.2, 1.75)
    )
    axes[0].legend(fontsize=8, loc="upper right", ncols=2)
    for label, colour in (("torques only", RED), ("both sides", BLUE)):
        axes[1].semilogx(cutoffs, bias[label], "o-", color=colour, label=f"{label} filtered")
    axes[1].set(xlabel="cut-off [Hz]", ylabel="error of Coulomb friction [%]")
    axes[1].set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    axes[1].set_title("noise-free torques")
    axes[1].legend(fontsize=9)
    return figure


def excitation() -> Figure:
    """Standard errors of all parameters after a slow, a random and a designed motion."""
    robot = arm.truth(arm.described())
    base = feasid.base_parameters(robot)
    designed = feasid.excite(robot, 8.0, acceleration=12.0, starts=1, rounds=1)
    t = np.arange(0, 8, 1 / arm.RATE)
    rates = np.array([[0.6, 0.8, 1.0], [1.4, 1.7, 1.1]])
    slow = sum(0.3 * np.sin(np.outer(t, r)) for r in rates)
    random = arm.log(robot, 7)
    columns = {s: [f"{s}_{j}" for j in robot.joints] for s in ("q", "dq")}
    motions = {
        "slow sines": (slow, np.gradient(slow, t, axis=0), RED),
        "random sines": (*(random[c].to_numpy()[: len(t)] for c in columns.values()), GREY),
        "designed (feasid.excite)": (designed.q, designed.dq, BLUE),
    }
    figure, axis = plt.subplots(figsize=(7.6, 3.6), layout="constrained")
    errors = {}
    for label, (q, dq, _) in motions.items():
        ddq = designed.ddq if q is designed.q else np.gradient(dq, 1 / arm.RATE, axis=0)
        rows = np.concatenate(feasid.regressor(robot, q, dq, ddq)[:, :, base.independent])
        gram = rows.T @ rows * len(t) / len(q)
        errors[label] = 0.05 * np.sqrt(np.diag(np.linalg.inv(gram)))
    order = np.argsort(errors["slow sines"])
    for label, (_, _, colour) in motions.items():
        axis.semilogy(errors[label][order], "o-", color=colour, label=label, ms=4, lw=1)
    names = [".".join(base.robot.parameter_names[c]) for c in base.independent[order]]
    axis.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
    axis.set_ylabel("standard error [SI units]")
    axis.set_title("after 8 s with 0.05 N m of noise, one and the same robot", fontsize=10)
    axis.legend(fontsize=9)
    return figure


def uncertainty() -> Figure:
    """The mass of the hand by every measure of uncertainty."""
    log = feasid.datasets.load("arm")
    robot = log.attrs["robot"]
    fit = feasid.fit(log, robot, candidates=(), diagnose=False)
    mass = fit.range("hand.m")
    row = fit.summary().tables["standard parameters"].loc["hand.m"]
    value, low, high = (float(row[name]) for name in ("value", "[2.5 %", "97.5 %]"))
    samples = fit.sample(400, seed=0)
    drawn = np.array([r.bodies[-1].inertial[9] for r in samples])
    true = arm.truth(robot).bodies[-1].inertial[9]
    figure, axis = plt.subplots(figsize=(7.6, 3.0), layout="constrained")
    axis.plot([mass.lower, mass.upper], [2, 2], color=BLUE, lw=7, alpha=0.5, solid_capstyle="butt")
    axis.text(1.42, 2.2, "range: every consistent model that fits", ha="right", color=BLUE)
    axis.errorbar(value, 1, xerr=[[value - low], [high - value]], fmt="o", color=GREEN, capsize=4)
    axis.text(1.42, 1.2, "value and 95 % interval, with the prior", ha="right", color=GREEN)
    axis.plot(
        drawn, np.random.default_rng(0).uniform(-0.15, 0.15, len(drawn)), ".", color=GREY, ms=2
    )
    axis.text(1.42, 0.25, "samples: consistent robots, by their probability", ha="right",
              color="#666666")  # fmt: skip
    axis.axvline(true, color=YELLOW, lw=2, label="ground truth")
    axis.axvline(robot.bodies[-1].inertial[9], color="k", lw=1, ls=":", label="description (URDF)")
    axis.set(yticks=[], xlabel="mass of the hand [kg]", ylim=(-0.4, 2.8))
    axis.legend(fontsize=8, loc="lower right")
    return figure


def friction() -> Figure:
    """The terms of joint friction over the speed, and the springs over the position."""
    v = np.linspace(-1, 1, 2001)
    s = np.tanh(v / 0.005)
    laws: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "viscous": lambda v: 0.8 * v,
        "coulomb": lambda v: 0.6 * s,
        "offset": lambda v: 0.25 + 0 * v,
        "sqrt": lambda v: 0.8 * s * np.sqrt(abs(v)),
        "stribeck": lambda v: s * (0.4 + 0.5 * np.exp(-((v / 0.15) ** 2))),
        "direction": lambda v: 0.5 * v + 0.35 * abs(v),
        "load": lambda v: s,
        "spring": lambda v: 0.4 * v + 0.5 * v**3,
    }
    figure, axes = plt.subplots(2, 4, figsize=(9.4, 4.2), layout="constrained", sharey=True)
    for axis, (name, law) in zip(axes.flat, laws.items(), strict=True):
        if name == "load":
            for load, shade in ((0.25, 0.35), (0.5, 0.65), (0.9, 1.0)):
                axis.plot(v, load * s, color=BLUE, alpha=shade)
            axis.text(0.25, 0.3, "more load", fontsize=8, color=BLUE)
        else:
            axis.plot(v, law(v), color=BLUE)
        axis.axhline(0, color="k", lw=0.5)
        axis.axvline(0, color="k", lw=0.5)
        axis.set_title(name, fontsize=10)
        axis.set(xticks=[], yticks=[], ylim=(-1.1, 1.1))
        axis.set_xlabel("position" if name == "spring" else "speed", fontsize=9)
    for axis in axes[:, 0]:
        axis.set_ylabel("torque", fontsize=9)
    return figure


def pipeline() -> Figure:
    """From a log and a description to files that are used."""
    figure, axis = plt.subplots(figsize=(10, 2.9), layout="constrained")
    boxes = {
        "log": (0, 1.25, "log\nt, q, τ", GREY), "urdf": (0, 0.25, "URDF, MJCF,\nSDF", GREY),
        "base": (1.65, 0.25, "base\nparameters", BLUE),
        "eq": (1.65, 1.25, "filtered\nequations", BLUE),
        "sdp": (3.3, 0.75, "semidefinite\nprogram", BLUE),
        "check": (4.95, 0.75, "exact\ncheck", GREEN),
        "file": (6.6, 1.5, "URDF, MJCF, SDF", GREY), "code": (6.6, 0.75, "C code, control", GREY),
        "report": (6.6, 0.0, "report, errors", GREY),
    }  # fmt: skip
    for x, y, said, colour in boxes.values():
        axis.add_patch(
            FancyBboxPatch((x, y), 1.2, 0.55, "round,pad=0.05", fc=colour, ec=colour, alpha=0.25)
        )
        axis.text(x + 0.6, y + 0.275, said, ha="center", va="center", fontsize=10)
    ways = "log eq, urdf base, base eq, eq sdp, base sdp, sdp check, check file, check code"
    for a, b in (way.split() for way in f"{ways}, check report".split(", ")):
        (x, y, *_), (u, w, *_) = boxes[a], boxes[b]
        up = x == u
        start = (x + 0.6, y + 0.6) if up else (x + 1.25, y + 0.275)
        end = (u + 0.6, w - 0.05) if up else (u - 0.06, w + 0.275)
        axis.add_patch(
            FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=12, color="#555555")
        )
    axis.set(xlim=(-0.1, 8.0), ylim=(-0.2, 2.2))
    axis.axis("off")
    return figure


FIGURES = {
    "two_links": two_links, "triangle": triangle, "pseudo_inertia": pseudo_inertia,
    "feasible_set": feasible_set, "prior_weight": prior_weight, "both_sides": both_sides,
    "excitation": excitation, "uncertainty": uncertainty, "friction": friction,
    "pipeline": pipeline,
}  # fmt: skip


def draw(name: str) -> None:
    """Draw one figure into this folder."""
    plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        FIGURES[name]().savefig(HERE / f"{name}.png", dpi=110)
    plt.close("all")
