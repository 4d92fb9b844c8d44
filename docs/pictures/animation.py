"""The animation of the landing page: a WAM under computed torque, with two models of one log.

The experiment is that of examples/wam_control.py; what is shown are the simulated positions. It is
an SVG that moves by itself, in real time, and stands still for readers who want that.
"""

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "examples"))

SECONDS, FRAMES = 8.0, 100
STILL = 7.7  #: Time that is shown where nothing moves [s].
WIDE, HIGH = 760, 470
SHOULDER, METRE = 240, 230  #: Height of the shoulder, and one metre, in units of the picture.

AZIMUTH, ELEVATION = -0.6, 0.25  #: Direction from which the arms are seen [rad].

STYLE = """
svg { font: 15px system-ui, sans-serif; --ink: #1b1b1b; --soft: #666; --line: #bbb;
  --bad: #cc3311; --good: #33608f; --paper: #fff; }
.paper { fill: var(--paper); }
text { fill: var(--ink); } .soft { fill: var(--soft); font-size: 13px; }
.head { font-weight: 600; font-size: 17px; }
polyline, path, line { fill: none; stroke-linecap: round; stroke-linejoin: round; }
.wanted { stroke: var(--line); stroke-width: 15; } .foot { fill: var(--line); }
.arm { stroke-width: 7; } .curve { stroke-width: 2; } .axis { stroke: var(--line); }
.now { stroke: var(--soft); stroke-dasharray: 3 3; }
.bad { stroke: var(--bad); } .good { stroke: var(--good); }
text.bad { stroke: none; fill: var(--bad); } text.good { stroke: none; fill: var(--good); }
.still { display: none; }
@media (prefers-color-scheme: dark) { svg { --ink: #e8e8e8; --soft: #b4b4b4; --line: #666;
  --bad: #ff8a65; --good: #7fb0e6; --paper: #16181b; } }
@media (prefers-reduced-motion: reduce) { .moving { display: none; } .still { display: inline; } }
"""

SAID = (
    "A WAM arm under computed-torque control: with the least-squares model it loses control, "
    "with the feasible model of the same log it follows."
)


def runs():
    """The robot, the wanted motion, and the log of each model that controls the arm."""
    import wam_control as wam

    import feasid
    from feasid.datasets import wam as tables

    base = feasid.base_parameters(tables.robot())
    model, delta = wam.plant(base)
    log, _ = wam.drive(model, base, delta, wam.cad(base), wam.published(), wam.SAMPLES)
    found = wam.estimates(base, wam.reduced_log(log, base))
    motion = wam.validation(base)["A"]
    count = int(SECONDS * wam.RATE)
    done = {
        name: wam.drive(model, base, delta, found[label], motion, count)[0]
        for name, label in (("bad", "OLS"), ("good", "FBPE-OLS extra"))
    }
    return base.robot, motion, done


def corners(robot, q):
    """Places of the joints on paper, in units of the picture, shape (joints + 1, 2)."""
    frames = robot.pose(dict(zip(robot.joints, map(float, q), strict=True)))
    points = np.array([np.zeros(3), *(frames[body.name][1] for body in robot.bodies)])
    s, c = np.sin(AZIMUTH), np.cos(AZIMUTH)
    t, d = np.sin(ELEVATION), np.cos(ELEVATION)
    flat = points @ np.array([[-s, c, 0], [-t * c, -t * s, d]]).T
    return np.array([WIDE / 4, SHOULDER]) + METRE * flat * [1, -1]


def as_points(places):
    """Coordinates of a polyline."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def animate(name, values, extra=""):
    """An attribute that takes these values, one after the other."""
    return (
        f'<animate attributeName="{name}" dur="{SECONDS:g}s" repeatCount="indefinite" '
        f'values="{";".join(values)}"{extra}/>'
    )


def moving_line(kind, frames):
    """A line that moves, and the same where nothing moves."""
    still = frames[int(STILL / SECONDS * FRAMES)]
    return (
        f'<polyline class="{kind} moving" points="{frames[0]}">{animate("points", frames)}'
        f'</polyline><polyline class="{kind} still" points="{still}"/>'
    )


def write(text, x, y, kind="soft", anchor="middle", more=""):
    """A text of the picture."""
    place = f'x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"{more}'
    return f'<text class="{kind}" {place}>{text}</text>'


def arm(robot, wanted, log, times, name, title):
    """One arm: where it should be, where it is, and what becomes of it."""
    t, q = log["t"].to_numpy(), log.filter(regex="^q_").to_numpy()
    rows = np.minimum(np.searchsorted(t, times), len(t) - 1)
    middle = WIDE / 4
    yield f'<circle class="foot" cx="{middle}" cy="{SHOULDER}" r="13"/>'
    yield moving_line("wanted", [as_points(corners(robot, x)) for x in wanted(times)])
    yield moving_line(f"arm {name}", [as_points(corners(robot, x)) for x in q[rows]])
    yield write(title, middle, 26, f"head {name}")
    if t[-1] > SECONDS - 0.01:
        rms = np.degrees(np.sqrt(np.mean((q - wanted(t)) ** 2)))
        yield write(f"follows the grey arm within {rms:.1f}\u00b0 (rms)", middle, 50)
        return
    text = f"lost control after {t[-1]:.1f} s"
    appears = f' calcMode="discrete" keyTimes="0;{t[-1] / SECONDS:.3f}"'
    moved = text + animate("opacity", ["0", "1"], appears)
    yield write(moved, middle, 50, f"head {name} moving", more=' opacity="0"')
    yield write(text, middle, 50, f"head {name} still")


def curves(wanted, done):
    """The largest joint error over time, on a logarithmic axis, and a cursor."""
    left, right, top, bottom = 60, WIDE - 20, HIGH - 110, HIGH - 28
    low, high = 0.05, 400.0

    def down(degrees):
        share = np.log(np.clip(degrees, low, high) / low) / np.log(high / low)
        return bottom - (bottom - top) * share

    for degrees in (0.1, 1, 10, 100):
        y = down(degrees)
        yield f'<line class="axis" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield write(f"{degrees:g}\u00b0", left - 6, y + 4, anchor="end")
    for name, log in done.items():
        t, q = log["t"].to_numpy()[::20], log.filter(regex="^q_").to_numpy()[::20]
        away = np.degrees(np.abs(q - wanted(t)).max(axis=1))
        places = np.column_stack([left + (right - left) * t / SECONDS, down(away)])
        yield f'<polyline class="curve {name}" points="{as_points(places)}"/>'
    cursor = "".join(animate(side, [f"{left}", f"{right}"]) for side in ("x1", "x2"))
    yield f'<line class="now moving" y1="{top}" y2="{bottom}">{cursor}</line>'
    yield write("largest joint error", left, top - 8, anchor="start")
    yield write(f"{SECONDS:g} s", right, HIGH - 8, anchor="end")


def draw():
    """The picture's text."""
    robot, motion, done = runs()
    times = np.linspace(0, SECONDS, FRAMES + 1)
    titles = {"bad": "least squares", "good": "feasid: physically consistent"}

    def wanted(t):
        return motion.at(t)[0]

    # Its own ground: pages and readers may prefer different schemes.
    ground = f'<rect class="paper" width="{WIDE}" height="{HIGH}" rx="8"/>'
    parts = [ground, *curves(wanted, done)]
    for k, (name, title) in enumerate(titles.items()):
        drawn = "".join(arm(robot, wanted, done[name], times, name, title))
        parts.append(f'<g transform="translate({k * WIDE // 2} 0)">{drawn}</g>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" role="img" '
        f'aria-label="{SAID}"><title>{SAID}</title><style>{STYLE}</style>{"".join(parts)}</svg>\n'
    )


def make():
    """Write the animation."""
    path = ROOT / "docs" / "figures" / "wam.svg"
    path.write_text(draw(), encoding="utf-8")
