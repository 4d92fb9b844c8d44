"""A small sample of the campaign: the whole of it is ``python -m benchmarks.campaign``."""

import random
import warnings
from contextlib import suppress

import pytest

INPUTS = 40

pytest.importorskip("pyarrow")
pytest.importorskip("rosbags")

from benchmarks.campaign import mutators  # noqa: E402
from benchmarks.campaign.registry import KINDS  # noqa: E402
from feasid.core.errors import FeasidError  # noqa: E402


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize("name", [name for name in KINDS if name != "command"])
def test_changed_inputs_end_in_values_or_feasid_errors(name, tmp_path):
    kind, passed = KINDS[name](tmp_path), 0
    kind.prepared(tmp_path)
    for number in range(INPUTS):
        rng = random.Random(f"{name} {number}")
        data = mutators.several(rng, rng.choice(kind.seeds), kind.change)
        path, value = kind.write(tmp_path, data), None
        with warnings.catch_warnings(action="ignore"), suppress(FeasidError):
            for _, stage in kind.stages:
                value = stage(path, value)
                passed += 1
    assert passed > INPUTS / 4  # the changes reach beyond the first check


@pytest.mark.slow
def test_a_campaign_goes_on_from_its_counts(tmp_path, capsys):
    from benchmarks.campaign import totals
    from benchmarks.campaign.__main__ import main

    file = tmp_path / "counts.json"
    before = totals.Count(1000, totals.Counter({"json": 7}), totals.Counter({"older": 7}))
    totals.save(file, {"certificate": before})
    order = ["--kinds", "certificate", "--inputs", "20", "--counts", str(file), "--past", "0"]
    assert main([*order, "--total", "27", "--keep", str(tmp_path / "failures")]) == 0
    count = totals.load(file, ["certificate"], 0)["certificate"]
    assert (count.next, count.inputs) == (1020, 27)
    assert count.codes == {"older": 7, totals.code(): 20}
    assert "| certificate | 27 | 27 |" in capsys.readouterr().out
