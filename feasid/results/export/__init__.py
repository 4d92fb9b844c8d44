"""Models as files and as the programs that read them compute, and what a format lacks."""
