"""From regression equations to feasible parameters: noise, priors, bounds and the optimum.

This package knows no log, no file and no effect, and is the only one that solves equations.
"""
