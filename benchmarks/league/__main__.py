"""``python -m benchmarks.league``."""

from benchmarks.league.run import main

main()
