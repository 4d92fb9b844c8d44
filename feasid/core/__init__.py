"""What every other package needs: text, files, archives, notes, displays, figures and threads."""
