"""Cone programs: stated in CVXPY, solved by others, bounded and repaired by us."""
