"""Exciting trajectories: parametrisation, constraints, objectives, and the global search."""
