"""Everything that writes a run to disk."""
