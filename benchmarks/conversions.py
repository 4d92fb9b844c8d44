"""Every format into every format, over published robots: what stays, what is refused.

    python -m benchmarks.conversions [--robots 60] [--write]

Each URDF of example-robot-data becomes a file of each format; each of these files becomes a file of
each format again. Every new file is read without its sidecar and compared with the robot: masses,
and torques at five random states of all joints, relative to the largest torque. A file differs if
numbers are apart by more than the rounding of 32-bit numbers. Shapes and fixed links are counted in
the files themselves. ``--write`` puts the table into docs/models.md.
"""

from __future__ import annotations

import argparse
import collections
import re
import tempfile
from importlib.metadata import distribution
from pathlib import Path

import numpy as np

import feasid
from feasid.robot.formats.registry import reread_description

SUFFIXES = {"URDF": ".urdf", "MJCF": ".xml", "SDF": ".sdf", "USD": ".usda"}
ROUNDING = 1e-4
"""Relative difference of torques and masses beyond the rounding of 32-bit numbers and poses."""
STATES = 5
PAGE = Path(__file__).parents[1] / "docs/models.md"
MARKS = "<!-- conversions -->", "<!-- end of conversions -->"


def published(count):
    files = distribution("example-robot-data").files or []
    paths = sorted(str(x.locate()) for x in files if x.suffix == ".urdf")
    return paths[:: max(1, len(paths) // count)][:count]


def torques(robot, states):
    """Torques by joint name, of the rigid bodies and joint terms."""
    values = robot.with_values(np.nan_to_num(robot.values))
    return dict(zip(robot.coordinates, feasid.inverse_dynamics(values, *states).T, strict=True))


def difference(robot, other, seed):
    """Largest difference of masses and torques, relative; infinite where joints differ."""
    if sorted(robot.coordinates) != sorted(other.coordinates):
        return np.inf
    rng = np.random.default_rng(seed)
    states = rng.uniform(-1, 1, (3, STATES, robot.dof))
    order = [robot.coordinates.index(name) for name in other.coordinates]
    ours = torques(robot, states)
    theirs = torques(other, states[:, :, order])
    size = max(np.abs(x).max() for x in ours.values()) or 1.0
    apart = max(np.abs(ours[name] - theirs[name]).max() for name in ours) / size
    masses = [
        sum(b.inertial[9] for b in r.bodies if b.inertial is not None) for r in (robot, other)
    ]
    return max(apart, abs(masses[0] - masses[1]) / (masses[0] or 1.0))


def parts(robot):
    """Number of shapes and of fixed links or frames of a robot's own file."""
    description = reread_description(robot)
    if description is None:
        return 0, 0
    shapes = sum(len(link.drawings()) for link in description.links)
    fixed = sum(not link.joints and link.parent is not None for link in description.links)
    return shapes, fixed + len(description.frames)


def convert(robot, path, seed):
    """What became of a robot in a new file, and the robot of that file."""
    try:
        written = feasid.write(robot.with_values(np.nan_to_num(robot.values)), path)
        read = feasid.load_robot(path, sidecar=False)
    except feasid.errors.FeasidError as error:
        return "refused", str(error), None
    terms = any(not name.endswith("gravity") for name in written.lost)
    if difference(robot, read, seed) > ROUNDING and not terms:
        return "differs", path.name, read
    return "equal but for listed terms" if terms else "equal", written.left_out, read


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--robots", type=int, default=60)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    results, reasons = collections.defaultdict(collections.Counter), collections.Counter()
    shapes = collections.defaultdict(lambda: np.zeros(4, dtype=int))
    for number, source in enumerate(published(given.robots)):
        with tempfile.TemporaryDirectory() as folder:
            try:
                robot = feasid.load_robot(source)
            except feasid.errors.FeasidError as error:
                reasons[str(error).split(": ")[-1][:80]] += 1
                continue
            origins = {"URDF": robot}
            for a, suffix in SUFFIXES.items():
                if a != "URDF":
                    _, _, read = convert(robot, Path(folder) / f"{a}{suffix}", number)
                    if read is not None:
                        origins[a] = read
            for a, origin in origins.items():
                for b, suffix in SUFFIXES.items():
                    path = Path(folder) / f"{a}_{b}{suffix}"
                    outcome, words, read = convert(origin, path, number)
                    results[a, b][outcome] += 1
                    if read is None or outcome == "differs":
                        print(f"{Path(source).stem}: {a} to {b}: {outcome}: {words[:160]}")
                    else:
                        shapes[a, b] += [*parts(origin), *parts(read)]
    lines = ["| from | to | equal | listed terms | refused | differs | shapes | fixed links |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for (a, b), counts in results.items():
        before, fixed, after, held = shapes[a, b]
        numbers = [counts[k] for k in ("equal", "equal but for listed terms", "refused", "differs")]
        kept = f"{after} of {before} | {held} of {fixed}"
        lines.append(f"| {a} | {b} | {' | '.join(map(str, numbers))} | {kept} |")
    print("\n".join(lines))
    if given.write:
        text, (start, end) = PAGE.read_text(encoding="utf-8"), MARKS
        table = "\n".join([start, *lines, end])
        PAGE.write_text(re.sub(f"{start}.*?{end}", table, text, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
