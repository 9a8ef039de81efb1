"""Settings as a user would write them: what differs from the defaults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from mintmc import check
from mintmc.markup import Html, card, element, table


def written(settings: Any) -> str:
    """What to write to get these settings.

    Examples
    --------
    >>> from mintmc import MINT, Langevin
    >>> written(MINT(100, alpha=0.5, proposal=Langevin(step_size=0.1)))
    'MINT(batch_size=100, alpha=0.5, proposal=Langevin(step_size=0.1))'
    """
    given = (f"{name}={_word(value)}" for name, value, is_default in _settings(settings) if not is_default)
    return f"{type(settings).__name__}({', '.join(given)})"


def settings_card(settings: Any) -> Html:
    """All settings as a table for notebooks; those that are not defaults stand out."""

    def cell(value: Any, is_default: bool) -> Html:
        return element("span", _word(value), style="opacity: 0.6" if is_default else "font-weight: 600")

    rows = [(name, cell(value, is_default)) for name, value, is_default in _settings(settings)]
    return card(element("code", written(settings)), table(("setting", "value"), rows))


def _settings(settings: Any) -> Iterator[tuple[str, Any, bool]]:
    """Names, values, and whether a value is the default."""
    for setting in fields(settings):
        if not setting.init:
            continue
        value = getattr(settings, setting.name)
        default = setting.default_factory() if setting.default_factory is not MISSING else setting.default
        yield setting.name, value, _is_same(value, default)


def _is_same(value: Any, default: Any) -> bool:
    try:
        return bool(value == default)
    except (TypeError, ValueError):  # an array is not one answer
        return False


def _word(value: Any) -> str:
    return written(value) if is_dataclass(value) and not isinstance(value, type) else check.shown(value)
