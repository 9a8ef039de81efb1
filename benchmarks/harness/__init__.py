"""What the benchmarks share: processes, clocks, peers, rows, and the table that they end in."""
