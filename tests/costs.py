"""Tests that cost seconds: which there are, and which of them a run of the default suite draws.

pytest -m "slow or not slow" --costs /tmp/costs.txt; python -m tests.costs /tmp/costs.txt
"""

import json
import random
from pathlib import Path

TABLE = Path(__file__).with_name("costs.json")

COSTLY = 1.5
"""Processor seconds of a test case above which it is drawn; the 6 600 below take 9 minutes."""

BUDGET = 170
"""Processor seconds of costly cases in one run: the default suite takes 6 minutes on two cores."""


def left_out(items, seed, budget):
    """Costly cases beyond the budget [s], in an order that the seed draws."""
    costs = json.loads(TABLE.read_text())
    costly = [item for item in items if item.nodeid.split("[")[0] in costs]
    random.Random(f"costs {seed}").shuffle(costly)
    spent = 0.0
    for item in costly:
        spent += costs[item.nodeid.split("[")[0]]
        if spent > budget:
            yield item
