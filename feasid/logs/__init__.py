"""What was measured: the log contract, signals and reduced data."""
