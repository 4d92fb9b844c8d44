"""``python -m tests.together`` writes the covering array anew, after an option or act was added.

``python -m tests.together 7 50`` runs fifty random triples of options of seed 7 instead, and prints
how each ends: right, in doubt, refused, or how it fails.
"""

import sys
import tempfile
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from .rows import ARRAY, covering_array, random_triples


def end_of(row):
    """How a row ends, in a word or in the words of its failure."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return row.run(Path(folder))
        except Exception as error:  # every failure is printed, and the next row runs
            return f"{type(error).__name__}: {error}"


if __name__ == "__main__" and len(sys.argv) == 3:
    warnings.simplefilter("error")
    for row in random_triples(int(sys.argv[2]), int(sys.argv[1])):
        print(f"{row}: {end_of(row)}", flush=True)
elif __name__ == "__main__":
    ARRAY.write_text("".join(f"{row}\n" for row in covering_array()))
