"""A log that is thinned, has small gaps or is halved gives the same model."""

from functools import cache

import numpy as np
import pytest
from thorough import some

import feasid
from feasid import datasets

MOVED = 0.01  # of the torque: how far a prediction may go from that of the whole log
WORSE = 1.02  # times the whole log's error, where next to nothing is lost
HALVED = 1.12  # ... and from half of its motion, which knows less


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
def whole(name):
    log = datasets.load(name)
    return log, fitted(log, log)


def fitted(log, part):
    part = part.reset_index(drop=True)
    options = log.attrs.get("options", {})
    return feasid.fit(part, log.attrs["robot"], diagnose=False, **options)


def error_on(log, fit):
    """Of all joints on the whole log, both sides filtered."""
    options = log.attrs.get("options", {})
    test = feasid.reduce(log, base=fit.base, filtering="equations", **options)
    return np.linalg.norm(test.residuals(fit.beta)) / np.linalg.norm(test.torque_norms)


def distance(one, other, log):
    """Between two predictions of the log's torques, as a share of them, both sides filtered."""
    options = log.attrs.get("options", {})
    run = {"filtering": "equations", **options}
    parts = [feasid.reduce(log, base=fit.base, **run) for fit in (one, other)]
    if parts[0].fingerprint != parts[1].fingerprint:
        return None  # other friction terms: their errors are compared
    moved = [
        np.linalg.norm(triangle[:, :-1] @ (one.beta - other.beta)[list(support)])
        for support, triangle in zip(parts[0].supports, parts[0].triangles, strict=True)
    ]
    return np.linalg.norm(moved) / np.linalg.norm(parts[0].torque_norms)


@pytest.mark.slow
@pytest.mark.parametrize("damage", some([dropped, packets, thinned], dropped))
@pytest.mark.parametrize("name", LOGS)
def test_small_losses_move_nothing(name, damage):
    log, own = whole(name)
    fit = fitted(log, damage(log, np.random.default_rng(7)))
    assert error_on(log, fit) < WORSE * error_on(log, own)
    moved = distance(own, fit, log)
    assert moved is None or moved < MOVED
    assert fit.reduced.cutoff == own.reduced.cutoff
    assert fit.reduced.rows > 0.97 * own.reduced.rows  # nothing is split at gaps


@pytest.mark.slow
@pytest.mark.parametrize("name", LOGS[:2])
def test_halves_know_what_the_whole_knows(name):
    """The cut-off is a constant; each half predicts the other half, too."""
    log, own = whole(name)
    middle = len(log) // 2
    for part in (log.iloc[:middle], log.iloc[middle:]):
        fit = fitted(log, part)
        assert fit.reduced.cutoff == own.reduced.cutoff
        assert error_on(log, fit) < HALVED * error_on(log, own)
