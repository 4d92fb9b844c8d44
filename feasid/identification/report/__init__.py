"""A fit as text, page and figures."""
