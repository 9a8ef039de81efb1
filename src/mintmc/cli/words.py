"""How the command line calls samplers, known without importing any."""

from __future__ import annotations

SAMPLERS = {
    "mint": ("MINT", "on batches, tempered; with --control taylor at T = 1"),
    "metropolis-hastings": ("MetropolisHastings", "on all data"),
    "leaps": ("Leaps", "many modes at T = 1, by leaps between them"),
    "parallel-tempering": ("ParallelTempering", "a ladder of temperatures, by swaps"),
    "equi-energy": ("EquiEnergy", "a ladder of temperatures, by jumps"),
    "mintee": ("MINTEE", "the paper's ladder on batches"),
    "barker": ("BarkerMH", "batches that grow until a Barker test can decide"),
    "austere": ("AustereMH", "batches that grow until a t-test can decide"),
    "confidence": ("ConfidenceMH", "batches that grow until a concentration bound can decide"),
    "scalable": ("ScalableMH", "exact on a few rows, with bounds"),
    "firefly": ("FireflyMC", "exact on bright rows, with a lower bound"),
    "tuna": ("TunaMH", "exact on batches, with bounds"),
    "sgld": ("SGLD", "stochastic gradient Langevin dynamics"),
    "sghmc": ("SGHMC", "stochastic gradient Hamiltonian dynamics"),
}
"""The word for each sampler of this package, its class, and what it is in a few words."""
_WORDS = {name: word for word, (name, _) in SAMPLERS.items()}


def word_of(name: str) -> str:
    """What the command line calls a class of settings; that of another package by its name in lower case.

    Examples
    --------
    >>> word_of("BarkerMH"), word_of("YourSampler")
    ('barker', 'yoursampler')
    """
    return _WORDS.get(name, name.lower())


def listing() -> str:
    """All samplers of this package, a line each."""
    width = max(map(len, SAMPLERS))
    return "\n".join(f"{word:<{width}}  {about}" for word, (_, about) in SAMPLERS.items())
