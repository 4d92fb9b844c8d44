"""Identifiability: the parameter nullspace and the base parameters."""
