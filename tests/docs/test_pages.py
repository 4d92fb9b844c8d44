"""README and docs are code: every snippet runs, every command succeeds."""

import re
import shlex
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from floating import loaded, smooth_log
from logs import arm_parameters, simulate
from mjcf_files import TREE
from robots import ARM

import feasid
from feasid.cli import COMMANDS, main
from feasid.robot import inertia

ROOT = Path(__file__).parents[2]
PAGES = sorted(p for p in (ROOT / "docs").glob("*.md") if p.stem != "extending")
PAGES.insert(0, ROOT / "README.md")
"""All but the page that tests/docs/test_extending.py follows in a copy of the package."""

ANSWERED = (0, 1, 3)  # found nothing, found something, undecided; 2 is an error


def blocks(page):
    """Fenced Python and indented blocks of a page, as text."""
    text = page.read_text()
    for kind, body in re.findall(r"^```(\S*)\n(.*?)^```", text, re.M | re.S):
        if kind == "python":
            yield body
    outside = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for body in re.findall(r"(?:^ {4}.*\n(?:^\n(?=^ {4}))?)+", outside, re.M):
        yield re.sub("^ {4}", "", body, flags=re.M)


SLOW = ("README-1", "certificates-1", "excitation-0", "excitation-1", "logs-1")
"""Snippets that design motions or fit several logs."""


def snippets():
    for page in PAGES:
        for number, body in enumerate(blocks(page)):
            commands = [line for line in body.splitlines() if re.match(r"feasid \w", line)]
            code = "\n".join(line for line in body.splitlines() if line not in commands)
            if any(re.match(r"feasid \w+|.*\b(feasid|fit|robot)\.", x) for x in body.splitlines()):
                name = f"{page.stem}-{number}"
                marks = pytest.mark.slow if name in SLOW else ()
                yield pytest.param(code, commands, id=name, marks=marks)


LOAD = inertia.from_mass_com_inertia(0.5, np.array([0.0, 0.0, 0.05]), 1e-3 * np.eye(3))
"""What the arm carries in ``loaded.csv``."""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """The files that pages speak of: a robot, its logs, other robots."""
    folder = tmp_path_factory.mktemp("pages")
    whole = ARM.replace('<link name="wheel"/>', WHEEL)
    whole = whole.replace('<child link="wheel"/>', f'<child link="wheel"/>{LIMIT}')
    whole = whole.replace('type="continuous"', 'type="revolute"')
    for name in ("arm.urdf", "other.urdf", "a.urdf", "b.urdf", "models/c.urdf"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(whole)
    (folder / "scene.xml").write_text(TREE)
    _, path = loaded("solo12")
    (folder / "dog.urdf").write_bytes(path.read_bytes())
    trot = smooth_log()[1].rename(columns=lambda name: name.replace("_foot_", "_FL_"))
    trot.to_csv(folder / "trot.csv", index=False)
    robot = feasid.load_robot(folder / "arm.urdf").with_joint_terms()
    for seed, name in enumerate(("log.csv", "other.csv")):
        log = simulate(robot, arm_parameters(robot), seed, noise=0.02)
        log = log.assign(**{f"cmd_{j}": log[f"q_{j}"] for j in robot.joints})
        log = log.drop(columns=[c for c in log if c.startswith("ddq_")])
        log.to_csv(folder / name, index=False)
    heavy = arm_parameters(robot)
    heavy[robot.inertial_columns[-1]] += LOAD
    simulate(robot, heavy, 2, noise=0.02).to_csv(folder / "loaded.csv", index=False)
    base = feasid.base_parameters(robot)
    beta = base.values(arm_parameters(robot))
    pd.DataFrame({"value": beta}).to_csv(folder / "b.csv", index=False)
    feasid.check(beta, base).certificate.save(folder / "cert.json")
    return folder


LIMIT = '<limit lower="-3" upper="3" velocity="3" effort="5"/>'
WHEEL = """<link name="wheel"><inertial><mass value="0.4"/>
<inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.001"/></inertial></link>"""


@pytest.fixture(scope="module")
def fit(shelf):
    """What snippets call `fit` that do not say how it came about."""
    return feasid.fit(pd.read_csv(shelf / "log.csv"), feasid.load_robot(shelf / "arm.urdf"))


@pytest.fixture
def namespace(shelf, here, monkeypatch):
    """What a reader has at hand when a snippet begins, in a folder of its own."""
    for path in shelf.rglob("*.*"):
        target = here / path.relative_to(shelf)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(path.read_bytes())
    # A reader waits for the best motion of a minute; here any will do.
    monkeypatch.setattr(feasid, "excite", partial(feasid.excite, starts=1, rounds=0))
    robot = feasid.load_robot("arm.urdf")
    log = pd.read_csv("log.csv")
    base = feasid.base_parameters(robot)
    have = {"feasid": feasid, "pd": pd, "np": np, "robot": robot, "log": log, "df": log}
    have |= {"base": base, "inertia": inertia, "other": pd.read_csv("other.csv")}
    have["beta"] = np.asarray(base.K @ robot.values)
    return have


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize(("code", "commands"), list(snippets()))
def test_what_a_page_shows_works(code, commands, namespace, fit, capsys):
    if code.strip():
        if "fit." in code and "fit = " not in code:
            namespace["fit"] = fit
        exec(compile(code, "page", "exec"), namespace)
    for command in commands:
        words = shlex.split(command, comments=True)
        assert main(words[1:]) in ANSWERED, (command, capsys.readouterr().err)


def test_every_command_is_in_the_readme_or_the_docs():
    text = "".join(page.read_text() for page in PAGES)
    assert [c for c in COMMANDS if f"feasid {c}" not in text] == []
