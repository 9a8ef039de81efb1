"""Questions before and after a run."""
