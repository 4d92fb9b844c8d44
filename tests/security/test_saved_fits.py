"""What a saved fit may not have opened, whoever saved it."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from logs import arm_and_log

import feasid
from feasid.core.errors import SecurityError
from feasid.robot.description import Source

pytest.importorskip("mujoco")

USES = """
import faulthandler, json, sys
faulthandler.dump_traceback_later(100, exit=True)
from contextlib import suppress
import feasid
import mujoco, pinocchio, matplotlib, jinja2
saved, log, out, secret = sys.argv[1:]
opened = []
def watch(event, arguments):
    if event in ("open", "os.listdir", "os.scandir") and str(arguments[0]).startswith(secret):
        opened.append(str(arguments[0]))
sys.addaudithook(watch)
fit = feasid.load(saved)
uses = [
    lambda: repr(fit), lambda: str(fit.summary()), lambda: fit.errors(log),
    lambda: fit.predict(log), lambda: fit.write(out + "/a.xml"),
    lambda: fit.write(out + "/a.urdf"), lambda: fit.simulate(log),
    lambda: fit.sample(2).write(out),
    lambda: feasid.check(fit.robot),
    lambda: feasid.load_robot(out + "/a.xml"),
]
done = 0
for use in uses:
    with suppress(feasid.FeasidError):
        use()
        done += 1
print(json.dumps([opened, done]))
"""


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    arm_and_log(folder, 2000, 0.02)
    feasid.fit(folder / "log.csv", folder / "arm.urdf", diagnose=False).write(folder / "arm.xml")
    return folder, feasid.fit(folder / "log.csv", folder / "arm.xml", diagnose=False)


def kept(fit, path, text, reading):
    """The fit saved as by somebody who wants these files to be opened."""
    source = Source(str(path), "mjcf", text, reading=reading)
    return replace(fit, description=replace(fit.description, source=source))


@pytest.mark.parametrize("kind", ["include", "mesh", "fifo"])
def test_a_saved_fit_opens_nothing_that_it_names(case, tmp_path, kind):
    folder, fit = case
    secret = tmp_path / "secret"
    file = secret / ("more.xml" if kind == "include" else "mesh.stl")
    asset = f'<asset><mesh name="m" file="{file}"/></asset>'
    named = '<include file="more.xml"/>' if kind == "include" else asset
    text = (
        (folder / "arm.xml").read_bytes().replace(b"<worldbody>", named.encode() + b"<worldbody>")
    )
    reading = {"use_mujoco": True, "lock": {}, "floating": None, "gravity": None, "ignore": ()}
    evil = kept(fit, secret / "arm.xml", text, reading)
    evil.save(tmp_path / "evil.feasid")
    secret.mkdir()
    if kind == "fifo":
        os.mkfifo(file)
    else:
        file.write_text("<mujoco/>" if kind == "include" else "solid")
    (tmp_path / "out").mkdir()
    arguments = [tmp_path / "evil.feasid", folder / "log.csv", tmp_path / "out", secret]
    command = [sys.executable, "-c", USES, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr[-3000:]
    opened, count = json.loads(done.stdout)
    assert opened == []
    assert count >= 5


def test_what_a_description_includes_is_kept(case, tmp_path):
    folder, _ = case
    text = (folder / "arm.xml").read_text()
    start, end = text.index("<worldbody>"), text.index("</worldbody>") + len("</worldbody>")
    (tmp_path / "main.xml").write_text(f'{text[:start]}<include file="more.xml"/>{text[end:]}')
    (tmp_path / "more.xml").write_text(
        f"<?xml version='1.0'?><mujoco>{text[start:end]}"
        "<include file='empty.xml'></include></mujoco>"
    )
    (tmp_path / "empty.xml").write_text("<mujocoinclude/>")
    whole = feasid.fit(folder / "log.csv", tmp_path / "main.xml", diagnose=False)
    whole.save(tmp_path / "fit.feasid")
    for name in ("main.xml", "more.xml", "empty.xml"):
        (tmp_path / name).unlink()
    model = feasid.load(tmp_path / "fit.feasid")
    model.write(tmp_path / "written.xml")
    assert "<include" not in (tmp_path / "written.xml").read_text()
    written = feasid.load_robot(tmp_path / "written.xml")
    masses = {b.name: b.inertial[9] for b in written.bodies}
    assert masses == pytest.approx({b.name: b.inertial[9] for b in model.robot.bodies})


def test_text_cannot_have_mujoco_open_files(case, tmp_path):
    folder, _ = case
    asset = f'<asset><mesh name="m" file="{tmp_path}/mesh.stl"/></asset><worldbody>'
    text = (folder / "arm.xml").read_text().replace("<worldbody>", asset)
    with pytest.raises(SecurityError, match="cannot name files"):
        feasid.load_robot(text, use_mujoco=True)
