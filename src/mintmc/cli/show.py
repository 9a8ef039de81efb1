"""How a run ends on the command line: table, verdict and where it is; or all of it as JSON."""

from __future__ import annotations

import json
import math
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import typer
from jax import process_count

from mintmc.result import diagnose as judging
from mintmc.result.reading import draws_group
from mintmc.result.summary import summary
from mintmc.result.tempered import TemperedDraws, is_tempered, said
from mintmc.result.worst import parameters, worst
from mintmc.run.sample import Interrupted
from mintmc.run.until import Ess, RHat

_MOST_ROWS = 40
"""Parameters up to which all are in the table."""
_WORST = 10


@contextmanager
def quietly(wanted: bool) -> Iterator[None]:
    """Within it, what anybody prints goes to standard error: standard output is for JSON."""
    if not wanted:
        yield
        return
    with redirect_stdout(sys.stderr):
        yield


def goal(ess: float | None, rhat: float | None) -> Any:
    """What ``--until-ess`` and ``--until-rhat`` ask for."""
    if ess is not None and rhat is not None:
        raise ValueError(f"--until-ess or --until-rhat must be given alone, got {ess:g} and {rhat:g}")
    return Ess(ess) if ess is not None else RHat(rhat) if rhat is not None else None


def show(run: Callable[[], Any], out: Path, file: Path, wants_json: bool) -> None:
    """Run, then say how it went and where it is; if interrupted, how to go on."""
    with warnings.catch_warnings(record=True) as caught, quietly(wants_json):
        warnings.simplefilter("always")
        try:
            tree = run()
        except KeyboardInterrupt:
            tree = None
    if tree is None or any(issubclass(warning.category, Interrupted) for warning in caught):
        how = f"mintmc resume {out} {file}" if process_count() == 1 else "the same again in every process"
        typer.echo(f"interrupted; to go on: {how}", err=True)
        raise typer.Exit(130)
    found = judging.diagnose(tree)
    if wants_json:
        about = {"out": str(out), "draws": tree[draws_group(tree)].sizes["draw"], "stopped": tree.attrs.get("stopped")}
        typer.echo(
            as_json(
                {**about, "temperature": tree.attrs["temperature"], **verdict(found), "table": rows(_table(tree)[0])}
            )
        )
        return
    typer.echo(table_of(tree, out))
    typer.echo(str(found))
    if "stopped" in tree.attrs:
        typer.echo(tree.attrs["stopped"])
    typer.echo(f"draws: {out}")


def table_of(tree: Any, out: Path) -> str:
    """The table of a run; of many parameters only those that mix worst."""
    above = f"{said(tree)}:\n" if is_tempered(tree) else ""
    table, is_summary = _table(tree)
    if is_summary:
        return f"{above}{as_text(table)}"
    head = f"The {_WORST} of {len(table):,} parameters that mix worst (mintmc summary {out} shows all):"
    return f"{above}{head}\n{as_text(table.head(_WORST))}"


def as_text(table: Any) -> str:
    """A table whose rows are as wide as the terminal at most: columns that do not fit follow below all rows."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    return str(table.to_string(line_width=width))


def _table(tree: Any) -> tuple[Any, bool]:
    """All parameters, the worst first if they are many; whether the table is that of ``summary``, which takes long."""
    count = parameters(tree)
    if count > _MOST_ROWS:
        return worst(tree, count), False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TemperedDraws)  # the line above the table says so
        return summary(tree), True


def verdict(found: Any) -> dict[str, Any]:
    """A diagnosis as words and numbers."""
    said = {"warnings": list(found.warnings), "notes": list(found.notes)}
    return {"trusted": found.trusted, **said, "numbers": found.numbers}


def rows(table: Any) -> dict[str, dict[str, float]]:
    """A table by row and column."""
    return {str(name): {str(key): value for key, value in row.items()} for name, row in table.iterrows()}


def as_json(value: Any) -> str:
    """JSON, in which what is no number is null."""
    return json.dumps(_plain(value), indent=2, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
