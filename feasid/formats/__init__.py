"""Robot descriptions as files: URDF, MJCF and compiled models, read, written and repaired."""
