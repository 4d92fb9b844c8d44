"""Two more case studies of the Valkyrie paper: a double pendulum, and a leg that gets better.

    pip install "feasid[mujoco]"             # "feasid[mujoco,plot]" for the figures
    python examples/case_studies.py [figures_prefix]

The pendulum's plant is MuJoCo, and then the real log of `datasets/double_pendulum`. The
leg (hip in three axes and knee) is MuJoCo; the coefficient of determination and the error of
prediction are shown as data come in.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from extras import need
from pseudo_inverse import PseudoInverseFit, pseudo_inverse

import feasid
from feasid.robot import inertia

mujoco = need("mujoco", "mujoco")

RATE = 500.0
NOISE = 0.03
STEP = 2 * np.pi / 2**18

PENDULUM = """
<mujoco><option timestep="0.002" integrator="implicitfast"/><compiler angle="radian"/>
<default><joint damping="0.02" frictionloss="0.05" armature="0.002"/></default>
<worldbody><body name="upper" pos="0 0 1"><joint name="shoulder" axis="0 1 0"/>
<inertial pos="0 0 -0.15" mass="0.5" diaginertia="0.01 0.01 0.001"/>
<body name="lower" pos="0 0 -0.25"><joint name="elbow" axis="0 1 0"/>
<inertial pos="0.01 0 -0.2" mass="0.6" diaginertia="0.009 0.009 0.001"/>
</body></body></worldbody></mujoco>
"""

LEG = """
<mujoco><option timestep="0.002" integrator="implicitfast"/><compiler angle="radian"/>
<default><joint damping="0.5" frictionloss="0.8" armature="0.05"/></default>
<worldbody><body name="yaw" pos="0 0 1"><joint name="hip_yaw" axis="0 0 1"/>
<inertial pos="0.02 0 0.03" mass="2.2" diaginertia="0.01 0.01 0.008"/>
<body name="roll"><joint name="hip_roll" axis="1 0 0"/>
<inertial pos="0 0.04 -0.05" mass="1.8" diaginertia="0.008 0.008 0.006"/>
<body name="thigh"><joint name="hip_pitch" axis="0 1 0"/>
<inertial pos="0.01 0.02 -0.2" mass="7.5" diaginertia="0.12 0.12 0.03"/>
<body name="shank" pos="0 0 -0.42"><joint name="knee" axis="0 1 0"/>
<inertial pos="0 -0.01 -0.18" mass="4.0" diaginertia="0.06 0.06 0.008"/>
</body></body></body></body></worldbody></mujoco>
"""


@dataclass(frozen=True)
class Drive:
    """How a plant is moved: amplitudes [rad], frequencies [Hz], middle, gains per inertia."""

    amplitude: tuple[float, ...]
    frequency: tuple[float, ...]
    middle: tuple[float, ...]
    stiff: float = (2 * np.pi * 4) ** 2
    damp: float = 2 * 2 * np.pi * 4


def record(text: str, drive: Drive, seconds: float, seed: int = 0) -> pd.DataFrame:
    """A log of sinusoids under PD control with the weight compensated."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    names = [model.joint(k).name for k in range(model.njnt)]
    a, f, middle = (np.array(x) for x in (drive.amplitude, drive.frequency, drive.middle))
    rng = np.random.default_rng(seed)
    data.qpos[:] = middle
    rows = []
    for k in range(int(seconds * RATE)):
        t = k / RATE
        ramp = min(1.0, t / 3.0)
        wanted = middle + ramp * a * (np.sin(2 * np.pi * f * t) + 0.3 * np.sin(5.1 * f * t))
        mujoco.mj_step1(model, data)
        push = drive.stiff * (wanted - data.qpos) - drive.damp * data.qvel
        tau = model.dof_M0 * push + data.qfrc_bias
        rows.append([t, *np.round(data.qpos / STEP) * STEP, *tau])
        data.qfrc_applied[:] = tau
        mujoco.mj_step2(model, data)
    log = pd.DataFrame(
        rows, columns=["t", *(f"q_{n}" for n in names), *(f"tau_{n}" for n in names)]
    )
    for name in names:
        size = float(np.sqrt(np.mean(log[f"tau_{name}"] ** 2)))
        log[f"tau_{name}"] += NOISE * size * rng.standard_normal(len(log))
    return log


def described(text: str, wrong: float = 1.0) -> feasid.Robot:
    """The tree of joints in MuJoCo's file; inertials off by a factor."""
    model = mujoco.MjModel.from_xml_string(text)
    bodies = []
    for k in range(1, model.nbody):
        body = model.body(k)
        ten = inertia.from_mass_com_inertia(
            wrong * body.mass[0], body.ipos, wrong * np.diag(body.inertia)
        )
        parent = model.body(int(body.parentid[0])).name
        joint = model.joint(int(body.jntadr[0]))
        bodies.append(
            feasid.Body(
                body.name,
                None if parent == "world" else parent,
                position=body.pos,
                motion=[*joint.axis, 0, 0, 0],
                joint=joint.name,
                inertial=ten,
            )
        )
    return feasid.Robot(tuple(bodies))


def offline(log: pd.DataFrame, robot: feasid.Robot, cutoff: float | None = 8.0) -> PseudoInverseFit:
    """The paper's pseudo-inverse on filtered signals, friction included."""
    robot = robot.with_joint_terms(drive_inertia=True)
    return pseudo_inverse(robot, *filtered_signals(log, robot, cutoff))


def filtered_signals(
    log: pd.DataFrame, robot: feasid.Robot, cutoff: float | None = 8.0
) -> list[np.ndarray]:
    """q, dq, ddq and tau of all runs of a log, (samples, dof) each."""
    motion = feasid.Recording(log).motion(robot, filtering="signals", cutoff=cutoff)
    names = ("q", "dq", "ddq", "tau")
    return [np.concatenate([getattr(run, x) for run in motion.runs]) for x in names]


def pendulum() -> dict[str, PseudoInverseFit]:
    """Simulated, real, and real but tried on another run."""
    drive = Drive((0.9, 1.1), (0.55, 0.8), (0.0, 0.0))
    simulated = offline(record(PENDULUM, drive, 20.0), described(PENDULUM))
    logs = feasid.datasets.load("double_pendulum")
    robot = logs.attrs["robot"]
    runs = {label: part.drop(columns="run") for label, part in logs.groupby("run")}
    first, other = "run_4", "run_1"
    real = offline(runs[first], robot)
    again = offline(runs[other], robot)
    motion = filtered_signals(runs[other], again.robot)[:3]
    held_out = replace(
        real, tau=again.tau, predicted=feasid.regressor(again.robot, *motion) @ real.theta
    )
    return {"simulated": simulated, "real, fitted": real, "real, another run": held_out}


def leg() -> feasid.Replay:
    """The leg's log played back from a guess of 0.6 times the masses."""
    drive = Drive((0.5, 0.35, 0.6, 0.8), (0.31, 0.23, 0.41, 0.53), (0.0, 0.0, -0.3, 0.8))
    log = record(LEG, drive, 40.0, seed=1)
    return feasid.replay(log, described(LEG, 0.6), window=None, interval=1.0)


def plot(fits: dict[str, PseudoInverseFit], played: feasid.Replay, prefix: str) -> None:
    """Scatter of measured against computed torque, and the leg over time."""
    need("matplotlib", "plot").use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(8, 5.4))
    for column, (label, fit) in zip(axes.T, fits.items(), strict=True):
        for k, axis in enumerate(column):
            joint = fit.robot.coordinates[k]
            axis.plot(fit.tau[::3, k], fit.predicted[::3, k], ".", ms=1)
            span = [fit.tau[:, k].min(), fit.tau[:, k].max()]
            axis.plot(span, span, "k", lw=0.8)
            axis.set_title(f"{label}\n{joint}: $R^2$ = {fit.r2[joint]:.3f}", fontsize=8)
    for axis in axes[-1]:
        axis.set_xlabel("measured [N m]", fontsize=8)
    for axis in axes[:, 0]:
        axis.set_ylabel("computed [N m]", fontsize=8)
    figure.tight_layout()
    figure.savefig(f"{prefix}_pendulum.png", dpi=80)
    played.plot().savefig(f"{prefix}_leg.png", dpi=80)


def main() -> None:
    """Print both studies, and draw them."""
    fits = pendulum()
    for label, fit in fits.items():
        told = ", ".join(f"{joint} {value:.3f}" for joint, value in fit.r2.items())
        print(f"double pendulum, {label:18} R2: {told}")
    played = leg()
    table = played.table
    print("leg, as data come in:")
    for time in (2, 5, 10, 20, 40):
        row = table.iloc[min(time, len(table)) - 1]
        print(f"  after {time:2} s: R2 {row['r2']:.4f}, error of prediction {row['error']:6.2f} of "
              f"the noise, nominal's {row['nominal_error']:6.2f}, gate "
              f"{'open' if row['open'] else 'closed'}")  # fmt: skip
    if len(sys.argv) > 1:
        plot(fits, played, sys.argv[1])


if __name__ == "__main__":
    main()
