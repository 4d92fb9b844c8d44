"""Code of one robot: expressions, recursive algorithms on them, C and Python sources."""
