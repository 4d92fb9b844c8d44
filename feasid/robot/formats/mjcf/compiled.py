"""Descriptions from models that MuJoCo has compiled, and joint torques from their controls."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import DescriptionError, SecurityError, missing_extra, refuse_damage
from feasid.robot.bodies import Limits
from feasid.robot.description import Robot
from feasid.robot.drives import Drive
from feasid.robot.formats import description
from feasid.robot.formats.mjcf.model import ACTUATOR_TERMS, FLAGS, TENDON_TERMS
from feasid.robot.formats.terms import NO_TERMS, JointTerms, LeftOut, UnmodelledEffect
from feasid.robot.formats.xml import TEXT, XmlText, parse_xml
from feasid.robot.rotations import from_quaternion

KINDS = ("floating", "spherical", "prismatic", "revolute")  #: Kind of joint for each ``jnt_type``.

ONE_DOF = ("prismatic", "revolute")

EQUALITIES = ("connect", "weld", "joint")
"""Kinds of ``eq_type`` that are modelled; a test compares them with MuJoCo's own."""

SITE = 6  #: MuJoCo's object type of sites.
JOINT_WRAP = 1  #: MuJoCo's kind of a fixed tendon's parts.
POLYNOMIALS = ("stiffnesspoly", "dampingpoly")  #: Of tendons: forces that are not linear.
JOINT_TRANSMISSION = 0  #: MuJoCo's transmission of motors that drive a joint.

MEMBERS = {
    "ntendon": ("tendon", "tendon"),
    "nu": ("actuator", "actuator"),
    "nsensor": ("sensor", "sensor"),
}
"""Count, accessor and name of effects that a robot does not have."""


def compile_mjcf(text: XmlText) -> Any:
    """A file compiled by MuJoCo, which may open the meshes and textures that it names."""
    try:
        import mujoco  # type: ignore[import-untyped]
    except ImportError as error:
        raise missing_extra("compiling MJCF", "mujoco", "mujoco") from error
    path = text.path
    named = (e for e in text.root.walk() if any(a.startswith("file") for a in e.attributes))
    if path == TEXT and (element := next(named, None)) is not None:
        text.fail(
            f"a description given as text, or in a saved fit, cannot name files, as "
            f"<{element.tag}> does: MuJoCo would open them; give the description's own file",
            element,
            kind=SecurityError,
        )
    with refuse_damage(path, "MuJoCo refuses the file", DescriptionError):
        if path == TEXT:
            return mujoco.MjModel.from_xml_string(text.data.decode())
        return mujoco.MjModel.from_xml_path(path)


def compiled_description(text: XmlText) -> description.Description:
    """The description of an MJCF file by MuJoCo's compiler."""
    return describe_mjmodel(compile_mjcf(text), text.path)


def describe_mjmodel(model: Any, path: str = "<compiled model>") -> description.Description:
    """The description of a compiled ``mujoco.MjModel``, with MuJoCo's inertias.

    Bodies without a name are called after their number.
    """
    names = [model.body(i).name or f"body{i}" for i in range(model.nbody)]
    links = [_link(model, i, names, path) for i in range(1, model.nbody)]
    gravity = np.zeros(3) if _is_flag_off(model, "gravity") else np.array(model.opt.gravity)
    shared = _shared_drives(model)
    joints = [joint.name for link in links for joint in link.joints]
    motors: dict[str, float] = {}  # joints that actuators drive, with the gains of position servos
    for k in range(model.nu):
        if int(model.actuator_trntype[k]) == JOINT_TRANSMISSION:
            kp = float(model.actuator_gainprm[k, 0])
            # The force kp (control - q) has the bias -kp q; a gear would multiply it.
            servo = model.actuator_gear[k, 0] == 1.0 and model.actuator_biasprm[k, 1] == -kp < 0
            motors.setdefault(joints[int(model.actuator_trnid[k, 0])], kp if servo else 0.0)
    return description.Description(
        "mjcf",
        path,
        "mujoco",
        tuple(links),
        world="world",
        gravity=tuple(gravity.tolist()),
        bonds=tuple(_bonds(model, names, joints)),
        motors=motors,
        effects=tuple(_unmodelled_effects(model, path, shared)),
        left_out=tuple(
            LeftOut(word, getattr(model, accessor)(i).name or str(i))
            for count, (accessor, word) in MEMBERS.items()
            for i in range(int(getattr(model, count)))
            if word != "tendon" or i not in shared
        ),
        shared=tuple(shared.values()),
    )


def _link(model: Any, i: int, names: Sequence[str], path: str) -> description.Link:
    parent = int(model.body_parentid[i])
    mass, moments = Fraction(float(model.body_mass[i])), model.body_inertia[i].tolist()
    stated = bool(mass or any(moments))
    xx, yy, zz = map(Fraction, moments)
    zero = Fraction(0)
    return description.Link(
        names[i],
        path,
        0,
        lambda: (0, 0),
        names[parent] if parent else None,
        _pose(model.body_pos[i], model.body_quat[i]),
        tuple(_joints(model, i, names[i])),
        mass if stated else None,
        (xx, zero, zero, yy, zero, zz) if stated else None,
        _pose(model.body_ipos[i], model.body_iquat[i]) if stated else None,
    )


def _pose(position: Array, quaternion: Array) -> description.ExactPose:
    return description.pose_of_floats(from_quaternion(quaternion), np.array(position))


def _bonds(model: Any, names: list[str], joints: Sequence[str]) -> list[description.Bond]:
    """Equality constraints between joints, bodies or sites."""
    if _is_flag_off(model, "equality") or _is_flag_off(model, "constraint"):
        return []
    out = []
    for k in range(model.neq):
        if not model.eq_active0[k] or int(model.eq_type[k]) >= len(EQUALITIES):
            continue
        kind, data = EQUALITIES[int(model.eq_type[k])], np.array(model.eq_data[k], dtype=float)
        ids = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
        name = model.equality(k).name or f"{kind} {k + 1}"
        if kind == "joint":
            second = joints[ids[1]] if ids[1] >= 0 else ""
            out.append(description.Bond(kind, name, joints[ids[0]], second, (data[0], data[1])))
            continue
        ends, points, turn = ids, (data[:3], data[3:6]), None
        if int(model.eq_objtype[k]) == SITE:
            ends = int(model.site_bodyid[ids[0]]), int(model.site_bodyid[ids[1]])
            points = np.array(model.site_pos[ids[0]]), np.array(model.site_pos[ids[1]])
            turns = [from_quaternion(model.site_quat[i]) for i in ids]
            turn = turns[0] @ turns[1].T
        elif kind == "weld":
            # MuJoCo keeps of a weld the anchor in the second body, then its place in the first.
            points, turn = (data[3:6], data[:3]), from_quaternion(data[6:10])
        bodies = names[ends[0]], names[ends[1]], (0.0, 1.0)
        out.append(description.Bond(kind, name, *bodies, *points, turn))
    return out


def _is_flag_off(model: Any, flag: str) -> bool:
    """Whether a flag is off. Its bit is read from MuJoCo, because the bits changed when the flag
    "passive" was divided in version 3.3.6.
    """
    import mujoco

    bits = mujoco.mjtDisableBit.__members__
    bit = bits.get(f"mjDSBL_{flag.upper()}") or bits["mjDSBL_PASSIVE"]
    return bool(int(model.opt.disableflags) & int(bit))


def _joints(model: Any, body: int, name: str) -> Iterator[description.Joint]:
    first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
    for j in range(first, first + count):
        one = KINDS[int(model.jnt_type[j])] in ONE_DOF
        angle = float(model.qpos0[model.jnt_qposadr[j]]) if one else 0.0
        limits = Limits(*map(float, model.jnt_range[j])) if model.jnt_limited[j] else Limits()
        default = name if j == first else f"{name}_joint{j - first + 1}"
        yield description.Joint(
            model.joint(j).name or default,
            KINDS[int(model.jnt_type[j])],
            np.array(model.jnt_axis[j]),
            np.array(model.jnt_pos[j]),
            angle,
            limits,
            _terms(model, j) if one else NO_TERMS,
        )


def _terms(model: Any, joint: int) -> JointTerms:
    dof, place = int(model.jnt_dofadr[joint]), int(model.jnt_qposadr[joint])
    loose = _is_flag_off(model, "frictionloss") or _is_flag_off(model, "constraint")
    return JointTerms(
        float(model.dof_armature[dof]),
        0.0 if _is_flag_off(model, "damper") else float(model.dof_damping[dof]),
        0.0 if loose else float(model.dof_frictionloss[dof]),
        0.0 if _is_flag_off(model, "spring") else float(model.jnt_stiffness[joint]),
        float(model.qpos_spring[place]),
    )


def _shared_drives(model: Any) -> dict[int, Drive]:
    """Fixed tendons that are drives along several joints, by number."""
    off = {name for name, flags in FLAGS.items() if any(_is_flag_off(model, f) for f in flags)}
    out = {}
    for i in range(model.ntendon):
        ends = range(int(model.tendon_adr[i]), int(model.tendon_adr[i] + model.tendon_num[i]))
        low, high = map(float, model.tendon_lengthspring[i])
        terms = {
            symbol: float(getattr(model, f"tendon_{name}")[i])
            for name, symbol in TENDON_TERMS.items()
            if i in _nonzero_rows(model, f"tendon_{name}") and name not in off
        }
        joints = [int(model.wrap_objid[e]) for e in ends]
        fixed = all(int(model.wrap_type[e]) == JOINT_WRAP for e in ends)
        curved = any(i in _nonzero_rows(model, f"tendon_{name}") for name in POLYNOMIALS)
        # Between different ends a spring is slack: its torque is not linear.
        if terms and fixed and len(joints) > 1 and low == high and not curved:
            factors = [float(model.wrap_prm[e]) for e in ends]
            coupling = {model.joint(j).name: c for j, c in zip(joints, factors, strict=True)}
            parts = coupling, tuple(terms), np.array([*terms.values()])
            name, slack = model.tendon(i).name or f"tendon {i}", low if "k" in terms else 0.0
            out[i] = Drive(name, *parts, rest=slack, from_file=True)
    return out


def _unmodelled_effects(
    model: Any, path: str, shared: Container[int]
) -> Iterator[UnmodelledEffect]:
    """Forces and inertias of the model that are not modelled here; `shared` tendons are."""

    def effect(kind: str, text: str) -> UnmodelledEffect:
        return UnmodelledEffect(kind, path, 0, text)

    for name in ("density", "viscosity"):
        if getattr(model.opt, name):
            yield effect("fluid", f"option {name}={getattr(model.opt, name):g}")
    for i in _nonzero_rows(model, "body_gravcomp"):
        if not _is_flag_off(model, "gravity"):
            yield effect("gravcomp", f"body {model.body(i).name!r}")
    for kind, terms in (("tendon", TENDON_TERMS), ("actuator", ACTUATOR_TERMS)):
        for term in terms:
            for i in _nonzero_rows(model, f"{kind}_{term}"):
                if kind == "tendon" and i in shared:
                    continue
                label = getattr(model, kind)(i).name or str(i)
                yield effect(kind, f"{kind} {label!r} has {term}")
    for name in ("jnt_stiffnesspoly", "jnt_springyield"):
        for j in _nonzero_rows(model, name):
            yield effect("nonlinear", f"joint {model.joint(j).name!r} has {name.split('_')[1]}")
    for d in _nonzero_rows(model, "dof_dampingpoly"):
        joint = model.joint(int(model.dof_jntid[d])).name
        yield effect("nonlinear", f"joint {joint!r} has dampingpoly")
    for j in range(model.njnt):
        if KINDS[int(model.jnt_type[j])] not in ONE_DOF and _terms(model, j).values:
            yield effect("multidof", f"joint {model.joint(j).name!r}")
    for k in range(model.neq):
        number = int(model.eq_type[k])
        curved = number == EQUALITIES.index("joint") and model.eq_data[k][2:5].any()
        if model.eq_active0[k] and (number >= len(EQUALITIES) or curved):
            yield effect("equality", f"equality {model.equality(k).name or k!r}")
    if model.nflex:
        yield effect("flex", f"{model.nflex} flex")
    if model.nplugin:
        yield effect("plugin", f"{model.nplugin} plugin instances")


def _nonzero_rows(model: Any, name: str) -> list[int]:
    """Rows of a model's array that are not zero; none in versions that do not have it."""
    return [i for i, row in enumerate(getattr(model, name, ())) if np.any(row)]


LAWS = {"gaintype": ("FIXED", "AFFINE"), "biastype": ("NONE", "AFFINE"), "dyntype": ("NONE",)}
"""Types whose force follows from control, position and velocity alone."""


def model_for_controls(columns: Sequence[Any], robot: Robot) -> Any:
    """The robot's model in MuJoCo where a log has columns ``ctrl_<actuator>`` and no torques.

    None for others. `columns` are those of the log and of the options.
    """
    names = [c for c in columns if isinstance(c, str)]
    source = robot.source
    if source is None or source.format not in ("mjcf", "mujoco"):
        return None
    if not any(c.startswith("ctrl") for c in names) or any(c.startswith("tau") for c in names):
        return None
    if source.format == "mujoco":
        return source.reading.get("compiled")
    return compile_mjcf(parse_xml(source.text, source.path))


def actuator_names(model: Any) -> list[str]:
    """Names of a model's actuators, each of which turns control, position and velocity into force.

    Raises DescriptionError: names an actuator with an activation, a muscle, a type of the user's
    own, a delay or a plugin: its force follows from more than a row of a log.
    """
    import mujoco

    kinds = {"gaintype": mujoco.mjtGain, "biastype": mujoco.mjtBias, "dyntype": mujoco.mjtDyn}
    out = []
    for k in range(model.nu):
        name = model.actuator(k).name or str(k + 1)
        for field, allowed in LAWS.items():
            kind = kinds[field](int(getattr(model, f"actuator_{field}")[k])).name.split("_")[-1]
            if kind not in allowed:
                raise DescriptionError(
                    f"actuator {name!r} has {field} {kind.lower()}: its force does not follow from "
                    "control, position and velocity of a row; log the torques (qfrc_actuator)",
                    actuator=name,
                )
        delays = np.asarray(getattr(model, "actuator_delay", np.zeros(model.nu)))
        if delays[k] or int(model.actuator_plugin[k]) >= 0:
            raise DescriptionError(
                f"actuator {name!r} has a delay or a plugin: log the torques (qfrc_actuator)",
                actuator=name,
            )
        out.append(name)
    return out


def actuator_torques(
    model: Any, robot: Robot, q: Array, dq: Array, controls: Mapping[str, Array]
) -> Array:
    """MuJoCo's ``qfrc_actuator`` at these states and controls [N m or N].

    `model`: mujoco.MjModel; `robot`: read from it; joints that it does not have are where they are
    held; `q`, `dq` (N, dof); `controls` (N,): by the actuator's name. Returns (N, dof).
    """
    import mujoco

    links = describe_mjmodel(model).links
    names = [joint.name for link in links for joint in link.joints]
    locks = {} if robot.source is None else dict(robot.source.reading.get("lock") or {})
    data = mujoco.MjData(model)
    for joint, position in locks.items():
        data.qpos[model.jnt_qposadr[names.index(joint)]] = position
    places = [names.index(joint) for joint in robot.joints]
    at, velocity_places = model.jnt_qposadr[places], model.jnt_dofadr[places]
    order = [controls[name] for name in actuator_names(model)]
    out = np.empty_like(q)
    for k, control in enumerate(np.column_stack(order)):
        data.qpos[at], data.qvel[velocity_places], data.ctrl[:] = q[k], dq[k], control
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        mujoco.mj_fwdActuation(model, data)
        out[k] = data.qfrc_actuator[velocity_places]
    return out
