"""The regression form of a log: rows tau = W beta and triangles that add; solves nothing."""
