"""Models as people write them: a formula and a table, NumPyro, PyMC."""
