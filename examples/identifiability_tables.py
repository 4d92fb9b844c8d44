"""Which inertial parameters can be identified: three published tables, recomputed.

Tables 2, 4 and 5 of P. M. Wensing, G. Niemeyer and J.-J. E. Slotine, "A geometric
characterization of observability in inertial parameter identification", IJRR 2024: the PUMA 560,
a SCARA and a leg of the MIT Cheetah 3, on the ground and below a floating torso.

    pip install feasid                       # nothing else is needed
    python examples/identifiability_tables.py

With a free torso the table counts the leg's own share, so its ten parameters are left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import feasid
from feasid.parameters.identifiability.views import span_dimensions, symbol_rows

ROWS = ("m", "lx", "ly", "lz", "Lxx", "Lyy", "Lzz", "Lyz", "Lxz", "Lxy", "rotor_Lzz")
"""Rows of the published tables: m, m c, I and the rotor's inertia I_m."""

SLIDE = np.array([0.0, 0, 0, 0, 0, 1])
TURN = np.array([0.0, 0, 1, 0, 0, 0])

IDENTITY = np.eye(3)
UP = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])  # parent's z is the child's -y
DOWN = UP.T


class Table(NamedTuple):
    """One table, or one half of one: marks per row and body, and dimension rows."""

    title: str
    counts: str
    marks: tuple[str, ...]
    velocities: str
    parameters: str
    transfers: str


PUBLISHED = (
    Table(
        "Table 2, PUMA 560",
        "36/40",
        (
            "✕✕○○○○",
            "✕●●★★★",
            "✕★●●●★",
            "✕✕○○○○",
            "✕●●●●●",
            "✕○○○○○",
            "●●●●●★",
            "✕★★★★★",
            "✕●★★★★",
            "✕★●★★★",
            "○○★★★★",
        ),
        "1 (2), 3 (5), 6, 6, 6, 6",
        "1, 6 (8), 10, 10, 10, 10",
        "9, 3, 3, 3, 3, 3",
    ),
    Table(
        "Table 4, SCARA",
        "8/11",
        ("✕○●○", "✕●○★", "✕●○★", "✕✕✕✕", "✕✕✕✕", "✕✕✕✕", "●●○★", "✕✕✕✕", "✕✕✕✕", "✕✕✕✕", "○★★★"),
        "1 (2), 3 (4), 4, 4",
        "1, 4, 4, 4",
        "9, 7, 9, 7",
    ),
    Table(
        "Table 5, Cheetah 3 leg, fixed torso",
        "17/18",
        ("✕○○", "★●★", "●★★", "✕○○", "✕●●", "✕○○", "●●★", "✕★★", "✕●★", "✕★★", "○○★"),
        "1 (3), 3 (6), 6",
        "1 (3), 6 (9), 10",
        "7, 3, 3",
    ),
    Table(
        "Table 5, Cheetah 3 leg, free torso",
        "21/24",
        ("○○○", "★●★", "●★★", "○○○", "●●●", "○○○", "●●★", "★★★", "★★★", "★★★", "★★★"),
        "6, 6, 6",
        "10, 10, 10",
        "3, 3, 3",
    ),
)

MISPRINTS = {("Table 5, Cheetah 3 leg, free torso", "Lxz", 1): "●"}
"""Lxz of the free leg's second body is a combination: Lxz2 - l1 lz3 leads, as when fixed."""


class Link(NamedTuple):
    """Home pose of a joint in its parent, its screw, and where its rotor sits in the parent."""

    rotation: np.ndarray
    position: tuple[float, float, float]
    screw: np.ndarray = TURN
    rotor: tuple[float, float, float] | None = None


PUMA = (
    Link(IDENTITY, (0, 0, 0)),
    Link(UP, (0, 0, 0)),
    Link(IDENTITY, (0.2, 0, 0.4)),
    Link(UP, (0.153, 0.839, 0)),
    Link(DOWN, (0, 0, 0)),
    Link(UP, (0, 0, 0)),
)
SCARA = (
    Link(IDENTITY, (0, 0, 0)),
    Link(IDENTITY, (0.1, 0, 0)),
    Link(IDENTITY, (0.2, 0, 0), SLIDE),
    Link(IDENTITY, (0, 0, 0)),
)
LEG = (
    Link(IDENTITY, (0, 0, 0)),
    Link(DOWN, (0, -0.044, 0)),
    Link(IDENTITY, (0.342, 0, 0), rotor=(0, 0, 0)),  # the knee is driven from the hip
)


def chain(
    links: tuple[Link, ...],
    gear: float | None,
    gravity: tuple[float, float, float],
    torso: bool = False,
) -> feasid.Robot:
    """A chain of links, each with a rotor about the joint's own axis if `gear` is given."""
    bodies = [feasid.Body("torso", None, motion=np.eye(6))] if torso else []
    for k, link in enumerate(links):
        parent = str(k) if k else ("torso" if torso else None)
        rotor = None
        if gear is not None:
            rotor = feasid.Rotor(gear, link.rotation, link.rotor or link.position)
        bodies.append(
            feasid.Body(str(k + 1), parent, link.rotation, link.position, link.screw, rotor=rotor)
        )
    return feasid.Robot(bodies, gravity)


ROBOTS = (
    (PUMA, 5.0, (0, 0, -9.81), False),
    (SCARA, 5.0, (0, 0, -9.81), False),
    (LEG, 10.0, (9.81, 0, 0), False),
    (LEG, 10.0, (9.81, 0, 0), True),
)


def recomputed(which: int) -> Table:
    """The same table by `feasid.base_parameters`."""
    links, gear, gravity, torso = ROBOTS[which]
    plain = feasid.base_parameters(chain(links, None, gravity, torso), order="paper")
    geared = feasid.base_parameters(chain(links, gear, gravity, torso), order="paper")
    still = feasid.base_parameters(chain(links, None, (0, 0, 0), torso))
    first = int(torso)
    marks = symbol_rows(plain) | {"rotor_Lzz": symbol_rows(geared)["rotor_Lzz"]}
    here, there = span_dimensions(plain), span_dimensions(still)

    def row(a: tuple[int, ...], b: tuple[int, ...]) -> str:
        pairs = zip(a[first:], b[first:], strict=True)
        return ", ".join(str(x) if x == y else f"{y} ({x})" for x, y in pairs)

    return Table(
        PUBLISHED[which].title,
        f"{plain.size - 10 * first}/{geared.size - 10 * first}",
        tuple("".join(marks[symbol][first:]) for symbol in ROWS),
        row(here.motion, there.motion),
        row(here.parameters, there.parameters),
        row(here.transfers, here.transfers),
    )


def compare() -> list[tuple[Table, Table]]:
    """Pairs of (ours, published)."""
    return [(recomputed(k), published) for k, published in enumerate(PUBLISHED)]


def show(ours: Table, published: Table) -> None:
    """Print one table beside the published one."""
    width = max(len(ours.velocities), len(ours.parameters), 12) + 4
    print(f"{ours.title}: {ours.counts} base parameters without/with rotors")
    print(f"{'':10}{'feasid':{width}}published")
    for symbol, mine, theirs in zip(ROWS, ours.marks, published.marks, strict=True):
        note = "" if mine == theirs else "   <- misprint in the table"
        print(f"{symbol:10}{' '.join(mine):{width}}{' '.join(theirs)}{note}")
    for label, mine, theirs in zip(
        ("dim V", "dim K", "dim T"), ours[3:], published[3:], strict=True
    ):
        print(f"{label:10}{mine:{width}}{theirs}")
    print()


def main() -> None:
    """Print all tables."""
    for ours, published in compare():
        show(ours, published)
    print("★ alone   ● in combination, leads   ○ in combination   ✕ not at all")
    print("dimensions in parentheses: with gravity")


if __name__ == "__main__":
    main()
