"""What a fit becomes: files, figures, pages and code."""
