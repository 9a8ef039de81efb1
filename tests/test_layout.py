"""One direction: a module imports only from its left."""

import ast
from pathlib import Path

import pytest

import mintmc

ORDER = [
    "check",
    "durable",
    "lock",
    "data",
    "energy",
    "posterior",
    "proposals",
    "acceptance",
    "kernels",
    "ladder",
    "samplers",
    "result",
    "run",
    "experiments",
    "cli",
]
ROOT = Path(mintmc.__file__).parent
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mintmc"):
            parts = node.module.split(".")
            yield from ([parts[1]] if len(parts) > 1 else [alias.name for alias in node.names if alias.name in ORDER])


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_from_its_left(path):
    here = ORDER.index(path.relative_to(ROOT).parts[0].removesuffix(".py"))
    for part in imports(path):
        assert ORDER.index(part) <= here, f"{path.name} imports mintmc.{part}"


def test_the_order_names_every_part():
    assert {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in FILES} == set(ORDER)
