"""Checks of the columns of a log: stuck or clipped signals, wrong units, inconsistent speeds.

A check sees columns and their units only; no model is fitted here.
"""
