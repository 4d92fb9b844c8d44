"""Motions worth logging: trajectories, what they must keep, and the search for the best one."""
