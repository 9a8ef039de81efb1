"""One direction: a module imports only from its left, and there are no cycles."""

import ast
from pathlib import Path

import pytest

import mintmc

ORDER = [
    "check",
    "store.durable",
    "store.lock",
    "data",
    "energy",
    "posterior",
    "control",
    "proposals",
    "acceptance",
    "ladder",
    "kernels",
    "modes",
    "samplers",
    "result",
    "store",
    "run",
    "study",
    "experiments",
    "cli",
]
"""From left to right. A file that stands elsewhere than its folder is named by itself."""
ROOT = Path(mintmc.__file__).parent
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def name_of(path):
    """The dotted name of a module within the package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in FILES}


def imports(path):
    """The modules of the package that a file imports, by whatever kind of import."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.removeprefix("mintmc.") for alias in node.names if alias.name.startswith("mintmc."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mintmc":
            base = node.module.partition(".")[2]
            for alias in node.names:
                inner = f"{base}.{alias.name}".strip(".")
                if inner in MODULES or base:
                    yield inner if inner in MODULES else base


def place(module):
    """Where a module stands: by its own name, or by its folder's."""
    return ORDER.index(module if module in ORDER else module.split(".")[0])


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_from_its_left(module):
    for other in imports(MODULES[module]):
        assert place(other) <= place(module), f"mintmc.{module} imports mintmc.{other}"


def test_the_order_names_every_part():
    assert {module.split(".")[0] for module in MODULES} == {part.split(".")[0] for part in ORDER}


def test_no_module_imports_itself_by_way_of_others():
    edges = {module: {other for other in imports(path) if other != module} for module, path in MODULES.items()}
    while leaves := [module for module, others in edges.items() if not others & edges.keys()]:
        for module in leaves:
            del edges[module]
    assert not edges, f"these import each other: {sorted(edges)}"
