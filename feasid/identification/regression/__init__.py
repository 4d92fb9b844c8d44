"""The regression form of a log: filtered rows tau = W beta, reduced to triangles that add.

This package forms and adds equations of a robot; it does not solve them.
"""
