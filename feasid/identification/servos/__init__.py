"""Gains of position servos, identified from positions and commands without torques."""
