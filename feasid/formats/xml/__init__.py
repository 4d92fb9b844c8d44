"""XML as text: read strictly with places, patched in place."""
