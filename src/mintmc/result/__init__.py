"""What a run leaves: the tree of draws, diagnostics, plots."""

from mintmc.result.diagnosis import Diagnosis

__all__ = ["Diagnosis"]
