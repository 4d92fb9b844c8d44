"""Feasible sets of parameters, the convex problems over them, and certificates."""
