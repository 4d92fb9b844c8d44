"""Proofs in rationals that parameters can or cannot exist."""
