"""Diagnosis of a log by fits of it: which corrections predict held-out data better."""
