"""Logs as they were recorded: reading, columns and units, time, filters, runs of signals.

This package knows joints, units and time, but neither dynamics nor parameters.
"""
