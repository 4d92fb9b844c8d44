"""A log that is thinned, has small gaps or is halved gives the same model."""

from functools import cache

import numpy as np
import pytest
from thorough import some

import feasid
from feasid import datasets

MOVED = 0.015
"""Share of the torque by which a prediction may differ from that of the whole log: 1.1 % of a
Unitree Z1 and .5 % of a KUKA at half the rate, by terms that nearly do not enter; .3 % else."""

HALVED = 1.12
"""Times the whole log's error, from half of its motion with the same terms, which knows less."""


def dropped(log, rng):
    """One row in fifty is lost, wherever it falls."""
    return log[rng.random(len(log)) >= 0.02]


def packets(log, rng):
    """Every fortieth message is lost."""
    return log[(np.arange(len(log)) + rng.integers(40)) % 40 != 0]


def thinned(log, rng):
    """Half the sampling rate."""
    return log.iloc[rng.integers(2) :: 2]


LOGS = some(["staubli_tx40", "kuka_lwr4", "unitree_z1", "kinova_gen3"], "staubli_tx40")


@cache
def whole(name, **more):
    log = datasets.load(name)
    return log, fitted(log, log, **more)


def fitted(log, part, **more):
    options = log.attrs.get("options", {}) | more
    return feasid.fit(part.reset_index(drop=True), log.attrs["robot"], diagnose=False, **options)


def error_on(log, fit):
    """Of all joints on the whole log, both sides filtered."""
    options = log.attrs.get("options", {})
    test = feasid.reduce(log, base=fit.base, filtering="equations", **options)
    return np.linalg.norm(test.residuals(fit.beta)) / np.linalg.norm(test.torque_norms)


@pytest.mark.slow
@pytest.mark.parametrize("damage", some([dropped, packets, thinned], dropped))
@pytest.mark.parametrize("name", LOGS)
def test_small_losses_move_nothing(name, damage):
    log, own = whole(name)
    fit = fitted(log, damage(log, np.random.default_rng(7)))
    one, other = (f.predict(log).to_numpy() for f in (own, fit))
    assert np.sqrt(np.nanmean((one - other) ** 2) / np.nanmean(one**2)) < MOVED
    assert fit.reduced.cutoff == own.reduced.cutoff
    assert fit.reduced.rows > 0.97 * own.reduced.rows  # nothing is split at gaps


@pytest.mark.slow
@pytest.mark.parametrize("name", LOGS[:2])
def test_halves_know_what_the_whole_knows(name):
    """The cut-off is a constant; each half predicts the other half, too."""
    same = {"candidates": (), "calibration": None}
    log, own = whole(name, **same)
    middle = len(log) // 2
    for part in (log.iloc[:middle], log.iloc[middle:]):
        fit = fitted(log, part, **same)
        assert fit.reduced.cutoff == own.reduced.cutoff
        assert error_on(log, fit) < HALVED * error_on(log, own)
