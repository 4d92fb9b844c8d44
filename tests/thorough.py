"""Which parameters of a test the default suite tries; the others wait for ``-m slow``."""

import pytest


def some(values, *kept):
    """All values, those besides `kept` marked slow."""
    assert set(kept) <= set(values)
    return [v if v in kept else pytest.param(v, marks=pytest.mark.slow) for v in values]
