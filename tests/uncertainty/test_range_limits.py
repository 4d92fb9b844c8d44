"""No model contradicts a range: not one beyond our limit on sizes, unless the range names it."""

import pytest

from benchmarks.range_checks import count_contradictions, described_fit
from feasid.parameters.feasibility import region as regions


@pytest.mark.slow
def test_witnesses_beyond_the_limit_contradict_no_range():
    beyond, contradicted = count_contradictions(1)
    assert beyond > 0
    assert contradicted == 0


@pytest.mark.slow
def test_a_limit_is_in_the_sentence_the_table_and_the_file(tmp_path):
    found = described_fit(4).ranges(plausible=False)
    limited = [r for r in found if any(r.limited)]
    assert limited
    assert f"{regions.LARGEST:g} times the robot's size" in repr(limited[0])
    assert f"{regions.LARGEST:g} times the robot's size" in found.explain()
    assert found.table["limited"].sum() == len(limited)
    seen = 0
    for one in found:
        for end, within in zip(("lower", "upper"), one.limited, strict=True):
            certificate = one.certificate(end)
            if certificate is None:
                continue
            names = [c["name"] for c in certificate.data["constraints"]]
            assert (regions.LIMIT in names) == within, (one, end)
            assert certificate.verify()
            seen += 1
    assert seen
