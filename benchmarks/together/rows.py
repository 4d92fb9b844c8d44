"""A row of the array: a fit with these options, of this robot and log, and what is done with it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations, cycle
from pathlib import Path

import feasid
from feasid.core.errors import FeasidError

from .acts import ACTS, reloaded
from .arms import LOGS, ROBOTS, World, world
from .choices import CHOICES, LAST, OF_SENSORS
from .further import FURTHER
from .judge import assert_refusal, assert_right_or_in_doubt, assert_shown, is_right

BY_LABEL = {choice.label: choice for choice in CHOICES}

APART = {
    ("floating", "tilted"): "the pose of a floating base is what its log says",
    ("mimic", "commands"): "gains are identified of joints that move by themselves",
    ("loop", "commands"): "",
    ("floating", "commands"): "",
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
        arm, asked = self.world(), {}
        for choice in self.choices:
            asked |= choice.options(arm)
        named = [key for value in asked.values() if isinstance(value, dict) for key in value]
        words, arm = [*self.words(arm), *asked, *named], replace(arm, asked=asked)
        try:
            fit = feasid.fit(arm.log, arm.description, **{**arm.options, **asked})
        except FeasidError as error:
            assert_refusal(error, words)
            return "refused"
        assert_shown(fit)
        for choice in self.choices:
            assert choice.kept(arm, fit.robot), f"the fit does not keep {choice.label}"
        assert_right_or_in_doubt(arm, fit)
        try:
            ACTS[self.act](arm, reloaded(fit, folder) if self.saved else fit, folder)
        except FeasidError as error:
            assert_refusal(error, words)
            return "refused"
        return "right" if is_right(arm, fit) else "in doubt"

    def words(self, arm) -> Iterable[str]:
        """What a refusal of this row may name: whose it is, or what of it."""
        yield from (*arm.joints, *arm.description.joints, *(b.name for b in arm.description.bodies))
        yield from {
            "mimic": ("follow", "mimic", "independent", "by themselves"),
            "locked": ("follow", "mimic", "independent", "by themselves"),
            "loop": ("loop", "by themselves"),
            "floating": ("float", "base", "contact", "degree of freedom"),
        }.get(self.robot, ())


def fits_together(values):
    """Whether the part of a row that is chosen so far can be."""
    return len(values) < 3 or (values[1], values[2]) not in APART


ARRAY = Path(__file__).with_name("array.txt")
"""Rows of the covering array, a line each; ``python -m benchmarks.together`` writes them anew."""

WORLDS = [(robot, log) for robot in ROBOTS for log in LOGS if (robot, log) not in APART]


def covering_array():
    """Rows in which every two of an option's value, a robot, a log and an act meet."""
    from allpairspy import AllPairs

    factors = [[c.label for c in CHOICES], [*ROBOTS], [*LOGS], [*ACTS]]
    rows = [tuple(values) for values in AllPairs(factors, filter_func=fits_together)]
    return [Row((label,), *rest) for label, *rest in spread(rows)]


def read_array():
    """The rows of the file, which is there because finding them takes seconds."""
    parts = [line.split(" | ") for line in ARRAY.read_text().splitlines()]
    return [Row((label,), *rest) for label, *rest in parts]


def uncovered(rows):
    """Pairs of an option's value, a robot, a log and an act that are in no row."""
    wanted = {
        pair
        for label in (c.label for c in CHOICES)
        for robot, log in WORLDS
        for act in ACTS
        for pair in pairs((label, robot, log, act))
    }
    return wanted - {p for r in rows for p in pairs((*r.labels, r.robot, r.log, r.act))}


def spread(rows):
    """The same coverage with robots and logs in equal shares where any of them would do."""
    times = Counter(pair for row in rows for pair in pairs(row))
    worlds, out = cycle(random.Random(0).sample(WORLDS, len(WORLDS))), []
    for row in rows:
        changed = (row[0], *next(worlds), row[3])
        if all(times[pair] > 1 for pair in pairs(row) - pairs(changed)):
            times.subtract(pairs(row))
            times.update(pairs(changed))
            row = changed
        out.append(row)
    return out


def pairs(row):
    """Every two places of a row with their values."""
    return {*combinations(enumerate(row), 2)}


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
