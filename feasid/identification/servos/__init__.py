"""Gains of position servos, identified from positions and commands.

The model without torque measurements; its rows, its equations and its limits.
"""
