"""Mutated robot files: only our own errors come out, with little work."""

import contextlib
import random
import sys

import pytest
from robots import ARM, MODELS
from sdf_files import FRAMES

from benchmarks.campaign import mutators
from feasid.applications.inspection import file_check as reports
from feasid.applications.inspection.file_check import check_description
from feasid.applications.inspection.file_correction import correct_file
from feasid.core.errors import FeasidError
from feasid.robot.formats.load import load_robot
from feasid.robot.formats.registry import read_description
from feasid.robot.formats.xml import parse_xml

CALLS = 200_000
"""Function calls that one file may cost, some three times as many as any did (61 578)."""

MJCF = (MODELS / "fuzzed.xml").read_text(encoding="utf-8")


def use(path, raw):
    """Everything that is done with a file; only our own errors may come out."""
    try:
        report = check_description(read_description(parse_xml(raw, str(path))))
        list(reports.report_lines(report, verbose=True))
        reports.sarif_log(reports.findings(report), "0")
        list(reports.github_commands(reports.findings(report)))
        report.to_dict()
    except FeasidError as error:
        str(error)
    for action in (load_robot, correct_file):
        with contextlib.suppress(FeasidError):
            action(path)


@pytest.mark.sampled(0.34)
@pytest.mark.parametrize("text", [ARM, MJCF, FRAMES], ids=["urdf", "mjcf", "sdf"])
@pytest.mark.parametrize(
    ("seed", "number"), [(1, 300), pytest.param(2, 50_000, marks=pytest.mark.slow)]
)
def test_mutated_files(tmp_path, text, seed, number):
    rng = random.Random(seed)
    path = tmp_path / "model.xml"
    for k in range(number):
        raw = mutators.several(rng, text.encode(), mutators.xml)
        path.write_bytes(raw)
        calls = 0

        def count(frame, event, argument):
            nonlocal calls
            calls += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            use(path, raw)
        except Exception as error:
            raise AssertionError(f"file {k} of seed {seed}: {error!r}\n{raw!r}") from error
        finally:
            sys.setprofile(None)
        assert calls < CALLS
