"""Pages in a real browser, at a desk's and a phone's width, in light and in dark.

Needs Chromium on the path and the extra "browser"; without them these are skipped. The site is
looked at when it was built: ``sphinx-build -W docs docs/_build/html``.
"""

import re
import shutil
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from logs import arm_parameters, simulate
from robots import ARM

import feasid
from feasid.cli import main

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path"),
]

HOSTILE = "&lt;script&gt;alert(1)&lt;/script&gt;"

SCREENS = {"desk": (1280, 900, "light"), "phone": (390, 844, "dark")}

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"

VISITED = [
    f"{name}.html"
    for name in (
        *("index", "start", "tutorials/first_fit", "howto", "concepts/consistency", "equations"),
        *("reference/index", "reference/fit", "choose", "comparison", "gallery", "cheatsheet"),
    )
]


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """A report, that of a saved fit, two fits side by side and a check, of hostile names."""
    folder = tmp_path_factory.mktemp("browser")
    (folder / "arm.urdf").write_text(
        ARM.replace('"upper"', f'"{HOSTILE}"').replace('"slide"', f'"{HOSTILE}"')
    )
    robot = feasid.load_robot(folder / "arm.urdf")
    terms = robot.with_joint_terms()
    log, test = (simulate(terms, arm_parameters(terms), s, noise=0.05) for s in (1, 2))
    fit = feasid.fit(log, robot)
    fit.report(folder / "report.html", test=test)
    fit.save(folder / "arm.feasid")
    model = str(folder / "arm.feasid")
    assert main(["report", model, "--out", str(folder / "saved.html")]) == 0
    assert main(["report", model, model, "--out", str(folder / "two.html")]) == 0
    bad = folder / "bad.urdf"
    bad.write_text(
        (folder / "arm.urdf").read_text().replace('mass value="1.25"', 'mass value="-1"')
    )
    assert main(["check", str(bad), "--report", str(folder / "check.html")]) == 1
    return folder


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as p:
        found = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


class Visit:
    """A page that was opened, and what it did meanwhile."""

    def __init__(self, browser, screen):
        wide, high, scheme = SCREENS[screen]
        self.context = browser.new_context(
            viewport={"width": wide, "height": high}, color_scheme=scheme
        )
        self.page = self.context.new_page()
        self.said, self.asked, self.dialogs = [], [], []
        self.page.on("console", lambda m: self.said.append(f"{m.type}: {m.text}"))
        self.page.on("pageerror", lambda e: self.said.append(str(e)))
        self.page.on("request", lambda r: self.asked.append(r.url))
        self.page.on("dialog", lambda d: (self.dialogs.append(d.message), d.dismiss()))

    def open(self, address):
        self.page.goto(address)
        return self.page

    def left(self, home):
        """Requests that went elsewhere."""
        return [url for url in self.asked if not url.startswith((home, "data:"))]


def wrong(page):
    """What axe-core finds: contrast, names, alternative texts, structure."""
    found = axe.Axe().run(page).response
    assert len(found["passes"]) > 10
    return [
        (v["id"], v["nodes"][0]["html"][:200], v["nodes"][0].get("failureSummary"))
        for v in found["violations"]
    ]


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("name", ["report", "saved", "two", "check"])
def test_reports_are_quiet_reachable_and_fit_the_screen(reports, browser, name, screen):
    visit = Visit(browser, screen)
    address = f"file://{reports}/{name}.html"
    page = visit.open(address)
    for summary in page.locator("summary").all():
        summary.click()
    assert visit.said == []
    assert visit.left(address) == []
    assert visit.dialogs == []
    assert page.locator("script").count() == 1
    assert "<script>alert(1)</script>" in page.locator("main").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= SCREENS[screen][0]
    assert wrong(page) == []
    visit.context.close()


def test_tables_sort(reports, browser):
    visit = Visit(browser, "desk")
    page = visit.open(f"file://{reports}/report.html")
    table = page.locator("table.sortable").first
    head = table.locator("th", has_text="fitted")
    column = 3

    def values():
        cells = table.locator("tbody tr").all()
        return [float(row.locator("td").nth(column).inner_text().rstrip(" %")) for row in cells]

    before = values()
    head.locator("button").click()
    assert values() == sorted(before)
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").click()
    assert values() == sorted(before, reverse=True)
    table.locator("th button").first.press("Enter")
    names = [row.locator("td").first.inner_text() for row in table.locator("tbody tr").all()]
    assert names == sorted(names, key=str.lower)
    visit.context.close()


def test_curves_zoom_by_mouse_and_by_keys(reports, browser):
    visit = Visit(browser, "desk")
    page = visit.open(f"file://{reports}/report.html")
    svg, left = page.locator(".curve svg").first, page.locator(".curve .left").first
    whole = svg.get_attribute("viewBox")
    svg.scroll_into_view_if_needed()
    box = svg.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.25 * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.75 * box["width"], y)
    page.mouse.up()
    start, _, width, _ = map(float, svg.get_attribute("viewBox").split())
    assert start == pytest.approx(250, abs=2)
    assert width == pytest.approx(500, abs=4)
    assert float(left.inner_text().split()[0]) == pytest.approx(2.5, abs=0.1)
    svg.press("+")
    assert float(svg.get_attribute("viewBox").split()[2]) == pytest.approx(width / 2, abs=1)
    svg.press("0")
    assert svg.get_attribute("viewBox") == whole
    visit.context.close()


def test_robots_turn_by_mouse_and_by_keys(reports, browser):
    visit = Visit(browser, "desk")
    page = visit.open(f"file://{reports}/report.html")
    robot = page.locator(".robot").nth(1)

    def places():
        shapes = page.locator(".robot").nth(0).locator("ellipse").all()
        return {s.locator("title").text_content(): numbers(s) for s in shapes}

    def numbers(shape):
        names = ("rx", "ry", "transform")
        return [
            float(x)
            for n in names
            for x in re.findall(r"-?\d[\d.]*(?:e-?\d+)?", shape.get_attribute(n))
        ]

    written = places()
    robot.scroll_into_view_if_needed()
    box = robot.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 80, y - 30)
    page.mouse.up()
    turned = places()
    page.mouse.move(x, y)
    assert places() == turned != written
    robot.press("ArrowLeft")
    assert places() != turned
    robot.press("+")
    robot.press("0")
    back = places()  # as the page was written, without the script
    assert written.keys() == back.keys()
    for name, shape in written.items():
        np.testing.assert_allclose(back[name][:4], shape[:4], atol=0.03)
    visit.context.close()


def test_a_page_runs_no_script_but_its_own(reports, browser, tmp_path):
    """Were a name not escaped, the browser would still refuse to run it."""
    text = (reports / "report.html").read_text()
    broken = text.replace("<h1>", "<h1><script>document.title = 'run'</script><img src=x onerror="
                          "\"document.title = 'run'\">", 1)  # fmt: skip
    (tmp_path / "broken.html").write_text(broken)
    visit = Visit(browser, "desk")
    page = visit.open(f"file://{tmp_path}/broken.html")
    assert page.title() != "run"
    assert any("Content Security Policy" in said for said in visit.said)
    visit.context.close()


@pytest.fixture(scope="module")
def site():
    """The documentation behind a server of its own, for pages that load their scripts."""
    if not (SITE / "index.html").exists():
        pytest.skip("the site is not built: sphinx-build -W docs docs/_build/html")
    handler = partial(Quiet, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("path", VISITED)
def test_the_site_is_quiet_and_reachable(site, browser, path, screen):
    visit = Visit(browser, screen)
    page = visit.open(f"{site}/{path}")
    page.wait_for_load_state("networkidle")
    assert [said for said in visit.said if said.startswith("error")] == []
    assert visit.left(site) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= SCREENS[screen][0]
    assert wrong(page) == []
    visit.context.close()


def test_no_page_shows_markup(site):
    pages = {p: p.read_text() for p in SITE.rglob("*.html")}
    assert len(pages) > 100
    for sign in (":any:", ":func:", "{code-cell}", "{doc}`"):
        assert [str(p) for p, text in pages.items() if sign in text] == []
