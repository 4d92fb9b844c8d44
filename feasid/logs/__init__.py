"""Logs: reading, the log contract, and signals on the joint side."""
