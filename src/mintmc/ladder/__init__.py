"""Ladders of rungs and the two ways to couple them: equi-energy jumps and parallel-tempering swaps."""
