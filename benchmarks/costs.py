"""Which tests cost seconds: ``pytest --costs FILE``, then ``python -m benchmarks.costs FILE``."""

import json
import sys
from collections import defaultdict
from pathlib import Path

from tests.costs import COSTLY, TABLE


def main():
    """Write the table from what a run measured; tests that it did not run keep their entries."""
    measured = defaultdict(list)
    for line in Path(sys.argv[1]).read_text().splitlines():
        seconds, nodeid = line.split(" ", 1)
        measured[nodeid.split("[")[0]].append(float(seconds))
    costs = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    costs |= {name: round(sum(all_of) / len(all_of), 1) for name, all_of in measured.items()}
    costly = {name: cost for name, cost in sorted(costs.items()) if cost >= COSTLY}
    TABLE.write_text(json.dumps(costly, indent=1) + "\n")


if __name__ == "__main__":
    main()
