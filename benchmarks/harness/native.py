"""Programs in C: compiled here with what vectorises best, run on one core, on all of them, or with threads."""

import shutil
import subprocess
from pathlib import Path

from harness.process import Failed, cores

SOURCES = Path(__file__).parents[1] / "c"
FLAGS = ("-O3", "-march=native", "-ffast-math", "-pthread")


def has_compiler() -> bool:
    """Whether there is one."""
    return (shutil.which("cc") or shutil.which("gcc")) is not None


def built(name: str, **defined: int) -> str:
    """The path of ``c/name.c``, compiled with these macros."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise Failed("the comparison needs a C compiler (cc or gcc)")
    suffix = "".join(f"-{value}" for value in defined.values())
    program = SOURCES.parent / "build" / f"{name}{suffix}"
    program.parent.mkdir(exist_ok=True)
    macros = [f"-D{macro}={value}" for macro, value in defined.items()]
    command = [compiler, *FLAGS, *macros, str(SOURCES / f"{name}.c"), "-o", str(program), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"{name}.c could not be compiled:\n{done.stderr[-2000:]}")
    return str(program)


def printed(program: str, *arguments: object) -> list[float]:
    """The numbers that it prints."""
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def on_every_core(program: str, *arguments: object) -> list[list[float]]:
    """The numbers of as many copies as there are cores, all at once."""
    command = [program, *map(str, arguments)]
    copies = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(cores())]
    return [[float(word) for word in copy.communicate()[0].split()] for copy in copies]
