"""From ``--setting value`` pairs to a sampler: every setting of every sampler, its proposal and its ladder."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import MISSING, fields
from typing import Any

from mintmc.cli.mistakes import nearest
from mintmc.cli.words import word_of
from mintmc.control import Taylor
from mintmc.ladder.ladder import Ladder
from mintmc.ladder.rings import QuantileRings, SpacedRings
from mintmc.proposals import NUTS, Autoregressive, Hamiltonian, Langevin, RandomWalk
from mintmc.samplers.control import default_proposal
from mintmc.store.encode import listed, listed_class

PROPOSALS: dict[str, Any] = {
    "random-walk": RandomWalk,
    "langevin": Langevin,
    "hamiltonian": Hamiltonian,
    "nuts": NUTS,
    "autoregressive": Autoregressive,
}
CONTROLS: dict[str, Any] = {"taylor": Taylor}
RINGS: dict[str, Any] = {"quantile": QuantileRings, "spaced": SpacedRings}
LADDER = ("temperatures", "batch_sizes", "hottest", "rungs")


def samplers() -> dict[str, Any]:
    """All samplers that installed packages list, by the word for them.

    Examples
    --------
    >>> samplers()["mint"].__name__
    'MINT'
    """
    found = {}
    for name in listed():
        with suppress(ValueError):  # of others, and not to be used: no reason to use none
            if hasattr(kind := listed_class(name), "plan"):
                found[word_of(name)] = kind
    return found


def parse_pairs(arguments: list[str]) -> dict[str, Any]:
    """``["--batch-size", "100", "--no-penalty"]`` as ``{"batch_size": 100, "penalty": False}``.

    Examples
    --------
    >>> parse_pairs(["--batch-size", "100", "--temperatures=1,2.5", "--penalty", "--no-truncate"])
    {'batch_size': 100, 'temperatures': (1, 2.5), 'penalty': True, 'truncate': False}
    """
    settings: dict[str, Any] = {}
    waiting = list(arguments)
    while waiting:
        option = waiting.pop(0)
        if not option.startswith("--"):
            raise ValueError(f"expected --setting value, got {option!r}")
        name, has_value, value = option[2:].partition("=")
        if not has_value and waiting and not waiting[0].startswith("--"):
            has_value, value = "=", waiting.pop(0)
        if has_value:
            settings[name.replace("-", "_")] = parse_value(value)
        else:
            settings[name.removeprefix("no-").replace("-", "_")] = not name.startswith("no-")
    return settings


def parse_value(text: str) -> Any:
    """A number, ``none``, ``true``, ``false``, a list with commas, or a word.

    Examples
    --------
    >>> parse_value("1e-3"), parse_value("none,500"), parse_value("diagonal")
    (0.001, (None, 500), 'diagonal')
    """
    if "," in text:
        return tuple(parse_value(part) for part in text.split(",") if part)
    words = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value if isinstance(value, (int, float)) else text


def sampler_class(word: str) -> Any:
    """The class that a word stands for; refuses a word that stands for none."""
    known = samplers()
    if word not in known:
        raise ValueError(f"sampler must be one of {', '.join(known)}, got {word!r}{nearest(word, known)}")
    return known[word]


def build_sampler(name: str, settings: dict[str, Any], others: Iterable[str] = ()) -> Any:
    """The sampler of that name; settings that it does not have go to its proposal, its ladder or its rings.

    ``others`` are options of the command itself: who misspells one is told.

    Examples
    --------
    >>> build_sampler("mint", {"batch_size": 100, "alpha": 0.5, "step_size": 0.1}).proposal
    RandomWalk(step_size=0.1, target_acceptance=0.3, preconditioner=None)
    """
    kind, rest = sampler_class(name), dict(settings)
    own = {field.name: field for field in fields(kind)}
    parts: dict[str, Any] = {}
    if "ladder" in own:
        parts["ladder"] = _ladder({key: rest.pop(key) for key in LADDER if key in rest})
    if "rings" in own and (isinstance(rest.get("rings"), str) or "c" in rest or "count" in rest):
        parts["rings"] = _part("rings", RINGS, rest.pop("rings", "quantile"), rest, own)
    if "control" in own and "control" in rest:
        parts["control"] = _part("control", CONTROLS, rest.pop("control"), rest, own)
    if "proposal" in own:
        default: Any = own["proposal"].default_factory
        if not callable(default):
            default = type(default_proposal(parts.get("control")))
        standard = next((word for word, part in PROPOSALS.items() if part is default), None)
        if "proposal" in rest or standard is not None:  # or it has one that we do not know
            parts["proposal"] = _part("proposal", PROPOSALS, rest.pop("proposal", standard), rest, own)
    if unknown := sorted(set(rest) - set(own)):
        hint = nearest(f"--{_option(unknown[0])}", [*(f"--{_option(each)}" for each in known_settings(kind)), *others])
        raise ValueError(f"{name} must have settings {', '.join(_known(own))}, got {', '.join(unknown)}{hint}")
    is_of_batches = next(iter(own)) == "batch_size"  # which may be left out only where control lets it choose
    if "control" in own and is_of_batches and "control" not in parts and "batch_size" not in rest:
        raise ValueError(f"{name} needs --batch-size")
    needed = [f.name for f in own.values() if f.default is MISSING and f.default_factory is MISSING]
    if missing := [each for each in needed if each not in parts and each not in rest]:
        raise ValueError(f"{name} needs --{_option(missing[0])}")
    return kind(**parts, **rest)


def _part(what: str, kinds: dict[str, Any], word: Any, rest: dict[str, Any], own: dict[str, Any]) -> Any:
    """A proposal or a rule for rings, with the settings that only it has."""
    if word not in kinds:
        raise ValueError(f"{what} must be one of {', '.join(kinds)}, got {word!r}")
    settings = {}
    for field in fields(kinds[word]):
        # --proposal-steps where the sampler has --steps of its own.
        for key in (f"{what}_{field.name}", field.name):
            if key in rest and key not in own:
                settings[field.name] = rest.pop(key)
    return kinds[word](**settings)


def _ladder(given: dict[str, Any]) -> Ladder:
    ways = {"temperatures"}, {"hottest", "rungs"}
    if set(given) - {"batch_sizes"} not in ways:
        raise ValueError(
            f"ladder must be given by --temperatures, or by --hottest and --rungs, got {given or 'nothing'}"
        )
    temperatures = given.get("temperatures") or Ladder.geometric(given["hottest"], given["rungs"]).temperatures
    return Ladder(temperatures, given.get("batch_sizes"))


def known_settings(kind: Any) -> list[str]:
    """Every setting that can be asked for with a sampler: its own, and those of its parts."""
    own = [field.name for field in fields(kind)]
    parts = [*(PROPOSALS.values() if "proposal" in own else ()), *(CONTROLS.values() if "control" in own else ())]
    parts += RINGS.values() if "rings" in own else ()
    more = [field.name for part in parts for field in fields(part)] + (list(LADDER) if "ladder" in own else [])
    return list(dict.fromkeys([*own, *more]))


def _option(name: str) -> str:
    return name.replace("_", "-")


def _known(own: dict[str, Any]) -> list[str]:
    return [name for name in own if name not in ("ladder", "reference")]
