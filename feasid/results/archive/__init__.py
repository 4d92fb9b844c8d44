"""Fits saved to files and read back: checked before they are used, they name no other files."""
