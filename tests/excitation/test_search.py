"""How the search divides its work between kicks and further starts."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from feasid.applications.excitation.search import Search, SearchClock, SearchPoint

KICK, START = 100, 600
"""Evaluations of one of each."""

ROUNDS = 200


@dataclass(eq=False)
class Fake(Search):
    """Kicks and starts that gain by decree."""

    gainful: str = ""
    spent: dict = field(default_factory=lambda: {"kick": 0, "start": 0})

    def _descend(self, start, stages, *, keep=False):
        return start

    def _did(self, what, evaluations):
        self.evaluations += evaluations
        self.spent[what] += evaluations
        if what == self.gainful:
            self.pool = [SearchPoint(self.pool[0].value - 1.0, np.zeros(1))]

    def _perturb_best(self):
        self._did("kick", KICK)

    def _descend_from_another_start(self):
        self._did("start", START)


@pytest.mark.parametrize("gainful", ["kick", "start", ""])
def test_what_gains_is_done_more(gainful):
    search = Fake(
        None, None, None, np.random.default_rng(0), SearchClock(np.inf), ROUNDS, 1, lambda *_: None,
        gainful=gainful,
    )  # fmt: skip
    search.archive = [SearchPoint(0.0, np.zeros(1))]
    search._improve_best()
    kicks, starts = search.spent["kick"], search.spent["start"]
    if gainful:
        other = starts if gainful == "kick" else kicks
        assert other <= max(KICK, START)
    else:
        assert abs(kicks - starts) <= START


def test_what_was_improved_comes_before_rough_starts_with_much_barrier():
    """A heavy barrier of wide limits makes a value small that says nothing of the motion."""
    search = Fake(None, None, None, None, SearchClock(np.inf), None, None, lambda *_: None)
    search.pool = [SearchPoint(v, np.array([v])) for v in (np.inf, -3.5, -3.6)]
    search.archive = [SearchPoint(-5.0, np.array([-5.0]))]
    assert [float(z[0]) for z in search.candidates()] == [-3.6, -3.5, -5.0, np.inf]
