"""A 4-DoF arm learns itself while it moves, and notices a load that it picks up.

    pip install "feasid[mujoco]"             # "feasid[mujoco,plot]" for the plot
    python examples/online_arm.py [plot.png]

The plant is MuJoCo: shoulder extensor and adductor, upper-arm rotation and elbow, with friction,
drive inertia, encoder steps and torque noise. The description is wrong on purpose: bodies of half
the mass, centred elsewhere, without friction. Half-way a load of 1 kg is put into the hand.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import numpy as np
from extras import need
from valkyrie import AdaptiveControl

import feasid
from feasid.robot import inertia

mujoco = need("mujoco", "mujoco")

RATE = 1000.0
DECISIONS = 40
"""Samples between decisions: 25 per second."""
BANDWIDTH = 2 * np.pi * 2
SMOOTH = 0.05
"""Speed over which Coulomb friction changes its sign in the model [rad/s]."""
STEP = 2 * np.pi / 2**18
NOISE = 0.05
LOAD = 1.0

MODEL = """
<mujoco><option timestep="0.001" integrator="implicitfast"/><compiler angle="radian"/>
<default><joint damping="0.4" frictionloss="0.5" armature="0.05"/></default>
<worldbody><body name="extensor" pos="0 0 1"><joint name="extensor" axis="0 1 0"/>
<inertial pos="0.02 0.03 0" mass="1.5" fullinertia="0.004 0.003 0.005 0 0 0"/>
<body name="adductor"><joint name="adductor" axis="1 0 0"/>
<inertial pos="0.01 0 -0.06" mass="1.2" fullinertia="0.004 0.004 0.003 0 0 0"/>
<body name="upper"><joint name="upper" axis="0 0 1"/>
<inertial pos="0.01 0.005 -0.17" mass="2.4" fullinertia="0.03 0.03 0.004 0 0 0"/>
<body name="forearm" pos="0 0 -0.33"><joint name="elbow" axis="0 1 0"/>
<inertial pos="0.005 0 -0.14" mass="1.4" fullinertia="0.012 0.012 0.002 0 0 0"/>
</body></body></body></body></worldbody></mujoco>
"""
HAND = np.array([0.0, 0.0, -0.3])


def described(model: mujoco.MjModel) -> feasid.Robot:
    """The purposely wrong guess."""
    bodies = []
    axes = {"extensor": (0, 1, 0), "adductor": (1, 0, 0), "upper": (0, 0, 1), "elbow": (0, 1, 0)}
    parent = None
    for (joint, axis), name in zip(axes.items(), ("extensor", "adductor", "upper", "forearm"),
                                   strict=True):  # fmt: skip
        body = model.body(name)
        guess = inertia.from_mass_com_inertia(
            0.5 * body.mass[0], 0.6 * body.ipos + [0.01, 0.01, 0.0], 0.5 * np.diag(body.inertia)
        )
        bodies.append(
            feasid.Body(name, parent, position=body.pos, motion=[*axis, 0, 0, 0], joint=joint,
                        inertial=guess)
        )  # fmt: skip
        parent = name
    robot = feasid.Robot(tuple(bodies), name="arm").with_joint_terms(drive_inertia=True)
    return robot.with_transition(SMOOTH)


def reference(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """To and fro, all joints at frequencies of their own, from rest."""
    w = 2 * np.pi * np.array([[0.31, 0.43, 0.37, 0.53], [0.71, 0.59, 0.83, 0.97]])
    a = np.array([[0.5, 0.35, 0.6, 0.6], [0.15, 0.15, 0.2, 0.2]])
    q = np.array([0.2, 0.1, 0.0, -0.9]) + (a * (1 - np.cos(w * t))).sum(axis=0) - a.sum(axis=0)
    return q, (a * w * np.sin(w * t)).sum(axis=0), (a * w**2 * np.cos(w * t)).sum(axis=0)


@dataclass
class Run:
    """What happened: tracking errors (samples, 4), estimates, and the controller."""

    error: np.ndarray
    control: AdaptiveControl
    estimates: list = field(default_factory=list)
    opened: float = np.nan
    used: list = field(default_factory=list)

    def rms(self, first: float, last: float) -> float:
        """Root mean square of the tracking error between two times [rad]."""
        part = self.error[int(first * RATE) : int(last * RATE)]
        return float(np.sqrt(np.mean(part**2)))


def simulate(seconds: float, pick: float, identify: bool = True, seed: int = 0) -> Run:
    """The arm under computed torque; a load from time `pick` on."""
    model = mujoco.MjModel.from_xml_string(MODEL)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    control = AdaptiveControl(
        described(model), RATE, window=4000, effort=[80.0, 80.0, 40.0, 40.0], worker=False
    )
    run = Run(np.empty((int(seconds * RATE), 4)), control)
    data.qpos[:], before = reference(0.0)[0], reference(0.0)[0]
    speed = np.zeros(4)
    for k in range(len(run.error)):
        t = k / RATE
        if k == round(pick * RATE):
            put_load(model)
        q = np.round(data.qpos / STEP) * STEP
        speed = speed + 0.2 * ((q - before) * RATE - speed)
        before = q
        wanted, rate, push = reference(t)
        run.error[k] = data.qpos - wanted
        command = push + 2 * BANDWIDTH * (rate - speed) + BANDWIDTH**2 * (wanted - q)
        tau = control.torque(q, speed, command)
        data.qfrc_applied[:] = tau
        if identify:
            control.observe(q, tau + NOISE * rng.standard_normal(4), t=t)
            if k % DECISIONS == 0:
                run.estimates.append(control.decide())
                if control.uses_identified_model and np.isnan(run.opened):
                    run.opened = t
                run.used.append((t, control.uses_identified_model))
        mujoco.mj_step(model, data)
    return run


def put_load(model: mujoco.MjModel) -> None:
    """A ball of 1 kg in the hand."""
    body = model.body("forearm").id
    ball = inertia.from_mass_com_inertia(LOAD, HAND, 0.4 * LOAD * 0.05**2 * np.eye(3))
    own = inertia.from_mass_com_inertia(
        model.body_mass[body], model.body_ipos[body], np.diag(model.body_inertia[body])
    )
    mass, centre, tensor = inertia.to_mass_com_inertia(own + ball)
    values, vectors = np.linalg.eigh(tensor)
    vectors *= np.sign(np.linalg.det(vectors))
    model.body_mass[body], model.body_ipos[body], model.body_inertia[body] = mass, centre, values
    quat = np.empty(4)
    mujoco.mju_mat2Quat(quat, vectors.ravel())
    model.body_iquat[body] = quat
    mujoco.mj_setConst(model, mujoco.MjData(model))  # it moves the data that it is given


def figures(run: Run, pick: float) -> dict[str, float]:
    """Tracking before and after the gate opened, and around the load."""
    noticed = [c.time for c in run.control.online.changes if c.time > pick]
    end = len(run.error) / RATE
    return {
        "gate opened [s]": run.opened,
        "rms before [mrad]": 1e3 * run.rms(2.0, run.opened),
        "rms after [mrad]": 1e3 * run.rms(run.opened + 1.0, pick),
        "load noticed after [s]": noticed[0] - pick if noticed else np.inf,
        "rms in the second after [mrad]": 1e3 * run.rms(pick, pick + 1),
        "rms from 7 s after it [mrad]": 1e3 * run.rms(pick + 7, end),
    }


def plot(run: Run, off: Run, pick: float, path: str) -> None:
    """Tracking, the gate, and the identified mass of the forearm's load."""
    need("matplotlib", "plot").use("Agg")
    import matplotlib.pyplot as plt

    t = np.arange(len(run.error)) / RATE
    figure, (top, middle, bottom) = plt.subplots(3, 1, figsize=(8, 7), sharex=True)
    for which, label in ((off, "identification off"), (run, "identification on")):
        size = np.linalg.norm(which.error, axis=1)
        kernel = np.ones(500) / 500
        top.semilogy(t, 1e3 * np.sqrt(np.convolve(size**2, kernel, "same")), label=label)
    top.set_ylabel("tracking error [mrad]")
    top.legend()
    times = [e.time for e in run.estimates]
    errors = [(e.decision.evidence.ratio, e.r2) for e in run.estimates]
    middle.semilogy(times, [e[0] for e in errors], label="prediction error / nominal's")
    middle.plot(times, [e[1] for e in errors], label="R2")
    middle.fill_between(times, 0.01, 2, where=[u for _, u in run.used], alpha=0.15, label="open")
    middle.set_ylim(0.01, 2)
    middle.legend(loc="lower left")
    base = run.control.online.base
    k = next(i for i, e in enumerate(base.expressions) if e.startswith("forearm.lz"))
    value = np.array([e.beta[k] for e in run.estimates])
    spread = np.array([e.std[k] for e in run.estimates])
    bottom.plot(times, value, label=f"{base.expressions[k]}, identified")
    bottom.fill_between(times, value - 2 * spread, value + 2 * spread, alpha=0.3)
    bottom.set_ylim(-0.8, 0.1)
    model = mujoco.MjModel.from_xml_string(MODEL)
    own = float((model.body("forearm").mass * model.body("forearm").ipos)[2])
    bottom.step([0, pick, t[-1]], [own, own + LOAD * HAND[2]] * 1 + [own + LOAD * HAND[2]],
                where="post", color="k", lw=0.8, label="truth")  # fmt: skip
    bottom.set_ylabel("[kg m]")
    bottom.set_xlabel("time [s]")
    bottom.legend(loc="lower left")
    for axis in (top, middle, bottom):
        axis.axvline(pick, color="k", ls=":", lw=0.8)
        axis.axvline(run.opened, color="g", ls=":", lw=0.8)
    figure.tight_layout()
    figure.savefig(path, dpi=80)


def main() -> None:
    """Print the figures, and draw them."""
    pick, seconds = 15.0, 27.0
    run, off = simulate(seconds, pick), simulate(seconds, pick, identify=False)
    for name, value in figures(run, pick).items():
        print(f"{name:34} {value:8.2f}")
    print(f"{'rms without identification [mrad]':34} {1e3 * off.rms(2, pick):8.2f}")
    print(f"{'the same with the load [mrad]':34} {1e3 * off.rms(pick + 7, seconds):8.2f}")
    print(f"{len(run.estimates)} estimates, each verified: {run.estimates[-1].verified}")
    if len(sys.argv) > 1:
        plot(run, off, pick, sys.argv[1])


if __name__ == "__main__":
    main()
