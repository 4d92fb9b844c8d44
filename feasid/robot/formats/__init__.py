"""Robot descriptions: URDF, MJCF, SDF and compiled models, read, patched and written."""
