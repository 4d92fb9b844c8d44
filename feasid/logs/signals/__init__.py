"""Filters, derivatives, and what they make of one stretch of a log."""
