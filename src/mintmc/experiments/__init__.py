"""The paper's experiments: figures, numbers, and claims beside measurements."""
