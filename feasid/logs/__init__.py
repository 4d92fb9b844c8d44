"""Logs as they were recorded: columns, units, time, filters, runs; no dynamics or parameters."""
