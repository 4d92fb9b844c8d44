"""feasid with its defaults, or the published chain of Sousa and Cortesao (2014)."""

import numpy as np
from entry import TERMS, of_arguments

import feasid

NAMED = {"zero": "zeros", "delay": "late", "joint-delay": "late", "lag": "late",
         "position": "cable", "load": "load_friction", "warm-up": "drift", "coarse": "quantised",
         "spring": "cable", "weight": "load_friction",
         "description-doubted": "description", "mass-released": "description"}  # fmt: skip
"""The protocol's words for what feasid calls otherwise."""
ORDER = ("m", "lx", "ly", "lz", "Lxx", "Lxy", "Lyy", "Lxz", "Lyz", "Lzz", *TERMS)


def parameters(fit, joints):
    """Parameters by joint in the protocol's order, and their covariance on what is identified."""
    bodies = {b.joint: b.name for b in fit.robot.bodies}
    names = fit.robot.parameter_names
    places = [names.index((bodies[j], s)) for j in joints for s in ORDER]
    inverse = np.linalg.pinv(fit.base.K)
    covariance = inverse @ fit.covariance @ inverse.T
    return fit.robot.values[places], covariance[np.ix_(places, places)]


def logged(fit, task, t, torque):
    """Torques as the log's instruments record them: late, and with the gains that were found."""
    out, delay = torque.copy(), np.full(len(task.joints), fit.delay)
    for note in fit.notes:
        if note.code == "calibrated" and note.values["kind"] in ("gain", "joint-delay"):
            for joint, (size, *_) in zip(note.values["joints"], note.values["sizes"], strict=True):
                rows = [j == joint or not joint for j in task.joints]
                if note.values["kind"] == "gain":
                    out[:, rows] *= 1 + size
                else:
                    delay[rows] += size
    for _, part in task.test.groupby("run"):
        k = part.index.to_numpy()
        for j, late in enumerate(delay):
            out[k, j] = np.interp(t[k] - late, t[k], out[k, j])
    return out


def main():
    """Answer the task by the variant ``defaults`` or ``published``."""
    task, variant = of_arguments()
    robot = feasid.load_robot(task.urdf).with_gravity(tuple(task.terms["gravity"]))
    log = task.train if task.train["run"].nunique() > 1 else task.train.drop(columns="run")
    chain = {**feasid.SOUSA_2014, "cutoff": None}  # by the spectrum: motions are not the WAM's
    fit = feasid.fit(log, robot, **(chain if variant == "published" else {}))
    x, covariance = parameters(fit, task.joints)
    table = fit.actuators()
    # A mistake that was taken out by its kind, a term that was added by its name.
    found = {n.values.get("kind" if n.code == "calibrated" else "term", n.code) for n in fit.notes}
    sentences = [str(n) for n in fit.notes]
    if variant == "defaults" and "diagnosis" in task.terms["asks"]:
        diagnosis = feasid.diagnose(log, robot)
        told = ("payload", "load", "jitter")  # notes: a fit needs no correction for them
        found |= {f.code for f in diagnosis.findings if f.level != "note" or f.code in told}
        sentences += [str(f.message) for f in diagnosis.findings]
    t, motion = (
        task.test["t"].to_numpy(),
        [task.columns(task.test, kind) for kind in ("q", "dq", "ddq")],
    )
    columns = ["armature", "damping", "frictionloss"]
    torque = feasid.inverse_dynamics(fit.robot, *motion)
    if "as logged" in task.terms["predict"]:
        torque = logged(fit, task, t, torque)
    task.answer(
        torque,
        x,
        covariance=covariance.tolist(),
        actuators={j: table.loc[j, columns].tolist() for j in task.joints},
        found=sorted({NAMED.get(k, k) for k in found}),
        sentences=sentences,
        verdict=fit.quality.level,
        version=feasid.__version__,
    )


if __name__ == "__main__":
    main()
