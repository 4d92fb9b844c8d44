"""Which parameters a motion can show, and which a real robot can have."""
