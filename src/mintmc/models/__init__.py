"""Models that need not be written by hand."""
