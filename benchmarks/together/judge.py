"""Whether a fit is right by what it reports, in honest doubt, or refused by name."""

from __future__ import annotations

import re

import numpy as np

from feasid.core.errors import FeasidError

TIMES = 3.0
"""True errors on new motion are at most this many times what is reported."""

SAMPLES_OF_SPEED = 10
"""Every so many rows of a motion, of which means are taken."""

PRIVATE = re.compile(
    r"Clarabel|CVXPY|iter\s+pcost|-{8}|\n\n\n|singular|positive definite|of  |None of", re.I
)
"""What no refusal may say: a solver's log, a library's error, an empty list."""


def reported_error(world, fit, errors=None):
    """What a fit says of its torques on the test motion, relative."""
    quality = fit.quality
    held_out = quality.errors.overall_error(quality.errors.model)
    errors = fit.errors(world.test_log) if errors is None else errors
    expected = errors.attrs["predicted"]
    told = max(held_out, 0.0 if expected is None else float(expected["all"]))
    return float(np.hypot(told, servo_deviation(world, fit)))


def servo_deviation(world, fit):
    """Share of torques that a servo's table leaves open: damping cannot be told from a delay."""
    if fit.servo is None:
        return 0.0
    speed = world.motion[1][::SAMPLES_OF_SPEED, world.driven]
    open_torque = np.linalg.norm(speed * fit.servo.table["damping_std"].to_numpy())
    return float(open_torque / np.linalg.norm(world.torque[::SAMPLES_OF_SPEED, world.driven]))


def doubts(fit):
    """Whether a fit's own verdict warns of it."""
    return fit.quality.level != "good"


def is_right(world, fit):
    """Whether a fit's torques are as near to the truth as it says."""
    return world.error(fit.robot) <= TIMES * reported_error(world, fit)


def assert_right_or_in_doubt(world, fit, errors=None):
    """Fail where a fit is wrong without a word; `errors` are those on the test log."""
    true, told = world.error(fit.robot), reported_error(world, fit, errors)
    assert doubts(fit) or true <= TIMES * told, (
        f"called {fit.quality.level}: {100 * told:.2g} % reported, {100 * true:.2g} % true"
    )


class UnequalError(AssertionError):
    """A fit that was read back is not the one that was saved."""


def assert_same(fit, saved):
    """Fail where a fit that was read back differs from the one that was saved."""
    for name in ("delta", "beta", "covariance"):
        if getattr(saved, name).tobytes() != getattr(fit, name).tobytes():
            raise UnequalError(f"{name} after saving and reading")
    for name, show in SHOWN.items():
        if show(saved) != show(fit):
            raise UnequalError(f"{name}: {show(fit)} was saved, {show(saved)} read")
    assert_shown(saved)


SHOWN = {
    "level": lambda fit: fit.quality.level,
    "reasons": lambda fit: [*map(str, fit.quality.reasons)],
    "errors": lambda fit: str(fit.relative_error.to_dict()),
    "notes": lambda fit: [*map(str, fit.notes)],
    "columns": lambda fit: fit.base_table.to_csv(),
    "proof": lambda fit: fit.certificate.verify(),
}
"""What a fit says of itself, which is equal before and after."""


def assert_shown(fit):
    """Everything that prints a fit does."""
    assert str(fit)
    assert str(fit.summary())
    assert str(fit.display())


def assert_named(error, words):
    """Fail where a refusal does not name what it is about, or speaks of a solver's inside."""
    assert isinstance(error, FeasidError)
    message = str(error)
    assert not PRIVATE.search(message), message
    assert any(str(w) in message for w in words), f"none of {[*words]} in: {message}"


def assert_refusal(error, words):
    """A refusal of a row names an option, a body or a joint, or what of them it is about."""
    assert_named(error, [*words, *SUBJECTS])


SUBJECTS = ("the log", "torque", "prior", "rows", "column")
