"""A user's model file: a Python file that defines ``posterior`` and ``init``."""

from __future__ import annotations

import linecache
import runpy
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from mintmc.posterior import Posterior


class ModelFile(NamedTuple):
    """What a model file defines."""

    posterior: Posterior
    init: Any
    sampler: Any  # None if it defines none


def load(path: Path) -> ModelFile:
    """Run the file and take what it defines. Raises ValueError with one line for whatever goes wrong in it."""
    if not path.is_file():
        raise ValueError(f"FILE must be a Python file that defines posterior and init, got {path}")
    # A model file may import its neighbours, as a script may.
    sys.path.insert(0, str(path.parent))
    try:
        names = runpy.run_path(str(path))
    except (Exception, SystemExit) as error:
        where = line_in(error, path)
        said = f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}".removesuffix(": ")
        raise ValueError(f"{path} failed{'' if where is None else f' in {where}'}: {said}") from error
    finally:
        sys.path.pop(0)
    knows_init = hasattr(names.get("posterior"), "init")  # a regression on a table, a NumPyro model
    for name in ("posterior",) if knows_init else ("posterior", "init"):
        if name not in names:
            raise ValueError(f"{path} must define posterior and init, got no {name}")
    return ModelFile(names["posterior"], names.get("init"), names.get("sampler"))


def line_in(error: BaseException, path: Path) -> str | None:
    """The last line of a file that an error came through, with its number; None if it came through none."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"line {error.lineno}, {(error.text or '').strip()!r}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    if not lines or lines[-1] is None:
        return None
    return f"line {lines[-1]}, {linecache.getline(str(path), lines[-1]).strip()!r}"
