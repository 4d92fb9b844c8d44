"""Everything that is saved comes back, goes on, and is refused by name where it is damaged.

More draws, of all robots and options, are `benchmarks/round_trip.py`.
"""

import pytest
from seeds import seed_of

from benchmarks.round_trip import FOREIGN, KINDS, classes_that_save, draw


def test_every_class_with_a_method_save_has_a_state():
    assert classes_that_save() | {"LogStore"} == set(KINDS)


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_saved_is_read_again(kind, tmp_path):
    refused, _ = draw(kind, seed_of("drawn"), tmp_path, FOREIGN.items(), quick=True)
    assert refused > len(FOREIGN)
