"""Mutated robot files: only our own errors come out, with little work."""

import contextlib
import random
import re
import sys

import pytest
from robots import ARM, MODELS
from sdf_files import FRAMES

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

TOKENS = [
    *("nan", "1e999", "-1", "0", "1,5", "", "1e-400", "9" * 300, "e5", "-0", "0 0 0", "1 2 3 4 5"),
    *("&lt;", "&#10;", "<a>", "</link>", "/>", '"', "'", "<!--", "-->", "<![CDATA[", "]]>"),
    *("<!DOCTYPE a>", "<?x?>", "robot", "mujoco", "fixed", "free", "floating", "planar", "rod"),
    *("upper", "main", "mesh", "<include file='x.xml'/>", "<mimic joint='slide'/>", "<inertial/>"),
    *("<body/>", "\0", "\ufeff"),
]


def mutated(text, rng):
    data = text
    for _ in range(rng.randint(1, 4)):
        kind = rng.randrange(6)
        at, end = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
        if kind == 0:
            data = data[:at] + rng.choice(TOKENS) + data[at:]
        elif kind == 1:
            data = data[:at] + data[min(end, at + rng.randint(1, 40)) :]
        elif kind == 2:
            data = data[:at] + data[at : at + rng.randint(1, 200)] + data[at:]
        elif kind == 3:
            numbers = list(re.finditer(r'(?<=["\s])-?\d[\d.e+-]*(?=["\s])', data))
            if numbers:
                n = rng.choice(numbers)
                data = data[: n.start()] + rng.choice(TOKENS) + data[n.end() :]
        elif kind == 4:
            values = list(re.finditer(r'"[^"]*"', data))
            if values:
                a, b = rng.choice(values), rng.choice(values)
                data = data[: a.start()] + b[0] + data[a.end() :]
        else:
            elements = list(re.finditer(r"<(\w+)\b[^<>]*/>", data))
            if elements:
                a, b = rng.choice(elements), rng.choice(elements)
                data = data[: a.start()] + b[0] + data[a.end() :]
    raw = data.encode("utf-8", "replace")
    if rng.random() < 0.1:
        at = rng.randrange(len(raw))
        raw = raw[:at] + bytes([rng.randrange(256)]) + raw[at + 1 :]
    return raw


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
        raw = mutated(text, rng)
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
