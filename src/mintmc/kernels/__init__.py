"""One step of a Markov chain: proposal times acceptance test, and kernels of their own."""
