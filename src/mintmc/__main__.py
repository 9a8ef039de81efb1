"""``python -m mintmc`` is ``mintmc``."""

from mintmc.cli import main

main()
