"""A fit as text, figures and pages.

Presents numbers that others computed and computes none itself.
"""
