"""Every format into every format, over published robots: what stays, what is refused.

    python -m benchmarks.conversions [--robots 60] [--write]

Robots of the installed wheels (example-robot-data, gymnasium, Drake, pybullet) become files of each
format, and each of these files becomes a file of each format again; every third URDF is read as a
robot that floats. Every new file is read without its sidecar and compared with the robot: masses,
and torques at five random states of all joints, relative to the largest torque. Pinocchio, MuJoCo
and Drake read the new files of their formats too, where they are installed; they compute the
torques of the rigid bodies, with the base at rest. A file differs if numbers are apart by more than
the rounding of 32-bit numbers; `feasid.compare` judges each pair of files, too. Names of links and
shapes that a new file lacks are silent losses unless ``Written.left_out`` lists them. ``--write``
puts the tables into docs/models.md.
"""

from __future__ import annotations

import argparse
import collections
import html
import importlib.util
import re
import tempfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np

import feasid
from benchmarks.pages import put_between
from feasid.robot.description import GRAVITY
from feasid.robot.formats.registry import reread_description

SUFFIXES = {"URDF": ".urdf", "MJCF": ".xml", "SDF": ".sdf", "USD": ".usda"}
PROGRAMS = {"Pinocchio": ("URDF",), "MuJoCo": ("URDF", "MJCF"), "Drake": ("URDF", "SDF")}
ROUNDING = 1e-4
"""Relative difference of torques and masses beyond the rounding of 32-bit numbers and poses."""
STATES = 5
PAGE = Path(__file__).parents[1] / "docs/models.md"
MARKS = "<!-- conversions -->", "<!-- end of conversions -->"
SHARE = {"example-robot-data": 0.75, "gymnasium": 0.1, "pydrake": 0.1, "pybullet_data": 0.2}


def files_of(package):
    """Description files of an installed wheel or package, by name."""
    try:
        every = [Path(str(x.locate())) for x in distribution(package).files or []]
    except PackageNotFoundError:
        spec = importlib.util.find_spec(package.replace("-", "_"))
        folders = (spec.submodule_search_locations or []) if spec else []
        every = [x for folder in folders for x in Path(folder).rglob("*.*")]
    return sorted(x for x in every if x.suffix in (".urdf", ".xml", ".sdf") and x.is_file())


def published(count):
    """Description files of the wheels, evenly chosen in each by name."""
    groups = {"example-robot-data": files_of("example-robot-data")}
    for package in ("gymnasium", "pydrake", "pybullet_data"):
        suffixes = (".xml",) if package == "gymnasium" else (".urdf", ".sdf")
        groups[package] = [x for x in files_of(package) if x.suffix in suffixes and moves(x)]
    out = []
    for package, paths in groups.items():
        wanted = max(1, round(SHARE[package] * count))
        out += [str(p) for p in sorted(paths)[:: max(1, len(paths) // wanted)][:wanted]]
    return out[:count]


def moves(path):
    """Whether a file describes a robot with two joints or more."""
    text = path.read_text(errors="ignore")
    return text.count("<joint ") > 1 and bool(re.search("<(mujoco|robot|sdf)", text))


def torques(robot, states):
    """Torques by joint name, of the rigid bodies and joint terms."""
    values = robot.with_values(np.nan_to_num(robot.values))
    return dict(zip(names_of(robot), feasid.inverse_dynamics(values, *states).T, strict=True))


def names_of(robot):
    """Coordinates by name; those of a root that floats have one name in formats that hold none."""
    free = [body.joint for body in robot.bodies if body.floats]
    return [
        f"floating_base_{name.rpartition('_')[2]}" if name.rpartition("_")[0] in free else name
        for name in robot.coordinates
    ]


def difference(robot, other, seed):
    """Largest difference of masses and torques, relative; infinite where joints differ."""
    if sorted(names_of(robot)) != sorted(names_of(other)):
        return np.inf
    rng = np.random.default_rng(seed)
    states = rng.uniform(-1, 1, (3, STATES, robot.dof))
    order = [names_of(robot).index(name) for name in names_of(other)]
    ours = torques(robot, states)
    theirs = torques(other, states[:, :, order])
    size = max(np.abs(x).max() for x in ours.values()) or 1.0
    apart = max(np.abs(ours[name] - theirs[name]).max() for name in ours) / size
    masses = [
        sum(b.inertial[9] for b in r.bodies if b.inertial is not None) for r in (robot, other)
    ]
    return max(apart, abs(masses[0] - masses[1]) / (masses[0] or 1.0))


# -- other programs ------------------------------------------------------------------------------


def without_meshes(path, folder):
    """The file without meshes, which no program finds beside it."""
    text = Path(path).read_text(encoding="utf-8")
    text = re.sub(
        r"<(visual|collision)\b(?:(?!</\1>).)*<(?:mesh|cdf)\b.*?</\1>", "", text, flags=re.DOTALL
    )
    out = Path(folder) / f"bare{Path(path).suffix}"
    out.write_text(text, encoding="utf-8")
    return str(out)


def by_pinocchio(path, gravity, states):
    import pinocchio

    model = pinocchio.buildModelFromUrdf(path)
    model.gravity.linear = np.array(gravity)
    data, names = model.createData(), [*states]
    out = {name: [] for name in names}
    for k in range(STATES):
        q, (v, a) = pinocchio.neutral(model), np.zeros((2, model.nv))
        for name, motion in states.items():
            joint = model.joints[model.getJointId(name)]
            at = motion[0, k]
            new = [at] if joint.nq == 1 else [np.cos(at), np.sin(at)]
            q[joint.idx_q : joint.idx_q + joint.nq] = new
            v[joint.idx_v], a[joint.idx_v] = motion[1:, k]
        tau = pinocchio.rnea(model, data, q, v, a)
        for name in names:
            out[name].append(tau[model.joints[model.getJointId(name)].idx_v])
    return out


def by_mujoco(path, gravity, states):
    import mujoco

    model = mujoco.MjModel.from_xml_path(path)
    model.opt.gravity = gravity
    for name in ("dof_damping", "dof_armature", "dof_frictionloss", "jnt_stiffness"):
        getattr(model, name)[:] = 0
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data = mujoco.MjData(model)
    out = {name: [] for name in states}
    for k in range(STATES):
        mujoco.mj_resetData(model, data)
        data.qvel[:] = data.qacc[:] = 0
        for name, motion in states.items():
            joint = model.joint(name)
            data.qpos[joint.qposadr[0]] = motion[0, k]
            data.qvel[joint.dofadr[0]], data.qacc[joint.dofadr[0]] = motion[1:, k]
        mujoco.mj_inverse(model, data)
        for name in states:
            out[name].append(data.qfrc_inverse[model.joint(name).dofadr[0]])
    return out


def by_drake(path, gravity, states):
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import MultibodyForces

    plant = MultibodyPlant(1e-3)
    text = Path(path).read_text(encoding="utf-8")  # of the rigid bodies alone
    text = re.sub("<drake:rotor_inertia.*?>([^<]*</drake:rotor_inertia>)?", "", text)
    Path(path).write_text(text, encoding="utf-8")
    Parser(plant).AddModels(path)
    plant.mutable_gravity_field().set_gravity_vector(gravity)
    plant.Finalize()
    context = plant.CreateDefaultContext()
    joints = {name: plant.GetJointByName(name) for name in states}
    out = {name: [] for name in states}
    for k in range(STATES):
        acceleration = np.zeros(plant.num_velocities())
        q, v = plant.GetPositions(context), np.zeros(plant.num_velocities())
        for name, motion in states.items():
            row = joints[name].velocity_start()
            q[joints[name].position_start()], v[row], acceleration[row] = motion[:, k]
        plant.SetPositions(context, q)
        plant.SetVelocities(context, v)
        tau = plant.CalcInverseDynamics(context, acceleration, MultibodyForces(plant))
        tau = tau - plant.CalcGravityGeneralizedForces(context)
        for name in states:
            out[name].append(tau[joints[name].velocity_start()])
    return out


READERS = {"Pinocchio": by_pinocchio, "MuJoCo": by_mujoco, "Drake": by_drake}


def read_by(program, robot, path, folder, seed):
    """Relative difference of a program's torques of a file's bodies; text where it refuses."""
    rng = np.random.default_rng(seed)
    bare = robot.without_joint_terms()
    free = {b.joint for b in bare.bodies if b.dof == 1}
    motion = rng.uniform(-1, 1, (3, STATES, bare.dof))
    motion *= [name in free for name in bare.coordinates]
    ours = torques(bare, motion)
    states = {n: motion[:, :, k] for k, n in enumerate(bare.coordinates) if n in free}
    for coupling in bare.couplings:
        (leader, factor), *_ = [*coupling.factors.items(), ("", 0.0)]
        follower = factor * states.get(leader, np.zeros((3, STATES)))
        states[coupling.joint] = follower + np.array([[coupling.offset], [0], [0]])
    try:
        theirs = READERS[program](without_meshes(path, folder), robot.gravity, states)
    except Exception as error:  # programs have errors of their own kinds
        return str(error).replace("\n", " ")
    projected = {name: np.array(theirs[name]) for name in states}
    for coupling in bare.couplings:
        for leader, factor in coupling.factors.items():
            projected[leader] = projected[leader] + factor * projected[coupling.joint]
    shown = [name for name in bare.coordinates if name in free]
    size = max([np.abs(ours[name]).max() for name in shown] or [1.0]) or 1.0
    return max([np.abs(ours[name] - projected[name]).max() for name in shown] or [0.0]) / size


# -- what stays ----------------------------------------------------------------------------------


def parts(robot):
    """Shapes of a robot's file by kind, and names of its links without joints."""
    description = reread_description(robot)
    if description is None:
        return collections.Counter(), set()
    shapes = collections.Counter()
    for link in description.links:
        for drawing in link.drawings():
            kind = type(drawing.shape).__name__ if drawing.shape is not None else "unknown"
            shapes[drawing.tag, kind] += 1
    fixed = {x.name for x in (*description.links, *description.frames) if not x.joints}
    return shapes, fixed - {"world"}


def convert(robot, path, seed):
    """What became of a robot in a new file, and the robot of that file."""
    floats = any(body.floats for body in robot.bodies) or None
    try:
        written = feasid.write(robot.with_values(np.nan_to_num(robot.values)), path)
        gravity = robot.gravity if "gravity" in written.lost else None
        read = feasid.load_robot(path, sidecar=False, floating=floats, gravity=gravity)
    except feasid.errors.FeasidError as error:
        return "refused", str(error), None
    terms = any(not name.endswith("gravity") for name in written.lost)
    if difference(robot, read, seed) > ROUNDING and not terms:
        return "differs", path.name, read
    return "equal but for listed terms" if terms else "equal", written.left_out, read


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--robots", type=int, default=60)
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    modules = {"Pinocchio": "pinocchio", "MuJoCo": "mujoco", "Drake": "pydrake"}
    there = [p for p in PROGRAMS if importlib.util.find_spec(modules[p])]
    results, reasons = collections.defaultdict(collections.Counter), collections.Counter()
    shapes = collections.defaultdict(lambda: np.zeros(4, dtype=int))
    silent, alike = collections.Counter(), collections.Counter()
    outside = collections.defaultdict(collections.Counter)
    count = collections.Counter()
    for number, source in enumerate(x for x in published(given.robots) if given.only in x):
        with tempfile.TemporaryDirectory() as folder:
            floating = True if number % 3 == 2 and source.endswith(".urdf") else None
            try:
                robot = feasid.load_robot(source, floating=floating)
            except feasid.errors.FeasidError as error:
                reasons[str(error).split(": ", 1)[-1][:150]] += 1
                continue
            count["floating" if any(b.floats for b in robot.bodies) else "fixed"] += 1
            form = {"mjcf": "MJCF", "sdf": "SDF"}.get(robot.source.format, "URDF")
            origins, files = {form: robot}, {form: source}
            for a, suffix in SUFFIXES.items():
                if a != form:
                    files[a] = Path(folder) / f"{a}{suffix}"
                    _, _, read = convert(robot, files[a], number)
                    if read is not None:
                        origins[a] = read
            usual = np.array_equal(robot.gravity, GRAVITY)  # other gravity is in sidecars
            for sidecar in Path(folder).glob("*.feasid.json") if usual else ():
                sidecar.unlink()
            for a, origin in origins.items():
                for b, suffix in SUFFIXES.items():
                    path = Path(folder) / f"{a}_{b}{suffix}"
                    outcome, words, read = convert(origin, path, number)
                    results[a, b][outcome] += 1
                    if read is None or outcome == "differs":
                        print(f"{Path(source).stem}: {a} to {b}: {outcome}: {words[:200]}")
                        if read is None:
                            reasons[f"to {b}: " + re.sub("'[^']*'", "...", words)[:150]] += 1
                        continue
                    same = feasid.compare(files[a], path)
                    alike[a, b] += same.equivalent
                    if not same.equivalent:
                        print(f"{Path(source).stem}: {a} to {b}: {same}")
                    (before, names), (after, held) = parts(origin), parts(read)
                    lost = {k: n - after[k] for k, n in before.items() if n > after[k]}
                    moving = {body.name for body in read.bodies}
                    gone = names - held - moving
                    shapes[a, b] += [before.total(), min(before.total(), after.total()),
                                     len(names), len(names) - len(gone)]  # fmt: skip
                    for thing in [f"{kind} of a {tag}" for tag, kind in lost] + sorted(gone):
                        word = thing.split(" of a ")[-1]
                        word = "fixed link" if thing in gone else word
                        if word not in words:
                            silent[f"{Path(source).stem}: {a} to {b}: {thing}"] += 1
                    for program in (p for p in there if b in PROGRAMS[p]):
                        off = read_by(program, origin, path, folder, number)
                        ok = not isinstance(off, str) and off < ROUNDING
                        kind = "refused" if isinstance(off, str) else "equal" if ok else "differs"
                        named = feasid.write(read, Path(folder) / f"same{suffix}", overwrite=True,
                                             for_=program.lower()).unread[program]  # fmt: skip
                        kind = "said" if kind != "equal" and "which is" in named else kind
                        outside[program, b][kind] += 1
                        if kind not in ("equal", "said"):
                            said = off if isinstance(off, str) else f"{off:.3g}"
                            where = f"{Path(source).stem}: {a} to {b} in {program}"
                            print(f"{where}: {kind}: {said[-230:]}")
    lines = [f"{sum(count.values())} robots, {count['floating']} of them floating.", ""]
    heads = ("equal", "listed terms", "refused", "differs", "compare", "shapes", "fixed links")
    lines.append(f"| from | to | {' | '.join(heads)} |")
    lines.append("|" + "---|" * (2 + len(heads)))
    for (a, b), outcomes in results.items():
        before, after, fixed, held = shapes[a, b]
        kinds = ("equal", "equal but for listed terms", "refused", "differs")
        kept = f"{alike[a, b]} | {after} of {before} | {held} of {fixed}"
        lines.append(f"| {a} | {b} | {' | '.join(str(outcomes[k]) for k in kinds)} | {kept} |")
    lines += ["", f"Losses that no line of `Written.left_out` names: {len(silent)}.", ""]
    lines += [
        "| new files | read by | equal | refused or replaced, as said | differs | refused |",
        "|---|---|---|---|---|---|",
    ]
    for (program, b), outcomes in sorted(outside.items()):
        row = " | ".join(str(outcomes[k]) for k in ("equal", "said", "differs", "refused"))
        lines.append(f"| {b} | {program} | {row} |")
    lines += ["", "| times | refused |", "|---|---|"]
    words = {text: html.escape(re.sub(r"/\S*/", "", text), quote=False) for text in reasons}
    lines += [f"| {n} | {words[text]} |" for text, n in reasons.most_common()]
    print("\n".join(lines))
    for name, number in [*reasons.most_common(25), *silent.most_common(25)]:
        print(f"{number:5d}  {name}")
    if given.write:
        put_between(PAGE, *MARKS, "\n".join(lines))


if __name__ == "__main__":
    main()
