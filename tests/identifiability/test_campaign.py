"""Random mechanisms of `benchmarks.echelon`: exact, an error or a warning, never silently wrong."""

from benchmarks.echelon import HARMLESS_WARNED, LARGEST_REFUSED, count_outcomes

TELLING = (102, 229)
"""Seeds of mechanisms that tell unmeasured joints from measured ones where the others do not."""


def test_none_of_a_sample_is_silently_wrong():
    tally, harmless, needless = count_outcomes([*range(60), *TELLING])
    assert tally["exact"] >= 50
    assert needless <= 1 + HARMLESS_WARNED * harmless
    assert tally["refused"] <= LARGEST_REFUSED * tally.total()
