"""What a run leaves: the tree of draws, diagnostics, plots."""
