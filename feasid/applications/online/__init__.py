"""Identification while the robot runs: when an estimate of a stream of samples may be used."""
