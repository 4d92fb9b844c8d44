"""Which format a log's file has."""

from __future__ import annotations

import pytest

from feasid.errors import InputError
from feasid.logs.read.formats import format_of


def test_endings_that_nothing_reads_are_named_with_those_that_are():
    with pytest.raises(InputError, match=r"no reader for '.xyz' .*\.csv .*\.parquet "):
        format_of("log.xyz")
