"""Make pictures of the documentation: ``python docs/pictures/make.py [NAME ...]``.

"report": a fit of the packaged log, its report photographed in headless Chromium; needs the
extra "browser". "check": the page of the packaged description, likewise. "wam": the animation of
the landing page; "preview": what a link to the site shows. "loads": loads of arms in MuJoCo as they
are found, beside the true ones. "leader": the leader arm of docs/codegen.md without a hand, with
the description's weight and with the fit's.
The others are figures of the concept pages, see concepts.py.
"""

import contextlib
import io
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import animation
import matplotlib.pyplot as plt
import numpy as np
from concepts import FIGURES, draw
from PIL import Image
from playwright.sync_api import sync_playwright

import feasid

sys.path[:0] = [str(Path(__file__).parents[2] / "tests"), str(Path(__file__).parents[1])]

HERE = Path(__file__).parent

COLOURS, WIDEST = 64, 1280
"""Of a picture, so that it takes some tens of kilobytes."""

SCREENS = {"report": (1280, 800, "light"), "phone": (390, 844, "dark")}


def keep(name: str, png: bytes) -> None:
    """Write a picture with few colours."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    image.thumbnail((WIDEST, 10 * WIDEST))
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(HERE / f"{name}.png", optimize=True)


def report() -> None:
    """Fit, write the report, photograph."""
    log = feasid.datasets.load("kinova_gen3")
    train, test = log[log["run"] != "run_3"], log[log["run"] == "run_3"]
    fit = feasid.fit(train)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as p:
        fit.report(Path(folder) / "report.html", test=test)
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (wide, high, scheme) in SCREENS.items():
            page = browser.new_page(viewport={"width": wide, "height": high}, color_scheme=scheme)
            page.goto(f"file://{folder}/report.html")
            keep(name, page.screenshot())
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(f"file://{folder}/report.html")
        keep("robots", page.locator(".robots").screenshot())
        browser.close()


def check() -> None:
    """Check the Kinova's description, and photograph the page."""
    from feasid.cli import main

    model = Path(feasid.__file__).parent / "datasets/kinova_gen3/gen3.urdf"
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), sync_playwright() as p:
        shutil.copy(model, "gen3.urdf")
        main(["check", "gen3.urdf", "--report", "check.html"])
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.goto(f"file://{folder}/check.html")
        keep("check", page.screenshot())
        browser.close()


def preview() -> None:
    """What a link to the site shows: the animation as it stands still, next to the name."""
    moving = (HERE.parent / "figures/wam.svg").read_text(encoding="utf-8")
    text = "Your robot's dynamics from a log: physically consistent, certified."
    page_text = f"""<body style="margin:0;width:1200px;height:630px;background:#fff;display:flex;
      align-items:center;font-family:system-ui,sans-serif"><div style="width:400px;padding:40px">
      <b style="font-size:76px;color:#33608f">feasid</b><p style="font-size:34px">{text}</p></div>
      <div style="width:720px">{moving}</div></body>"""
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        size = {"width": 1200, "height": 630}
        page = browser.new_page(viewport=size, color_scheme="light", reduced_motion="reduce")
        page.set_content(page_text)
        image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        image.quantize(COLOURS).save(HERE.parent / "_static/preview.png", optimize=True)
        browser.close()


def loads() -> None:
    """Masses with 95 % intervals and centres of loads, found from logs with and without them."""
    from loads.test_payload import arm, load_logs

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for k, (name, masses) in enumerate({"ur5": (0.5, 1, 2, 4), "panda": (0.3, 0.6, 1, 2)}.items()):
        for seed, mass in enumerate(masses):
            centre = np.random.default_rng([seed, k]).uniform(
                (-0.05, -0.05, 0.03), (0.05, 0.05, 0.1)
            )
            without, loaded = load_logs(name, mass, tuple(centre), seed)
            found = feasid.payload(loaded, without, arm(name))
            width = 196 * found.mass_std / mass
            left.errorbar(mass, 100 * (found.mass / mass - 1), width, fmt="o", color=f"C{k}")
            (true,) = right.plot(*1e3 * centre[[0, 2]], "x", color=f"C{k}", ms=9)
            (seen,) = right.plot(*1e3 * found.centre[[0, 2]], "o", color=f"C{k}", mfc="none")
        left.plot([], [], "o", color=f"C{k}", label=name)
    left.axhline(0, color="gray", lw=0.8)
    left.set(xlabel="mass of the load [kg]", ylabel="error with 95 % interval [%]", xscale="log")
    left.set_xticks([0.3, 0.5, 1, 2, 4], ["0.3", "0.5", "1", "2", "4"])
    left.minorticks_off()
    left.legend()
    right.legend([true, seen], ["true", "identified"])
    right.set(xlabel="centre of mass, x in the flange [mm]", ylabel="z [mm]")
    figure.savefig(HERE / "loads.png", dpi=90)


def leader() -> None:
    """The leader arm of docs/codegen.md without a hand, by the description's weight and the fit's.

    The page's own example is run up to the moment when the arm is left alone.
    """
    import mujoco

    from feasid.datasets import arm

    page = (HERE.parent / "codegen.md").read_text()
    section = page.split("## Gravity compensation of a leader arm")[1]
    code = section.split("```python\n")[1].split("mujoco.mj_resetData")[0]
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        arm.write_files()
        exec(code, names)
        described = feasid.load_robot("arm.urdf")
    real, fit = names["real"], names["fit"]
    figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
    start = np.array([0.5, 0.1, 0.3])
    for known, label in (
        (described, "gravity torques of the description"),
        (fit.robot, "gravity torques of the fit"),
    ):
        data, drift, model = mujoco.MjData(real), [], feasid.CompiledDynamics(known)
        data.qpos[:] = start
        for _ in range(1000):
            data.qfrc_applied[:] = model.gravity(data.qpos)
            mujoco.mj_step(real, data)
            drift.append(np.degrees(np.abs(data.qpos - start).max()))
        axes.plot(real.opt.timestep * np.arange(len(drift)), drift, label=label)
    axes.set(xlabel="time without a hand [s]", ylabel="largest drift of a joint [degrees]")
    axes.legend()
    figure.savefig(HERE / "leader.png", dpi=90)


MAKERS = {"report": report, "check": check, "loads": loads, "leader": leader}
MAKERS |= {"wam": animation.make, "preview": preview}
MAKERS |= {name: partial(draw, name) for name in FIGURES}

if __name__ == "__main__":
    for name in sys.argv[1:] or MAKERS:
        MAKERS[name]()
