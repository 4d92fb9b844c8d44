"""Rows of a covering array and random triples of options: right, in honest doubt, or refused."""

import pytest

from benchmarks.together.arms import world
from benchmarks.together.rows import APART, Row, random_triples, read_array, uncovered

SHARE = 0.012
"""Of these rows in the default suite: a row takes a second or two."""
TRIPLES, SEED = 500, 0


def test_every_two_values_meet_in_a_row():
    assert not uncovered(read_array()), "python -m benchmarks.together --anew writes the array"


@pytest.mark.sampled(SHARE)
@pytest.mark.parametrize("row", [*read_array(), *random_triples(TRIPLES, SEED)], ids=str)
def test_a_row_of_the_array(row, tmp_path):
    assert row.run(tmp_path) in ("right", "in doubt", "refused")


@pytest.mark.parametrize("robot", [r for r, log in APART if log == "commands"])
def test_commands_of_joints_that_do_not_move_by_themselves_are_refused(robot, tmp_path):
    assert Row(("default",), robot, "commands", "errors").run(tmp_path) == "refused"
    assert world(robot, "commands").options["command"] == "position"
