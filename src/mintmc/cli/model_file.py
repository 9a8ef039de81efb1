"""A user's model file: a Python file that defines ``posterior`` and ``init``."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any, NamedTuple

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
    except Exception as error:
        raise ValueError(f"{path} failed: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    knows_init = hasattr(names.get("posterior"), "init")  # a regression on a table, a NumPyro model
    for name in ("posterior",) if knows_init else ("posterior", "init"):
        if name not in names:
            raise ValueError(f"{path} must define posterior and init, got no {name}")
    return ModelFile(names["posterior"], names.get("init"), names.get("sampler"))
