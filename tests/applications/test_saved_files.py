"""Files that this version wrote, kept: later versions load them, or refuse them by name."""

import shutil
from pathlib import Path

import pytest

import feasid
from feasid.core.errors import InputError

SAVED = Path(__file__).parents[1] / "data" / "saved"

MASS = 1.45
"""Of the arm's upper body with its plate [kg], in the file; the fit moved it by less than 20 %."""

READERS = {
    "arm.reduced": lambda path: feasid.Reduced.load(path).samples == 400,
    "arm.feasid": lambda path: abs(feasid.load(path).robot.values[9] / MASS - 1) < 0.2,
    "arm.certificate.json": lambda path: feasid.Certificate.load(path).holds,
    "arm.urdf": lambda path: len(feasid.load_robot(path).drives) == 3,
    "arm.urdf.feasid.json": lambda path: (
        feasid.load_robot(path.with_name("arm.urdf")).size
        > feasid.load_robot(path.with_name("arm.urdf"), sidecar=False).size
    ),
}


def test_every_kept_file_has_a_reader():
    assert {path.name for path in SAVED.iterdir()} == set(READERS)


@pytest.mark.parametrize("name", READERS)
def test_files_that_were_kept_load_or_are_refused_by_name(name, tmp_path):
    shutil.copytree(SAVED, tmp_path / "saved")
    try:
        fine, message = READERS[name](tmp_path / "saved" / name), ""
    except InputError as error:
        fine, message = False, str(error)
    assert fine or all(w in message for w in (name, "format", "this feasid reads"))


def test_a_kept_fit_says_what_it_said():
    """Of every joint; the file's error of all added N of its slide to N m."""
    fit, reduced = feasid.load(SAVED / "arm.feasid"), feasid.Reduced.load(SAVED / "arm.reduced")
    again = fit.errors_of(reduced)
    assert again.to_numpy()[:-1] == pytest.approx(fit.relative_error.to_numpy()[:-1], rel=1e-6)
    assert fit.certificate.holds
