"""Identification while the robot runs: feasible estimates, a gate, and control that uses them."""
