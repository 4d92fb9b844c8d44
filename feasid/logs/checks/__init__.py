"""Checks of the columns of a log: stuck, clipped or inconsistent signals; fits no model."""
