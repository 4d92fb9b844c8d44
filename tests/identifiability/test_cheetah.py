"""The example of the legged robot: counts of Table 5, pattern of Table 6, a figure."""

import json
from functools import cache
from pathlib import Path

import cheetah as example
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
REFERENCE = json.loads((ROOT / "tests" / "data" / "rpna_reference.json").read_text())

FELT = 0.1  # [N m, N] what a wrong model is off by at least; right ones are at rounding


@cache
def study():
    return example.study()


def test_geometry_is_the_published_one():
    published = REFERENCE["models"]["CheetahLeg"]["bodies"]
    for ours, theirs in zip(example.LEG["bodies"], published, strict=True):
        assert ours["position"] == theirs["p_in_parent"]
        assert ours["rotation"] == theirs["R_parent_from_joint"]
        assert ours["rotor"]["position"] == theirs["rotor"]["p_in_parent"]
        assert ours["rotor"]["gear_ratio"] == theirs["rotor"]["gear_ratio"]


def test_counts_are_those_of_table_5():
    counts, *_ = study()
    assert counts["per leg, floating"] == 24
    assert counts["per leg, fixed"] == 18
    assert counts["unknown"] == 6


def test_motions_show_all_that_can_be_shown():
    counts, _, _, spectra = study()
    assert (counts["floating"], counts["fixed"]) == (10 + 24, 18)
    for name, s in spectra.items():
        assert s[counts[name] - 1] > 1e6 * s[counts[name]]


def test_marks_are_those_of_table_5():
    rows = {line.split()[0]: line.split()[1:] for line in example.table_5()}
    assert rows["Lxz"] == ["✕", "●", "★", "★", "●", "★"]
    assert rows["rotor_Lzz"] == ["○", "○", "★", "★", "★", "★"]


def test_floating_identification_is_right_everywhere():
    _, floating, _, _ = study()
    assert max(part.max() for part in floating) < example.ZERO


def test_bench_identification_fails_in_the_pattern_of_table_6():
    _, _, fixed, _ = study()
    zero = example.ZERO
    assert fixed.bench.max() < zero
    abad, hip, knee = fixed.legs
    assert abad > FELT
    assert hip > FELT
    assert knee < zero
    assert (fixed.torques > FELT).all()
    assert (fixed.forces > FELT).all()


def test_errors_vanish_exactly_where_those_of_table_6_do():
    """Not their sizes, which are those of masses that are not public."""
    _, floating, fixed, _ = study()
    for name, errors in (("floating torso", floating), ("fixed torso", fixed)):
        ours = [part > example.ZERO for part in errors]
        np.testing.assert_array_equal(ours, np.array(example.PUBLISHED[name]) > 0)


def test_it_prints_and_draws(tmp_path, capsys):
    pytest.importorskip("matplotlib").use("Agg")
    path = tmp_path / "figure.png"
    example.main(str(path))
    assert path.stat().st_size > 1000
    out = capsys.readouterr().out
    assert "24 floating, 18 fixed" in out
    assert "[16.31 12.40 61.73]" in out
    assert np.max([len(line) for line in out.splitlines()]) <= 100
