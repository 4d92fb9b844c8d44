"""A fit as text, figures and pages of numbers that others computed."""
