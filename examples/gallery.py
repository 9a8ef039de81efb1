"""Runs the examples and keeps what they print and draw: ``python examples/gallery.py --out docs/gallery [NAME...]``.

`make gallery` runs all of them; the pages of docs/gallery show the files that this writes.
"""

import argparse
import io
import sys
import warnings
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent
NAMES = (
    "regression_on_a_table",
    "poisson_regression",
    "robust_regression",
    "mixture_label_switching",
    "neural_network/plain_jax",
    "neural_network/equinox_module",
    "neural_network/flax_module",
    "numpyro_model",
    "pymc_model",
    "marginalised_groups",
)
"""Files of this folder; each has a ``main`` that prints its results and returns a tree and a figure."""


def loaded(name):
    """An example, imported as it is when it is run by itself: its folder is where it finds its neighbours."""
    path = HERE / name
    sys.path.insert(0, str(path.parent))
    try:
        return import_module(path.name)
    finally:
        sys.path.remove(str(path.parent))


def keep(name, folder):
    """Run one; what it printed, warnings included, and its picture are files of the folder."""
    printed = io.StringIO()
    with redirect_stdout(printed), warnings.catch_warnings():
        warnings.showwarning = lambda message, category, *_: printed.write(f"{category.__name__}: {message}\n")
        _, figure = loaded(name).main()
    stem = Path(name).name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stem}.txt").write_text(printed.getvalue())
    figure.savefig(folder / f"{stem}.png", dpi=110)
    print(f"== {name}\n{printed.getvalue()}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"among {', '.join(NAMES)}; default: all")
    parser.add_argument("--out", type=Path, required=True, help="folder for the printed text and the figures")
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in NAMES]:
        parser.error(f"NAME must be among {', '.join(NAMES)}, got {unknown[0]}")
    for each in given.names or NAMES:
        keep(each, given.out)
