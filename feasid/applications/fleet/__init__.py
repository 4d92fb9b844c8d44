"""Robots of one type: their common parameters, and one fit of each robot."""
