"""What a run leaves: the tree of draws, diagnostics, plots."""

from mintmc.result.diagnosis import Diagnosis
from mintmc.result.evidence import Evidence

__all__ = ["Diagnosis", "Evidence"]
