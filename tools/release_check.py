"""Whether a release can be installed: by hand, before it is made (`make release-check`; some ten minutes).

Builds wheel and sdist, installs them in clean environments, and runs there what a new user would: the first example of
the README, the line for ArviZ, `mintmc --help`, `mintmc sample`, `mintmc summary` and `mintmc report`. Every Python
gets the newest versions of all that is needed, the oldest Python also the lowest that pyproject.toml allows. A Python
that is neither here nor to be had is named at the end, and the check has then failed.

    python tools/release_check.py [--python 3.11 --python /path/to/python3.12 ...] [--only highest|lowest|sdist|extras]
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from pages import blocks  # noqa: E402

PYTHONS = ("3.11", "3.12", "3.13")
MODEL = """
import numpy as np, mintmc
x = np.random.default_rng(0).normal(3.0, 1.0, size=10_000)
posterior = mintmc.Posterior(lambda p, x: -0.5 * (x - p["mean"]) ** 2, x)
init = {"mean": 0.0}
"""
ARVIZ = """
import sys, arviz, arviz_stats, mintmc
from model import init, posterior
tree = mintmc.sample(posterior, mintmc.MetropolisHastings(), init=init, draws=300, progress=False)
arviz_stats.summary(tree)
if sys.version_info < (3, 12):
    tree = arviz.InferenceData(**{name: tree[name].to_dataset() for name in tree.children})
arviz.plot_trace(tree)
"""
EXTRAS = """
import sys
sys.path.insert(0, {examples!r})
import numpyro_model, pymc_model, regression_on_a_table
for example in (regression_on_a_table, numpyro_model, pymc_model):
    example.main(n=3000, draws=200)
import mintmc
from model import init, posterior
mintmc.sample(posterior, mintmc.MetropolisHastings(mintmc.NUTS()), init=init, draws=100, warmup=200, progress=False)
"""


def run(*words, cwd=ROOT):
    """Run a command; what it printed is shown if it fails, and the check ends."""
    print("  $", *(word if len(word) < 80 else "..." for word in map(str, words)), flush=True)
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([*map(str, words)], cwd=cwd, capture_output=True, text=True, env=clean)
    if done.returncode:
        sys.exit(f"{done.stdout}\n{done.stderr}\nfailed: {' '.join(map(str, words))[:200]}")
    return done.stdout


def uv(*words):
    """Uv of the environment that runs this."""
    return run(Path(sys.executable).parent / "uv", *words)


def interpreter(python):
    """The path of such a Python: that of uv, or of pyenv, whose shims uv cannot use, or a new one; None if none is."""
    if Path(python).exists():
        return python
    program = Path(sys.executable).parent / "uv"

    def uv_python(*words):
        done = subprocess.run([program, "python", *words], capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else None

    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = uv_python("find", python) or next(map(str, sorted(pyenv.glob(f"{python}.*/bin/python"))), None)
    if found is None and uv_python("install", python) is not None:
        found = uv_python("find", "--managed-python", python)
    return found


def environment(folder, python, *what):
    """A clean environment with some things installed."""
    uv("venv", "--quiet", "--python", python, folder)
    uv("pip", "install", "--quiet", "--python", folder / "bin" / "python", *what)
    return folder / "bin"


def first_example():
    """The first block of the README."""
    return next(block.text for block in blocks((ROOT / "README.md").read_text()) if block.kind == "python")


def try_out(binaries, folder, *programs):
    """What a new user does first."""
    (folder / "model.py").write_text(MODEL)
    run(binaries / "mintmc", "--help", cwd=folder)
    sampled = ("--sampler", "mint", "--batch-size", "100", "--temperature", "1", "--control", "taylor")
    run(binaries / "mintmc", "sample", "model.py", *sampled, "--draws", "200", "--out", "run.zarr", cwd=folder)
    print(run(binaries / "mintmc", "summary", "run.zarr", cwd=folder))
    run(binaries / "mintmc", "report", "run.zarr", cwd=folder)
    for number, program in enumerate(programs):
        (folder / f"program_{number}.py").write_text(program)
        print(run(binaries / "python", f"program_{number}.py", cwd=folder))


def highest(wheel, folder, python):
    """The newest versions, and ArviZ beside them."""
    binaries = environment(folder / "env", python, wheel, "arviz")
    try_out(binaries, folder, first_example(), ARVIZ)


def lowest(wheel, folder, python):
    """The lowest versions that we say we need."""
    binaries = environment(folder / "env", python, wheel, "--resolution", "lowest-direct")
    try_out(binaries, folder, first_example())


def extras(wheel, folder, python):
    """All optional parts, the lowest and the newest versions."""
    program = EXTRAS.format(examples=str(ROOT / "examples"))
    for name, options in (("lowest", ("--resolution", "lowest-direct")), ("newest", ())):
        inner = folder / name
        inner.mkdir()
        try_out(environment(inner / "env", python, f"mintmc[all] @ {wheel.as_uri()}", *options), inner, program)


def from_source(sdist, folder, python):
    """The sdist."""
    try_out(environment(folder / "env", python, sdist), folder)


def main():
    """Every check, each in a folder of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", help=f"a version or an interpreter; default: {', '.join(PYTHONS)}")
    parser.add_argument("--only", choices=["highest", "lowest", "sdist", "extras"], help="one kind of check")
    given = parser.parse_args()
    asked = given.python or PYTHONS
    found = {python: interpreter(python) for python in asked}
    pythons = [path for path in found.values() if path is not None]
    if not pythons:
        sys.exit(f"nothing was checked: no Python {', '.join(asked)} is here, and none could be installed")
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        run(sys.executable, "-m", "build", "--outdir", work / "dist")
        wheel, sdist = (next((work / "dist").glob(pattern)) for pattern in ("*.whl", "*.tar.gz"))
        checks = [("highest", highest, wheel, python) for python in pythons]
        checks += [("lowest", lowest, wheel, pythons[0]), ("sdist", from_source, sdist, pythons[-1])]
        checks += [("extras", extras, wheel, pythons[0])]
        for number, (name, check, package, python) in enumerate(checks):
            if given.only in (None, name):
                print(f"{name}, Python {python}", flush=True)
                (work / str(number)).mkdir()
                check(package, work / str(number), python)
    if missing := [python for python, path in found.items() if path is None]:
        sys.exit(f"the rest is well; not checked: Python {', '.join(missing)}, not here, and it could not be installed")
    print("all is well")


if __name__ == "__main__":
    main()
