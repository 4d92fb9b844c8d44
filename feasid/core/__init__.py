"""Tools of every other package: text, files, archives, notes, displays, figures and threads."""
