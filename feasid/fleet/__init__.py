"""Robots of one type: what they have in common, and one fit of each."""
