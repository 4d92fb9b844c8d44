"""Every option of a fit is about rows, signals, bodies or the rest of the model: one group each."""

from benchmarks.together.choices import GROUPS
from feasid.options.tables import FitOptions


def test_every_option_of_a_fit_belongs_to_one_group():
    known = [name for names in GROUPS for name in names]
    assert sorted(known) == sorted({*known}), "an option is in two groups"
    assert {*known} == {*FitOptions.__annotations__}, "enter new options in one group"
