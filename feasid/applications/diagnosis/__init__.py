"""Diagnosis of a log by fits of it: which corrections predict held-out data better.

Tests and reports corrections; which effects exist is defined in `effects`.
"""
