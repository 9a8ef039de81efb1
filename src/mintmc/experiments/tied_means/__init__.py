"""The tied-means mixture of a million observations: MINT at work, Figure 1 of the paper."""
