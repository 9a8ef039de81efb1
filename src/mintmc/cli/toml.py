"""Settings from a TOML file: options of the command, and settings of its sampler. The command line overrides them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from mintmc.cli.mistakes import mistakes, nearest

_OF_SAMPLER = "mintmc.of_sampler"


def _take(context: typer.Context, path: Path | None) -> Path | None:
    """Make what the file says the defaults of the command, and leave the rest to its sampler."""
    if path is None or context.resilient_parsing:
        return path
    with mistakes():
        found = read(path)
    own = {str(each.name) for each in context.command.params if each.param_type_name == "option"} - {"settings"}
    # As text: what is no whole number must not be cut down to one.
    context.default_map = {name: _text(value) for name, value in found.items() if name in own}
    context.meta[_OF_SAMPLER] = {name: value for name, value in found.items() if name not in own}
    return path


Settings = Annotated[
    Path | None,
    typer.Option(callback=_take, is_eager=True, help="A TOML file with options, which the command line overrides."),
]


def read(path: Path) -> dict[str, Any]:
    """What a file says, by names with underscores."""
    try:
        found = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise ValueError(f"--settings must be a TOML file, got {path}: {why}") from error
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"--settings must be a TOML file, got {path}: {error}") from error
    for name, value in found.items():
        if isinstance(value, dict):
            raise ValueError(f"--settings must have no tables, got [{name}] in {path}: write its settings without it")
    return {name.replace("-", "_"): _value(value) for name, value in found.items()}


def of_sampler(context: typer.Context) -> dict[str, Any]:
    """What the file says that is no option of the command."""
    result: dict[str, Any] = context.meta.get(_OF_SAMPLER, {})
    return result


def refuse_others(context: typer.Context) -> None:
    """Refuse what is no option of the command, where there is no sampler to take it."""
    for name in of_sampler(context):
        known = [option.removeprefix("--") for option in options_of(context)]
        hint = nearest(name.replace("_", "-"), known)
        raise ValueError(f"--settings must have options of {context.command_path} only, got {name}{hint}")


def options_of(context: typer.Context) -> Iterable[str]:
    """All options of a command, as they are written."""
    own = [name for each in context.command.params for name in each.opts if name.startswith("--")]
    return [*own, "--help"]


def _value(value: Any) -> Any:
    """Lists are tuples, and none is a word: TOML has none."""
    if isinstance(value, list):
        return tuple(map(_value, value))
    return None if value == "none" else value


def _text(value: Any) -> Any:
    return value if isinstance(value, bool) else str(value)
