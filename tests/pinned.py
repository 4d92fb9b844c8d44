"""Results as they were when they were last looked at: no constant and no branch changes unnoticed.

`assert_pinned` compares with a file of `tests/data/pinned`, which ``FEASID_PIN=1`` writes anew:
where a result may change, look at the difference of the file.
"""

import dataclasses
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent / "data" / "pinned"
DIGITS = 7
"""Digits that are kept."""
EQUAL = 1e-5
"""Difference relative to the largest number of an array: of other processors and libraries."""


def plain(value):
    """As JSON, arrays and fields of results by their numbers."""
    if dataclasses.is_dataclass(value):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    value = value.tolist() if isinstance(value, np.ndarray) else value
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(v) for v in (sorted(value) if isinstance(value, set | frozenset) else value)]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float | np.floating) else value


def without_digits(value):
    """Digits of a text, and its spaces, differ between processors where they are rounded."""
    return re.sub(r"[-\d.e+\s]*[\d\s][-\d.e+\s]*", "#", value) if isinstance(value, str) else value


def differences(now, then, place, equal):
    """Places where results differ."""
    if isinstance(now, dict) and isinstance(then, dict) and {*now} == {*then}:
        return [x for k in now for x in differences(now[k], then[k], f"{place}.{k}", equal)]
    numbers = isinstance(now, list) and {type(x) for x in now} <= {float, int}
    if isinstance(now, list) and isinstance(then, list) and len(now) == len(then) and not numbers:
        pairs = enumerate(zip(now, then, strict=True))
        return [x for k, (a, b) in pairs for x in differences(a, b, f"{place}[{k}]", equal)]
    if isinstance(now, float) or (numbers and len(now) == len(then)):
        size = np.max(np.abs(then), where=np.isfinite(then), initial=0.0)
        same = np.allclose(now, then, rtol=0, atol=equal * size, equal_nan=True)
    else:
        same = now == then
    return [] if same else [f"{place}: {now}, was {then}"]


def assert_pinned(name, results, equal=EQUAL):
    """These results by name are those of the file."""
    file, now = FOLDER / f"{name}.json", json.loads(json.dumps(plain(results)))
    if "FEASID_PIN" in os.environ:
        lines = (f"{json.dumps(k)}: {json.dumps(v)}" for k, v in now.items())
        file.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    if wrong := differences(now, json.loads(file.read_text()), name, equal):
        pytest.fail("\n".join(wrong[:20]))
