"""mujoco.sysid of MuJoCo 4.0: nonlinear least squares through rollouts of short windows.

As https://mujoco.readthedocs.io/en/stable/python.html#sysid and the package's docstrings describe
it: motors driven by the measured torques, joint position and velocity sensors, pseudo-inertias
with the default bounds, armature, damping and friction loss, ``x_scale="jac"``. With the variant
``sensors`` its `SignalTransform` has a delay of all sensors and an offset of each position, too.
"""

import mujoco
import numpy as np
from entry import LinearModel, low_pass, of_arguments, urdf_with
from mujoco import sysid

STEP, WINDOW, MOST_WINDOWS, MOST_ITERATIONS = 0.002, 0.25, 40, 25
"""Time step and length of a window [s]; windows; iterations, which bound the processor time."""
MOST_MODELS = 400
"""Compiled models that are kept: a few Jacobians' worth."""
LEAST = 1e-3, 1e-6
"""Mass [kg] and moments [kg m^2] that bodies get at least."""
MOST_DELAY, MOST_OFFSET = 0.05, 0.05
"""Bounds of the delay [s] and of offsets of positions [rad, m]."""
TERMS = ("armature", "damping", "frictionloss")


def make_spec(task, linear):
    """The description in MuJoCo with motors and sensors, without contacts and limits."""
    bodies = dict(zip(task.joints, linear.described().reshape(len(task.joints), -1), strict=True))
    text = urdf_with(task.urdf.read_text(), {j: x[:10] for j, x in bodies.items()})
    spec = mujoco.MjSpec.from_string(text)
    spec.compiler.balanceinertia = True  # its remedies for descriptions of no solid bodies
    spec.compiler.boundmass, spec.compiler.boundinertia = LEAST
    spec.option.timestep, spec.option.gravity = STEP, task.terms["gravity"]
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for flag in (mujoco.mjtDisableBit.mjDSBL_CONTACT, mujoco.mjtDisableBit.mjDSBL_LIMIT):
        spec.option.disableflags |= flag
    for name in task.joints:
        joint = spec.joint(name)
        joint.actfrclimited = mujoco.mjtLimited.mjLIMITED_FALSE
        joint.solref_friction[:] = 2 * STEP, 1.0
        spec.add_actuator(name=f"motor_{name}", target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    for kind in ("JOINTPOS", "JOINTVEL"):
        for name in task.joints:
            spec.add_sensor(name=f"{kind}_{name}", type=getattr(mujoco.mjtSensor, f"mjSENS_{kind}"),
                            objtype=mujoco.mjtObj.mjOBJ_JOINT, objname=name)  # fmt: skip
    return spec


def make_parameters(task, spec, model, start):
    """Pseudo-inertia of each body, and joint terms that start as a linear fit has them."""
    out = sysid.ParameterDict()
    for name, first in zip(task.joints, start, strict=True):
        body = model.body(int(model.jnt_bodyid[model.joint(name).id])).name

        def place(spec, parameter, body=body):
            sysid.apply_body_inertia(spec, body, parameter)
            spec.body(body).iquat[:] = 1, 0, 0, 0  # 4.0.0 leaves NaN, which its compiler refuses

        out.add(sysid.body_inertia_param(spec, model, body, sysid.InertiaType.Pseudo,
                                         modifier=place))  # fmt: skip
        for term, value in zip(TERMS, first, strict=True):

            def modify(spec, parameter, name=name, term=term):
                value = float(parameter.value[0])  # a joint's damping is a polynomial of its speed
                setattr(spec.joint(name), term, [value, 0, 0] if term == "damping" else value)

            most = 10 * max(value, 0.1)
            out.add(sysid.Parameter(f"{name}_{term}", value, 0.0, most, modifier=modify))
    return out


def builder():
    """A ``build_model`` that compiles each vector of parameters once, not once per window."""
    models = {}

    def build(parameters, spec):
        key = parameters.as_vector().tobytes()
        if key not in models:
            if len(models) > MOST_MODELS:
                models.clear()
            models[key] = sysid.apply_param_modifiers(parameters, spec)
        return models[key]

    return build


def windows(task, model):
    """Initial states, controls and sensor data of windows spread over the log."""
    order = np.argsort([int(model.joint(j).dofadr[0]) for j in task.joints])
    found = []
    for rate, q, dq, _, tau in task.stretches():
        rows, tau = round(WINDOW * rate), low_pass(tau, 30.0, rate)
        for s in range(round(0.1 * rate), len(q) - rows - round(0.1 * rate), rows):
            cut = slice(s, s + rows + 1)
            t = np.arange(len(q[cut])) / rate
            seen = np.concatenate([q[cut], dq[cut]], axis=1)
            found.append((sysid.create_initial_state(model, q[s][order], dq[s][order]),
                          sysid.TimeSeries.from_control_names(t, tau[cut], model),
                          sysid.TimeSeries.from_names(t, seen, model)))  # fmt: skip
    kept = np.linspace(0, len(found) - 1, min(MOST_WINDOWS, len(found))).astype(int)
    return zip(*[found[k] for k in kept], strict=True)


def main():
    """Answer the task with the parameters at which the search ends."""
    task, variant = of_arguments()
    linear = LinearModel(task)
    spec = make_spec(task, linear)
    model = spec.compile()
    states, controls, sensors = windows(task, model)
    torque = np.sqrt(np.mean(task.columns(task.train, "tau") ** 2, axis=0))
    start = np.stack([0.05 * torque, 0.1 * torque, 0.1 * torque], axis=1)
    parameters = make_parameters(task, spec, model, start)
    names = [f"window{k}" for k in range(len(states))]
    sequences = [sysid.ModelSequences("arm", spec, names, list(states), list(controls),
                                      list(sensors))]  # fmt: skip
    transform = sysid.SignalTransform()
    if variant == "sensors":
        delay = sysid.Parameter("delay", 0.0, -MOST_DELAY, MOST_DELAY)
        parameters.add(delay)
        transform.delay("*", delay)
        for name in task.joints:
            offset = sysid.Parameter(f"{name}_offset", 0.0, -MOST_OFFSET, MOST_OFFSET)
            parameters.add(offset)
            transform.bias(f"JOINTPOS_{name}", offset, target="predicted")
    residual = sysid.build_residual_fn(models_sequences=sequences, n_threads=1,
                                       build_model=builder(),
                                       modify_residual=transform.apply)  # fmt: skip
    found, _ = sysid.optimize(parameters, residual, "scipy_parallel_fd", verbose=False,
                              max_iters=MOST_ITERATIONS,
                              x_scale="jac")  # fmt: skip
    final = sysid.apply_param_modifiers(found, spec)
    x = []
    for name in task.joints:
        k = int(final.jnt_bodyid[final.joint(name).id])
        m, c, R = final.body_mass[k], final.body_ipos[k], np.empty(9)
        mujoco.mju_quat2Mat(R, final.body_iquat[k])
        R = R.reshape(3, 3)
        about = R @ np.diag(final.body_inertia[k]) @ R.T + m * (c @ c * np.eye(3) - np.outer(c, c))
        terms = [float(found[f"{name}_{t}"].value[0]) for t in TERMS]
        x += [m, *(m * c), *about[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]], *terms, 0.0]
    torque = linear.predict(task, np.array(x))
    if variant == "sensors" and "as logged" in task.terms["predict"]:
        late = float(found["delay"].value[0])  # of the motion behind the torques
        for _, part in task.test.groupby("run"):
            rows, t = part.index.to_numpy(), part["t"].to_numpy()
            torque[rows] = np.stack([np.interp(t + late, t, tau) for tau in torque[rows].T], 1)
    said = [f"{k}: {v.value[0]:.5g}" for k, v in found.items() if k.endswith(("delay", "offset"))]
    task.answer(torque, x, version=mujoco.__version__, sentences=said)


if __name__ == "__main__":
    main()
