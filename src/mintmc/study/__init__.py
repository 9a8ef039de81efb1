"""Questions before and after a run."""

from mintmc.study.audit_rung import Audit
from mintmc.study.find_modes import Modes
from mintmc.study.normality import Normality

__all__ = ["Audit", "Modes", "Normality"]
