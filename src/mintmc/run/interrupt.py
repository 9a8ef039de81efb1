"""Ctrl-C once: stop at the next safe point. Twice: stop now."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType


class Interrupt:
    """While active, the first SIGINT only sets ``requested``; the second raises KeyboardInterrupt as usual."""

    def __init__(self) -> None:
        self.requested = False

    def __enter__(self) -> Interrupt:
        # Only the main thread may set signal handlers; elsewhere Ctrl-C keeps its ordinary meaning.
        self._previous = None
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
