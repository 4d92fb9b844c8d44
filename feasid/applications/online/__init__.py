"""Identification while the robot runs: estimates from a stream of samples, and their acceptance.

The estimator is that of a fit; this package feeds it and decides when a result may be used.
"""
