"""Exact arithmetic: decimals in text, poses to sixty digits, inertias and linear equations."""
