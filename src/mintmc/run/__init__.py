"""Runs: chains side by side, in stretches, from warm-up to a tree of draws."""
