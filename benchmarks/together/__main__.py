"""``python -m benchmarks.together`` writes the covering array anew: after a new option or act."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from .rows import ARRAY, covering_array

if __name__ == "__main__":
    ARRAY.write_text("".join(f"{row}\n" for row in covering_array()))
