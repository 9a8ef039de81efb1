"""Logistic regression on MNIST 1 versus 7: Figure 2 and Table 1 of the paper."""
