"""Fits saved to files and read back.

Files are checked before they are used and never name other files to open.
"""
