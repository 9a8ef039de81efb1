"""The command line."""

from mintmc.cli.app import app, main

__all__ = ["app", "main"]
