"""Files for programs: what each ignores, and the torque error of its own run on a log.

    python -m benchmarks.programs [--write]
    python -m benchmarks.programs --infeasible [FOLDER ...] [--write]

The packaged log of the Unitree Z1 is fitted, the fit is written for each program, and Pinocchio,
MuJoCo and Drake, where they are installed, compute the torques of the log's motion from the file.
With ``--infeasible`` every URDF and MJCF file of the installed wheels in `WHEELS`, of the packaged
data and of the folders is checked, and MuJoCo loads those with an infeasible link, without their
meshes: as they are, corrected, and corrected for MuJoCo. ``--write`` puts the tables into
docs/models.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import tempfile
from pathlib import Path

import numpy as np

import feasid
from benchmarks.conversions import files_of, without_meshes
from benchmarks.pages import put_between

FILES = {"gazebo": ".sdf", "drake": ".sdf", "mujoco": ".xml", "isaac": ".usda",
         "pinocchio": ".urdf", "bullet": ".urdf"}  # fmt: skip
TITLES = {"gazebo": "Gazebo", "drake": "Drake", "mujoco": "MuJoCo", "isaac": "Isaac Sim",
          "pinocchio": "Pinocchio", "bullet": "Bullet"}  # fmt: skip
PAGE = Path(__file__).parents[1] / "docs/models.md"
MARKS = "<!-- programs -->", "<!-- end of programs -->"
STATES = 400
INFEASIBLE = "<!-- infeasible files -->", "<!-- end of infeasible files -->"
WHEELS = ("example-robot-data", "pydrake", "pybullet_data", "gymnasium", "mujoco", "mani-skill",
          "icub-models")  # fmt: skip


def drake_against_feasid(path):
    """Relative difference of Drake's torques from those that feasid says Drake reads."""
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import MultibodyForces

    robot = feasid.load_robot(path, sidecar=False)
    read = [s for s in ("viscous",) if any("fv" in d.symbols for d in robot.drives)]
    plant = MultibodyPlant(1e-3)
    text = re.sub("<(visual|collision)\\b.*?</\\1>", "", Path(path).read_text(), flags=re.DOTALL)
    Parser(plant).AddModelsFromString(text, "sdf")
    plant.Finalize()
    context = plant.CreateDefaultContext()
    motion = np.random.default_rng().uniform(-1, 1, (3, STATES, robot.dof))
    kept = {"Ia", "fv"} if read else {"Ia"}
    values = robot.values.copy()
    for k in range(len(robot.drives)):
        for symbol, column in robot.drive_columns(k).items():
            values[column] *= symbol in kept
    ours = feasid.inverse_dynamics(robot.with_values(values), *motion)
    rows = [plant.GetJointByName(name).velocity_start() for name in robot.joints]
    theirs = np.zeros_like(ours)
    for k in range(STATES):
        for set_them, numbers in ((plant.SetPositions, motion[0, k]),
                                  (plant.SetVelocities, motion[1, k])):  # fmt: skip
            vector = np.zeros(len(rows))
            vector[rows] = numbers
            set_them(context, vector)
        forces = MultibodyForces(plant)
        plant.CalcForceElementsContribution(context, forces)
        acceleration = np.zeros(len(rows))
        acceleration[rows] = motion[2, k]
        theirs[k] = plant.CalcInverseDynamics(context, acceleration, forces)[rows]
    return np.abs(ours - theirs).max() / np.abs(ours).max()


def loads(path, folder):
    """Why MuJoCo refuses a file without its meshes; empty if it loads."""
    import mujoco

    try:
        mujoco.MjModel.from_xml_path(without_meshes(path, folder))
    except ValueError as error:
        return str(error).replace("\n", " ")
    return ""


def infeasible_files(folders):
    """Lines of a table: infeasible files by where they come from, and how many MuJoCo loads."""
    packaged = Path(__file__).parents[1] / "datasets"
    places = {name: files_of(name) for name in WHEELS}
    for place in (packaged, *map(Path, folders)):
        places[place.name] = sorted(x for s in (".urdf", ".xml") for x in place.rglob(f"*{s}"))
    rows, seen = [], set()
    for name, files in places.items():
        counts = np.zeros(5, dtype=int)
        for file in files:
            content = file.read_bytes()
            if file.suffix == ".sdf" or content in seen:
                continue
            seen.add(content)
            try:
                check = feasid.check(file)
            except feasid.errors.FeasidError:
                continue
            counts[0] += 1
            if not check.infeasible:
                continue
            with tempfile.TemporaryDirectory() as folder:
                outcome = [loads(file, folder)]
                for k, options in enumerate(({}, {"for_": "mujoco"})):
                    out = Path(folder) / f"{k}{file.suffix}"
                    try:
                        feasid.correct(file, out=out, **options)
                        outcome.append(loads(out, folder))
                    except feasid.errors.FeasidError as error:
                        outcome.append(str(error))
            counts[1:] += [1, *(not x for x in outcome)]
            if outcome[2]:
                print(f"{file}: {outcome[2]}")
        if counts[0]:
            rows.append((name, *counts.tolist()))
    rows.append(("all", *(sum(row[k] for row in rows) for k in range(1, 6))))
    heads = "files of | read | infeasible | loaded as they are | corrected | corrected for MuJoCo"
    return [f"| {heads} |", "|" + "---|" * 6, *(f"| {' | '.join(map(str, r))} |" for r in rows)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--infeasible", nargs="*", metavar="FOLDER")
    given = parser.parse_args()
    if given.infeasible is not None:
        lines = infeasible_files(given.infeasible)
        print("\n".join(lines))
        if given.write:
            put_between(PAGE, *INFEASIBLE, "\n".join(lines))
        return
    fit = feasid.fit(feasid.datasets.load("unitree_z1"))
    lines = ["| program | file | does not read | error on the log | error as run |",
             "|---|---|---|---|---|"]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for program, suffix in FILES.items():
            path = Path(folder) / f"{program}{suffix}"
            export = fit.write(path, for_=program, force=True)
            error = export.errors[f"file in {TITLES[program]}"]["all"]
            run = "not run"
            if program in ("pinocchio", "mujoco") and importlib.util.find_spec(program):
                run = f"{100 * fit.verify(path, program).loc['all', program]:.2f} %"
            if program == "drake" and importlib.util.find_spec("pydrake"):
                run = f"differs by {drake_against_feasid(path):.1e} from what is read"
            beginning = f"for {TITLES[program]}: "
            ignored = [x.removeprefix(beginning) for x in export.missing if x.startswith(beginning)]
            words = "; ".join(re.sub(r" \(.*?\)| of [^;]*;.*", "", x) for x in ignored) or "nothing"
            words = re.sub(r"<(\w+)>", r"`<\1>`", words)
            lines.append(
                f"| {TITLES[program]} | {suffix} | {words} | {100 * error:.2f} % | {run} |"
            )
    lines.append("")
    lines.append(f"The fit's own error on this log is {100 * fit.relative_error['all']:.2f} %.")
    print("\n".join(lines))
    if given.write:
        put_between(PAGE, *MARKS, "\n".join(lines))


if __name__ == "__main__":
    main()
