"""Make the pictures of the report: ``python docs/pictures/make.py``; needs the extra "browser".

A fit of the packaged Z1 log, its report photographed in headless Chromium.
"""

import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import feasid

HERE = Path(__file__).parent

COLOURS, WIDEST = 64, 1280
"""Of a picture, so that it takes some tens of kilobytes."""

SCREENS = {"report": (1280, 800, "light"), "phone": (390, 844, "dark")}


def keep(name: str, png: bytes) -> None:
    """Write a picture with few colours."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    image.thumbnail((WIDEST, 10 * WIDEST))
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(HERE / f"{name}.png", optimize=True)


def main() -> None:
    """Fit, write the report, photograph."""
    log = feasid.datasets.load("unitree_z1")
    train, test = log[log["t"] % 4 < 2], log[log["t"] % 4 >= 2]
    robot = log.attrs["robot"]
    fit = feasid.fit(train, robot, **feasid.diagnose(train, robot).options)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as p:
        fit.report(Path(folder) / "report.html", test=test)
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (wide, high, scheme) in SCREENS.items():
            page = browser.new_page(viewport={"width": wide, "height": high}, color_scheme=scheme)
            page.goto(f"file://{folder}/report.html")
            keep(name, page.screenshot())
        browser.close()


if __name__ == "__main__":
    main()
