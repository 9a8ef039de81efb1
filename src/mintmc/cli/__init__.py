"""The command line. What a command needs is imported when it runs: help must not wait for JAX."""

from mintmc.cli.app import app, main

__all__ = ["app", "main"]
