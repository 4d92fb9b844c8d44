"""Contact found, and promises kept.   python benchmarks/external_torque.py COMMAND [N]

    alarms 600     false alarms of N seconds of undisturbed motion beside the promised ones
    pushes 30      pushes found of N per force and length, beside Pinocchio's observer
    real           false alarms on parts of packaged logs that were not fitted
    picture        draws docs/pictures/contact.png
    step           time of the compiled step, in that of Pinocchio's `crba`

Motion is a Panda's in MuJoCo with masses, shapes and centres that the description has wrong;
torque sensors have white noise, velocities are the simulator's. "Fixed" is the same observer on
the described inertials with the fitted friction, computed with Pinocchio, with one threshold per
joint, in proportion to the root mean square of its output: those at which it alarms as often as
ours does on 300 s of undisturbed motion, which needs a log without contact that ours does without.
"""

import sys
import time
from pathlib import Path

import numpy as np
import pinocchio

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import feasid
from benchmarks import simulated
from feasid.results.export.file_terms import joint_values
from feasid.robot.inertia import to_mass_com_inertia

RATE, GAIN = simulated.RATE, 30.0
PROMISED = 0.1  # alarms per second
FORCES, LENGTHS = (5.0, 10.0, 20.0, 30.0), (0.05, 0.1, 0.5)


def arm():
    """A fit of the Panda, and its truth."""
    hidden = simulated.hidden("panda")
    return hidden, feasid.fit(hidden.log, hidden.robot, drive_inertia=True)


def run(hidden, seed, seconds, pushes=()):
    """t, q, dq and measured tau of another motion; a push is (start, length, force (3,))."""
    rng = np.random.default_rng([seed, 21])
    terms, delta, model = hidden.terms, hidden.delta, hidden.model
    way = simulated.fourier(hidden.robot, rng, seconds, simulated.FITTED_SPEED)
    ten = delta[terms.inertial_columns].ravel()
    ia = delta[[terms.drive_columns(k)["Ia"] for k in range(terms.dof)]]
    m = simulated.diagonal_inertia(terms.without_joint_terms(), ten, way[0][::200]) + ia
    stiff, damp = m * simulated.BANDWIDTH**2, 2 * simulated.DAMPING * m * simulated.BANDWIDTH
    tip = model.nbody - 1

    def torque(k, x, v, data):
        data.xfrc_applied[:] = 0.0
        for start, length, force in pushes:
            if start <= k / RATE < start + length:
                data.xfrc_applied[tip, :3] = force
        return stiff * (way[0][k] - x) + damp * (way[1][k] - v) + data.qfrc_bias

    q, dq, tau = simulated.drive(model, way, torque)
    logged = hidden.log[[f"tau_{j}" for j in terms.joints]].to_numpy()
    size = np.sqrt(np.mean(logged**2, axis=0))  # sensors are those of the fitted log
    return q, dq, tau + simulated.TORQUE_NOISE * size * rng.standard_normal(tau.shape)


def ours(fit, alarms, signals):
    """External torques and thresholds of a run, shapes (samples, dof)."""
    observer = feasid.ExternalTorque(fit, RATE, alarms, gain=GAIN)
    found = [observer.update(k / RATE, *row) for k, row in enumerate(zip(*signals, strict=True))]
    return np.array([f.torque for f in found]), np.array([f.threshold for f in found])


def pinocchios(hidden, fit, signals):
    """The same observer with the description's inertials and the fitted joint terms."""
    nominal = hidden.robot.values[hidden.robot.inertial_columns]
    model = pinocchio.Model()
    parent, joints = {None: 0}, []
    for body, columns in zip(hidden.robot.bodies, nominal, strict=True):
        place = pinocchio.SE3(np.asarray(body.rotation), np.asarray(body.position))
        kind = pinocchio.JointModelRevoluteUnaligned(np.asarray(body.motion[:3, 0]))
        joint = model.addJoint(parent[body.parent], kind, place, body.joint)
        mass, centre, about = to_mass_com_inertia(columns)
        inertia = pinocchio.Inertia(float(mass), centre, about)
        model.appendBodyToJoint(joint, inertia, pinocchio.SE3.Identity())
        parent[body.name] = joint
        joints.append(joint)
    model.gravity.linear = np.asarray(hidden.robot.gravity)
    data, terms = model.createData(), joint_values(fit.robot, fit.delta)
    q, dq, tau = signals
    out, integral, residual = np.zeros_like(q), None, np.zeros(model.nv)
    for k in range(len(q)):
        M = pinocchio.crba(model, data, q[k])
        M = np.triu(M) + np.triu(M, 1).T + np.diag(terms["Ia"])
        C = pinocchio.computeCoriolisMatrix(model, data, q[k], dq[k])
        weight = pinocchio.computeGeneralizedGravity(model, data, q[k])
        rubbing = terms["fv"] * dq[k] + terms["fc"] * np.sign(dq[k]) + terms["fo"]
        momentum = M @ dq[k]
        integral = momentum.copy() if integral is None else integral
        pushed = integral + (tau[k] + C.T @ dq[k] - weight - rubbing) / RATE
        residual = GAIN * (momentum - pushed) / (1 + GAIN / RATE)
        integral = pushed + residual / RATE
        out[k] = residual
    return out


def onsets(beyond):
    """How often some joint begins to be beyond its threshold, per joint."""
    return np.sum(beyond[1:] & ~beyond[:-1], axis=0)


def alarms(seconds: float) -> None:
    """Promised and found."""
    hidden, fit = arm()
    for promised in (1.0, 0.2):
        found = 0
        for seed in range(max(1, round(seconds / 30.0))):
            torque, limit = ours(fit, promised, run(hidden, seed, 30.0))
            own = onsets(np.abs(torque) > limit)
            found += int(own.sum())
            print(promised, seed, own, flush=True)
        total = 30.0 * (seed + 1)
        print(f"promised {promised * total:.0f} in {total:.0f} s, found {found}")


def pushes(count: int) -> None:
    """Share found and median delay, at the same rate of alarms."""
    hidden, fit = arm()
    alarms, plain = 0, []
    for seed in range(10):
        still = run(hidden, 1000 + seed, 30.0)
        torque, limit = ours(fit, PROMISED, still)
        alarms += int(onsets(np.abs(torque) > limit).sum())
        plain.append(pinocchios(hidden, fit, still))
    spread = np.sqrt(np.mean(np.concatenate(plain) ** 2, axis=0))
    fixed = next(
        size * spread
        for size in np.linspace(0.1, 9.0, 900)
        if sum(onsets(np.abs(r) > size * spread).sum() for r in plain) <= alarms
    )
    print(f"promised {300 * PROMISED:.0f} alarms in 300 s, ours {alarms}, the fixed ones as many")
    print(f"thresholds {np.median(limit, axis=0).round(2)}, fixed {fixed.round(2)}")
    rng = np.random.default_rng(3)
    for force in FORCES:
        for length in LENGTHS:
            starts = 1.0 + 1.2 * np.arange(count)
            ways = rng.standard_normal((count, 3))
            ways *= force / np.linalg.norm(ways, axis=1)[:, None]
            table = [(s, length, w) for s, w in zip(starts, ways, strict=True)]
            signals = run(hidden, int(force), 1.2 * count + 1.0, table)
            torque, limit = ours(fit, PROMISED, signals)
            line = [f"{force:4.0f} N {1e3 * length:4.0f} ms"]
            for r, bound in ((torque, limit), (pinocchios(hidden, fit, signals), fixed)):
                beyond = (np.abs(r) > bound).any(axis=1)
                delays = []
                for s in starts:
                    first, last = round(s * RATE), round((s + length + 0.1) * RATE)
                    if not beyond[first - 20 : first].any() and beyond[first:last].any():
                        delays.append(np.argmax(beyond[first:last]) / RATE)
                late = 1e3 * np.median(delays) if delays else np.nan
                line.append(f"{len(delays) / count:5.2f} found, {late:4.0f} ms")
            print(" | ".join(line), flush=True)


def real() -> None:
    """Tenths of a log are fitted and observed in turn; then its first and its second half."""
    print(
        f"{'log, what was fitted':34} {'promised':>8} {'found':>6} {'ratio':>6}   beyond its speeds"
    )
    for name in ("unitree_z1", "kuka_lwr4", "kinova_gen3", "double_pendulum"):
        log = feasid.datasets.load(name)
        tenth = np.arange(len(log)) * 10 // len(log)
        whole = log["run"].to_numpy() if "run" in log else np.zeros(len(log))
        place = np.concatenate([np.arange(n) / n for n in np.unique(whole, return_counts=True)[1]])
        for part, fitted in (
            ("even tenths", tenth % 2 == 0),
            ("odd tenths", tenth % 2 == 1),
            ("first halves of runs", place < 0.5),
            ("second halves of runs", place >= 0.5),
        ):
            fit = feasid.fit(log[fitted], log.attrs["robot"], **log.attrs["options"])
            motion = feasid.Recording.from_source(log[~fitted]).motion(
                fit.robot, **fit.test_options()
            )
            seconds, faster = played(fit, motion, 1e-3)[2:]
            for expected in (30, 100):
                rate = expected / (seconds - faster)
                found, beyond = played(fit, motion, rate)[:2]
                print(
                    f"{name + ', ' + part:34} {expected:8} {found:6} {found / expected:6.2f}   "
                    f"{beyond} in {faster:.1f} of {seconds:.1f} s",
                    flush=True,
                )


def played(fit, motion, rate: float):
    """False alarms within the fit's speeds and beyond them, seconds of all and beyond them."""
    observer = feasid.ExternalTorque(fit, motion.runs[0].rate, rate, delay=fit.torque_shift)
    found, seconds = [0, 0], [0.0, 0.0]
    for r in motion.runs:
        before = np.ones(fit.robot.dof, dtype=bool)
        for k in range(len(r)):
            seen = observer.update(r.t[k], r.q[k], r.dq[k], r.tau[k])
            found[seen.extrapolated] += int(np.sum(seen.joints & ~before))
            seconds[seen.extrapolated] += 1.0 / r.rate
            before = seen.joints
    return (*found, sum(seconds), seconds[1])


def picture() -> None:
    """A joint's external torque and thresholds while the hand is pushed three times."""
    import matplotlib.pyplot as plt

    hidden, fit = arm()
    table = [(s, 0.2, np.array([0.0, 0.0, -f])) for s, f in ((1.0, 5.0), (2.0, 10.0), (3.0, 20.0))]
    torque, limit = ours(fit, 1.0 / 3600.0, run(hidden, 5, 4.0, table))
    t, joint = np.arange(len(torque)) / RATE, 1
    figure, axes = plt.subplots(figsize=(8, 3), layout="constrained")
    for start, length, _ in table:
        axes.axvspan(start, start + length, color="0.9")
    axes.fill_between(t, -limit[:, joint], limit[:, joint], color="tab:blue", alpha=0.2,
                      label="threshold for one alarm per hour")  # fmt: skip
    axes.plot(t, torque[:, joint], lw=1, label="external torque of joint 2")
    axes.set(xlabel="t [s]", ylabel="N m", title="5, 10 and 20 N push the hand for 0.2 s")
    axes.legend(loc="lower left")
    figure.savefig(Path(__file__).parents[1] / "docs" / "pictures" / "contact.png", dpi=90)


def step() -> None:
    """The compiled step by itself, called from C through ctypes, beside `crba`."""
    _, fit = arm()
    observer = feasid.ExternalTorque(fit, RATE, backend="c")
    arrays = [np.zeros(7), np.zeros(7), np.zeros(7), np.zeros(21)]
    import pinocchio as pin

    model = pin.buildSampleModelManipulator()
    data, q = model.createData(), pin.neutral(model)
    timings = []
    for call in (lambda: observer._step(*arrays), lambda: pin.crba(model, data, q)):
        start = time.process_time()
        for _ in range(20000):
            call()
        timings.append((time.process_time() - start) / 20000)
    ratio = timings[0] / timings[1]
    print(f"step {1e6 * timings[0]:.1f} us with its call, {ratio:.2g} times crba's")


if __name__ == "__main__":
    commands = {"alarms": alarms, "pushes": pushes, "real": real, "picture": picture, "step": step}
    if sys.argv[1:2] and sys.argv[1] in commands:
        numbers = [float(x) for x in sys.argv[2:]]
        commands[sys.argv[1]](*(int(x) if sys.argv[1] == "pushes" else x for x in numbers))
    else:
        sys.exit(__doc__)
