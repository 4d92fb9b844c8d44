"""Kinematics, and the regressor of inverse dynamics."""
