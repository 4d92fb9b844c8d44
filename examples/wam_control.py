"""The WAM experiment of Sousa and Cortesao (2014), re-enacted in MuJoCo.

    pip install "feasid[mujoco]"             # "feasid[mujoco,plot]" for the figures
    python examples/wam_control.py [figures_prefix]

Inverse-dynamics control with three models (eq. (76)-(77), Figure 3, gains of Table 4), the motion
of Table 5 and three validation motions, 57 656 samples each, and four estimators against four
motions as in Table 8. Torques are simulated: the plant is a WAM with the feasible parameters that
are closest to the published feasible ones, MuJoCo's dry friction, offsets, a ripple and noise of
torque. Table 8 is printed beside the published one, with a count of the pairs of estimators that
stand in the published order; digits cannot agree.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from extras import need

import feasid
from feasid.datasets import wam

mujoco = need("mujoco", "mujoco")

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KP = np.array([400.0, 204.1, 625.0, 400.0, 10000.0, 10000.0, 20408.2])
KD = np.array([40.0, 28.6, 50.0, 40.0, 200.0, 200.0, 285.7])
RATE, SAMPLES = 1000.0, 57_656
CUTOFF = 2.5
"""10 w_f L / 2 pi, the paper's low-pass on positions [Hz]."""
CONDITIONS = {"identification": 99.0, "A": 94.0, "B": 106.0, "C": 101.0}
"""Published condition numbers of the recorded motions."""
NOISE, RIPPLE = 0.08, 0.1
"""Shares of each joint's torque: white noise, and a wave over 1/100 of a turn."""
STEP = 2 * np.pi / 2**18
EPSILON = 1e-6
POSTURES = 20_000


@dataclass(frozen=True, eq=False)
class Motion:
    """A Fourier series as eq. (78), by its table: a, b of shape (7, 5) and q0 of shape (7,)."""

    a: np.ndarray
    b: np.ndarray
    q0: np.ndarray

    def at(self, t):
        """Position, velocity and acceleration, shape (samples, 7)."""
        w = 0.1 * np.pi * np.arange(1, 6)
        s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        q = s / w @ self.a.T - c / w @ self.b.T + self.q0
        return q, c @ self.a.T + s @ self.b.T, (c * w) @ self.b.T - (s * w) @ self.a.T


def published() -> Motion:
    """Table 5."""
    table = wam.tables()["table5"]
    return Motion(np.array(table["a"]), np.array(table["b"]), np.array(table["q0"]))


def validation(base: feasid.BaseParameters) -> dict[str, Motion]:
    """Motions of the same frequencies whose condition numbers are nearest to the published ones."""
    start, t = published(), np.arange(0.0, 20.0, 0.05)
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        a, b = (x + 0.12 * rng.standard_normal(x.shape) for x in (start.a, start.b))
        motion = Motion(a, b, start.q0 + 0.2 * rng.standard_normal(7))
        Y = feasid.regressor(base.robot, *motion.at(t), columns=base.independent)
        found.append((float(np.linalg.cond(Y.reshape(-1, base.size))), motion))
    out = {}
    for name in "ABC":
        wanted = CONDITIONS[name]
        best = min(range(len(found)), key=lambda k: abs(found[k][0] - wanted))
        out[name] = found.pop(best)[1]
    return out


def plant(base: feasid.BaseParameters) -> tuple[mujoco.MjModel, np.ndarray]:
    """The arm in MuJoCo, and its standard parameters."""
    near = feasid.correct(wam.estimate("feasible_bounded"), base, total_mass=27.0)
    robot = base.robot.with_values(near.delta)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "wam.xml")
        feasid.write(robot, path)
        model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.timestep = 1 / RATE
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    model.jnt_limited[:] = 0
    return model, near.delta


def drive(
    model: mujoco.MjModel,
    base: feasid.BaseParameters,
    delta: np.ndarray,
    beta: np.ndarray,
    motion: Motion,
    samples: int,
    seed: int = 0,
) -> tuple[pd.DataFrame, float]:
    """Log of a motion under inverse-dynamics control with this model, and its tracking error."""
    robot = base.robot
    control = feasid.ComputedTorque(robot.with_values(delta), base=base, effort=[200.0] * 7)
    control.use(without_friction(base, beta))
    offsets = np.array([delta[robot.drive_columns(k)["fo"]] for k in range(7)])
    rng = np.random.default_rng(seed)
    t = np.arange(samples) / RATE
    wanted, rate, _ = motion.at(t)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = wanted[0], rate[0]
    q, tau = np.empty((2, samples, 7))
    size = np.array([9.0, 25.0, 6.0, 9.0, 1.0, 1.2, 0.3])  # typical torques of this motion [N m]
    for k in range(samples):
        q[k] = data.qpos
        alpha = KP * (wanted[k] - q[k]) + KD * (rate[k] - data.qvel)
        tau[k] = control.torque(q[k], data.qvel, alpha)
        lost = offsets + RIPPLE * size * np.sin(100 * q[k]) + NOISE * size * rng.standard_normal(7)
        data.qfrc_applied[:] = tau[k] - lost
        mujoco.mj_step(model, data)
        if not np.isfinite(data.qpos).all() or np.abs(data.qpos - wanted[k]).max() > 10:
            t, q, tau = t[:k], q[:k], tau[:k]  # it runs away
            break
    error = float(np.sqrt(np.mean((q - wanted) ** 2))) if len(q) == samples else np.inf
    columns = {f"q_{j}": np.round(q[:, k] / STEP) * STEP for k, j in enumerate(robot.joints)}
    columns |= {f"tau_{j}": tau[:, k] for k, j in enumerate(robot.joints)}
    return pd.DataFrame({"t": t, **columns}), error


def without_friction(base: feasid.BaseParameters, beta: np.ndarray) -> np.ndarray:
    """The model that the controller uses."""
    names = [base.robot.parameter_names[c][1] for c in base.independent]
    return np.where([n in ("fv", "fc", "fo") for n in names], 0.0, beta)


def cad(base: feasid.BaseParameters) -> np.ndarray:
    """Table 6's datasheet parameters; friction and drive inertia are not in the datasheet."""
    return np.array([row["cad"] or 0.0 for row in wam.tables()["table6"]])


def estimates(base: feasid.BaseParameters, reduced: feasid.Reduced) -> dict[str, np.ndarray]:
    """OLS, its correction, and feasible least squares without and with further bounds."""
    R, rho, _ = reduced.triangle()
    ols = np.linalg.solve(R, rho)
    table = wam.tables()
    bounds = {"com_box": table["table7_com_boxes"], "total_mass": table["total_mass_max"]}

    def fbpe(**limits: object) -> np.ndarray:
        feasible = feasid.feasible_set(base.robot, "semi", **limits)
        return feasid.feasible_least_squares(
            R, rho, base, feasible, margin=EPSILON, friction_ridge=0.0
        ).beta

    return {
        "OLS": ols,
        "BPFC": feasid.correct(ols, base, consistency="semi", margin=EPSILON).beta,
        "FBPE-OLS": fbpe(),
        "FBPE-OLS extra": fbpe(**bounds),
    }


def smallest_eigenvalues(
    base: feasid.BaseParameters, delta: np.ndarray, beta: np.ndarray
) -> np.ndarray:
    """Of the mass matrix [kg m^2] at random postures."""
    control = feasid.ComputedTorque(base.robot.with_values(delta), base=base)
    control.use(beta)
    rng = np.random.default_rng(0)
    postures = rng.uniform(-np.pi, np.pi, (POSTURES, 7))
    return np.array([np.linalg.eigvalsh(control.mass_matrix(q))[0] for q in postures])


def reduced_log(log: pd.DataFrame, base: feasid.BaseParameters) -> feasid.Reduced:
    """The paper's processing: positions filtered, torques not."""
    return feasid.reduce(log, base.robot, filtering="signals", cutoff=CUTOFF, filter_torque=False)


def experiment(samples: int = SAMPLES) -> dict[str, object]:
    """Everything; prints as it goes."""
    base = feasid.base_parameters(wam.robot())
    model, delta = plant(base)
    motions = {"identification": published(), **validation(base)}
    logs, reduced = {}, {}
    for k, (name, motion) in enumerate(motions.items()):
        logs[name], error = drive(model, base, delta, cad(base), motion, samples, k)
        reduced[name] = reduced_log(logs[name], base)
        condition = np.linalg.cond(reduced[name].triangle()[0])
        print(f"{name:15} condition {condition:6.1f} (published {CONDITIONS[name]:.0f}), "
              f"tracking with CAD {1e3 * error:6.2f} mrad")  # fmt: skip
    found = estimates(base, reduced["identification"])
    table = pd.DataFrame(
        {
            label: [
                100 * np.linalg.norm(r.residuals(beta)) / np.linalg.norm(r.torque_norms)
                for r in reduced.values()
            ]
            for label, beta in found.items()
        },
        index=[*reduced],
    )
    orders = print_table_8(table)
    models = {"CAD": cad(base), "OLS": found["OLS"], "feasible": found["FBPE-OLS extra"]}
    models["OLS of the paper"] = wam.estimate("ols")
    tracking, share, runs, least = {}, {}, {}, {}
    for label, beta in models.items():
        runs[label], error = drive(model, base, delta, beta, motions["A"], min(samples, 20_000))
        least[label] = smallest_eigenvalues(base, delta, beta)
        tracking[label], share[label] = 1e3 * error, float(np.mean(least[label] > 0))
        print(
            f"{label:17} tracking on A {tracking[label]:8.2f} mrad, "
            f"mass matrix positive definite at {100 * share[label]:.2f} % of random postures"
        )
    return {"base": base, "motions": motions, "logs": logs, "estimates": found, "errors": table,
            "orders": orders, "tracking": tracking, "share": share, "runs": runs,
            "smallest eigenvalues": least}  # fmt: skip


def print_table_8(table: pd.DataFrame) -> dict[str, tuple[int, int]]:
    """Errors beside the published ones; per motion, pairs of estimators in the published order."""
    published = wam.tables()["table8_relative_error_percent"]
    rows = {"identification": published["identification"]}
    rows |= {name: published[f"validation {name}"] for name in "ABC"}
    print("\nTable 8: relative torque errors in percent, simulated | published (measured)\n")
    print(f"{'':16}" + "".join(f"{name:>16}" for name in table) + f"{'pairs in order':>17}")
    orders = {}
    for name, theirs in rows.items():
        ours = table.loc[name].to_numpy()
        pairs = list(combinations(range(len(theirs)), 2))
        alike = sum((ours[a] < ours[b]) == (theirs[a] < theirs[b]) for a, b in pairs)
        orders[name] = alike, len(pairs)
        cells = "".join(f"{a:8.2f} |{b:6.2f}" for a, b in zip(ours, theirs, strict=True))
        print(f"{name:16}{cells}{alike:10} of {len(pairs)}")
    return orders


def plot(done: dict[str, object], prefix: str) -> None:
    """Figures 4 to 6, and the tracking errors of the models."""
    need("matplotlib", "plot").use("Agg")
    import matplotlib.pyplot as plt

    t = np.arange(0.0, 20.0, 0.02)
    for number, name in ((4, "identification"), (5, "A")):
        figure, axis = plt.subplots(figsize=(6, 3.2))
        axis.plot(t, done["motions"][name].at(t)[0], lw=1)
        axis.set(xlabel="time [s]", ylabel="joint position [rad]")
        axis.legend([f"joint {k + 1}" for k in range(7)], fontsize=7, ncols=2)
        figure.tight_layout()
        figure.savefig(f"{prefix}_figure_{number}.png", dpi=80)
    base, log = done["base"], done["logs"]["A"].iloc[:20_000]
    q, dq, ddq = done["motions"]["A"].at(log["t"].to_numpy())
    Y = feasid.regressor(base.robot, q, dq, ddq, columns=base.independent)
    tau = Y @ done["estimates"]["FBPE-OLS extra"]
    figure, axes = plt.subplots(7, 1, figsize=(6, 9), sharex=True)
    for k, (axis, joint) in enumerate(zip(axes, base.robot.joints, strict=True)):
        axis.plot(log["t"], log[f"tau_{joint}"], lw=0.5, color="0.6", label="commanded, simulated")
        axis.plot(log["t"], tau[:, k], lw=1, label="predicted")
        axis.set_ylabel(f"joint {k + 1}")
    axes[0].legend(fontsize=7, loc="upper right", ncols=2)
    axes[-1].set_xlabel("time [s]; torques in N m")
    figure.tight_layout()
    figure.savefig(f"{prefix}_figure_6.png", dpi=80)
    plot_tracking(done).savefig(f"{prefix}_tracking.png", dpi=110)


SHOWN = {
    "OLS": ("least squares", "#ee6677"),
    "CAD": ("datasheet", "#bbbbbb"),
    "feasible": ("feasid", "#4477aa"),
}
"""Models in the picture, their labels and Paul Tol's colours, told apart by the colour-blind."""


def plot_tracking(done: dict[str, object]) -> Figure:
    """What the models do in a controller, and the mass matrices that explain it."""
    import matplotlib.pyplot as plt

    motion = done["motions"]["A"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for model, (label, color) in SHOWN.items():
        run = done["runs"][model]
        t = run["t"].to_numpy()
        away = np.abs(run.filter(regex="^q_").to_numpy() - motion.at(t)[0]).max(axis=1)
        left.semilogy(t, np.degrees(np.maximum(away, 1e-5)), color=color, lw=1.2)
        least = np.sort(done["smallest eigenvalues"][model])
        right.plot(np.linspace(0, 100, len(least)), least, color=color, lw=2.5, label=label)
        if not np.isfinite(done["tracking"][model]):
            left.text(t[-1] + 0.4, 400, "lost control", color=color, fontweight="bold")
    left.set(xlabel="time [s]", ylabel="largest joint error [degrees]", ylim=(0.03, 2e3))
    left.set_xlim(0, 20)
    left.set_title("Tracking: least squares diverges", fontsize=10)
    negative = 100 * (1 - done["share"]["OLS"])
    right.axhspan(-1, 0, color="#ee6677", alpha=0.12, lw=0)
    right.axhline(0, color="k", lw=0.8)
    right.set(xlabel="random postures, sorted [%]", ylabel="smallest eigenvalue [kg m²]")
    right.set_yscale("symlog", linthresh=1e-3)
    right.set_title(f"Mass matrix not positive in {negative:.0f} % of postures", fontsize=10)
    handles = right.get_legend_handles_labels()
    figure.legend(*handles, fontsize=10, loc="outside upper center", ncols=3, frameon=False)
    return figure


def main() -> None:
    """Run the experiment, and draw it."""
    done = experiment()
    if len(sys.argv) > 1:
        plot(done, sys.argv[1])


if __name__ == "__main__":
    main()
