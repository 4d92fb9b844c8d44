"""A row of the array: a fit with these options, of this robot and log, and what is done with it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import feasid
from feasid.core.errors import FeasidError

from .acts import ACTS, reloaded
from .arms import LOGS, ROBOTS, World, world
from .choices import CHOICES, LAST, OF_SENSORS, go_together, group_of, is_taken
from .further import FURTHER
from .judge import assert_refusal, assert_right_or_in_doubt, assert_shown, is_right

BY_LABEL = {choice.label: choice for choice in CHOICES}

APART = {
    ("floating", "tilted"): "the pose of a floating base is what its log says",
    ("mimic", "commands"): "gains are identified of joints that move by themselves",
    ("loop", "commands"): "",
    ("floating", "commands"): "",
    ("elastic", "commands"): "",
    ("passive", "commands"): "",
}
"""Robots and logs that do not go together; that commands are refused is a row of `choices`."""


@dataclass(frozen=True)
class Row:
    """Labels of options, a kind of robot and of log, and an act."""

    labels: tuple[str, ...]
    robot: str
    log: str
    act: str
    saved: bool = False
    """Whether the act is done with the fit after it was saved and read back."""

    def __str__(self):
        return " | ".join((" + ".join(self.labels), self.robot, self.log, self.act))

    @property
    def choices(self):
        return [BY_LABEL[label] for label in self.labels]

    def world(self) -> World:
        """With the logs that go with the options."""
        further = FURTHER.get(self.robot)
        arm = further() if further else world(self.robot, self.log)
        for choice in sorted(self.choices, key=lambda c: LAST.get(c.change, 0)):
            logs = (choice.change(log, arm) for log in (arm.log, arm.test_log, arm.loaded))
            live = choice.change(arm.live, arm) if choice.change in OF_SENSORS else arm.live
            every = dict(zip(("log", "test_log", "loaded"), logs, strict=True))
            arm = replace(arm, **every, live=live, honest=arm.honest and choice.honest)
        return arm

    def run(self, folder):
        """Which end it comes to: "right", "in doubt" or "refused"; fails where there is none."""
        return self.end(folder)[0]

    def end(self, folder):
        """The same with what is refused, and why."""
        arm, asked = self.world(), {}
        for choice in self.choices:
            asked |= choice.options(arm)
        named = [key for value in asked.values() if isinstance(value, dict) for key in value]
        words, arm = [*self.words(arm), *asked, *named], replace(arm, asked=asked)
        try:
            fit = feasid.fit(arm.log, arm.description, **{**arm.options, **asked})
        except FeasidError as error:
            assert_refusal(error, words)
            return "refused", f"fit: {error}"
        assert_shown(fit)
        for choice in self.choices:
            assert choice.kept(arm, fit.robot), f"the fit does not keep {choice.label}"
        assert_right_or_in_doubt(arm, fit)
        try:
            ACTS[self.act](arm, reloaded(fit, folder) if self.saved else fit, folder)
        except FeasidError as error:
            assert_refusal(error, words)
            return "refused", f"{self.act}: {error}"
        return "right" if is_right(arm, fit) else "in doubt", ""

    def words(self, arm) -> Iterable[str]:
        """What a refusal of this row may name: whose it is, or what of it."""
        yield from (*arm.joints, *arm.description.joints, *(b.name for b in arm.description.bodies))
        yield from {
            "mimic": ("follow", "mimic", "independent", "by themselves"),
            "locked": ("follow", "mimic", "independent", "by themselves"),
            "loop": ("loop", "by themselves"),
            "floating": ("float", "base", "contact", "degree of freedom"),
        }.get(self.robot, ())


ARRAY = Path(__file__).with_name("array.txt")
"""Rows of the covering array, a line each; ``python -m benchmarks.together`` writes them anew."""

WORLDS = [(robot, log) for robot in ROBOTS for log in LOGS if (robot, log) not in APART]


def wanted_pairs():
    """Every two of an option's value, a robot, a log and an act.

    A value that no world takes meets no act.
    """
    taken = {c.label for c in CHOICES if any(is_taken(c, *w) for w in WORLDS)}
    robots, logs = {r for r, _ in WORLDS}, {log for _, log in WORLDS}
    return {
        *((c.label, x) for c in CHOICES for x in robots | logs),
        *((label, act) for label in taken for act in ACTS),
        *((robot, act) for robot in robots for act in ACTS),
        *((log, act) for log in logs for act in ACTS),
        *WORLDS,
    }


def pairs(row):
    """Those that meet in a row; where a value is refused no act is reached."""
    values, world = [BY_LABEL[label] for label in row.labels], (row.robot, row.log)
    if all(is_taken(c, *world) for c in values) and go_together(values):
        every = *row.labels, *world, row.act
        return {*combinations(every, 2)} - {*combinations(row.labels, 2)}
    return {(c.label, x) for c in values for x in world}


TRIED = 30
"""Sets of options of which the best is taken for a row."""


def covering_array(rows=(), seed=0):
    """Rows, as few as there are, in which every two of `wanted_pairs` meet.

    Options of different groups share a row, up to `OPTIONS` of them, so that there are fewer rows
    than values times acts. Where a value is refused, it stands alone. `rows` come first.
    """
    rng, left, more, worlds = random.Random(seed), {*uncovered(rows)}, [], sorted(WORLDS)

    def add(some):
        """Of some rows the one with most of the pairs that are left."""
        rng.shuffle(some)
        more.append(max(some, key=lambda row: len(pairs(row) & left)))
        left.difference_update(pairs(more[-1]))

    for act in ACTS:
        while missing := [c for c in CHOICES if (c.label, act) in left]:
            tried = [draw_together(rng, missing) for _ in range(TRIED)]
            most = max(map(len, tried))
            add([
                Row(tuple(c.label for c in values), *world, act)
                for values in tried if len(values) == most for world in worlds
                if all(is_taken(c, *world) for c in values)
            ])  # fmt: skip
    while left:
        label, _ = min(left)
        labels = (label,) if label in BY_LABEL else ("default",)
        add([Row(labels, *world, act) for world in worlds for act in ACTS])
    rng.shuffle(more)
    return [*rows, *more]


OPTIONS = 3


def draw_together(rng, some):
    """Up to `OPTIONS` values that go together in one world at least, of large groups first."""
    values, sizes = [], Counter(map(group_of, some))
    for choice in sorted(rng.sample(some, len(some)), key=lambda c: -sizes[group_of(c)]):
        more = [*values, choice]
        if go_together(more) and any(all(is_taken(c, *w) for c in more) for w in WORLDS):
            values = more
        if len(values) == OPTIONS:
            break
    return values


def read_array():
    """The rows of the file, which is there because finding them takes seconds."""
    parts = [line.split(" | ") for line in ARRAY.read_text().splitlines()]
    return [Row(tuple(labels.split(" + ")), *rest) for labels, *rest in parts]


def uncovered(rows):
    """Pairs that meet in no row."""
    return wanted_pairs() - {pair for row in rows for pair in pairs(row)}


def random_triples(count, seed):
    """Rows of three options at once, with any robot, log and act."""
    rng = random.Random(seed)
    rows = []
    while len(rows) < count:
        some = rng.sample(CHOICES[1:], 3)
        if len({c.option for c in some}) == 3:
            labels = tuple(c.label for c in some)
            act = rng.choice([*ACTS])
            rows.append(Row(labels, *rng.choice(WORLDS), act, act != "save"))
    return rows
