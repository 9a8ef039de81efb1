"""What a mode is, and how to find one."""

from mintmc.modes.find import Mode, find_mode

__all__ = ["Mode", "find_mode"]
