"""A user's mistake is one line on standard error and exit code 2, never a traceback or a box."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

MISTAKE = 2
"""The exit code that says so."""
debug = [False]
"""What ``--debug`` said last."""
_Refused: Any = typer.BadParameter.__mro__[2]
"""What every usage error is: of Click, which newer versions of Typer hold within themselves."""


class OneLine(TyperGroup):
    """The commands, whose usage errors are one line."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **others: Any,
    ) -> Any:
        """Run; ends the process if ``standalone_mode``."""
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **others)
        except _Refused as error:
            if not standalone_mode:
                raise
            if type(error).__name__ == "NoArgsIsHelpError":
                error.show()
            else:
                typer.echo(f"error: {_in_one_line(error)}", err=True)
            sys.exit(error.exit_code)
        except typer.Abort:
            if not standalone_mode:
                raise
            typer.echo("aborted", err=True)
            sys.exit(1)
        if not standalone_mode:
            return code
        sys.exit(code if isinstance(code, int) else 0)


def _in_one_line(error: Any) -> str:
    context = getattr(error, "ctx", None)
    if hasattr(error, "possibilities"):
        known = [] if context is None else [name for each in context.command.params for name in each.opts]
        said = f"there is no option {error.option_name}{nearest(error.option_name, [*known, '--help'])}"
    else:
        said = " ".join(error.format_message().split()).rstrip(".")
    return said if context is None else f"{said} (see {context.command_path} --help)"


def nearest(word: str, known: Iterable[str]) -> str:
    """``; did you mean ...?`` if something known is like it, else nothing.

    Examples
    --------
    >>> nearest("--drawz", ["--draws", "--thin"]), nearest("--xyz", ["--draws"])
    ('; did you mean --draws?', '')
    """
    found = get_close_matches(word, list(known), n=1, cutoff=0.7)
    return f"; did you mean {found[0]}?" if found else ""


@contextmanager
def mistakes(timeout: int = 0, file: Path | None = None) -> Iterator[None]:
    """A user's mistake within it ends the command; if it was made in ``file``, with the line there."""
    try:
        yield
    except typer.Exit:
        raise
    except RuntimeError as error:
        _explain_loss(error, timeout)
        raise
    except (ValueError, TypeError, OSError, ImportError) as error:
        if debug[-1]:
            raise
        fail(str(error) + _line_of(error, file))


def fail(message: str) -> NoReturn:
    """Say what is wrong and end."""
    typer.echo(f"error: {' '.join(message.split())}", err=True)
    raise typer.Exit(MISTAKE)


def check_parent(option: str, path: Path) -> None:
    """Refuse a path in a folder that is not there: most likely it was meant otherwise."""
    if not path.absolute().parent.is_dir():
        raise ValueError(f"{option} must be in a folder that is there, got {path}: no folder {path.absolute().parent}")


def _line_of(error: BaseException, file: Path | None) -> str:
    """Where in the user's file a function was that failed, if it was one of his."""
    from mintmc.cli.model_file import line_in

    found = None if file is None or error.__cause__ is None else line_in(error.__cause__, file)
    return "" if found is None or found in str(error) else f" ({file}, {found})"


def _explain_loss(error: RuntimeError, timeout: int) -> None:
    """Of several processes, another may be gone; that is said in a line."""
    from jax import process_count
    from jax.errors import JaxRuntimeError

    if isinstance(error, JaxRuntimeError) and process_count() > 1:
        time.sleep(2 * timeout)  # JAX finds out which process is gone, and the guard says so
        fail(f"another process is gone ({str(error).splitlines()[0]}); start the same again, in all, to go on")
