"""One direction: a module imports only from its left, there are no cycles, and what runs samplers knows none."""

import ast
from dataclasses import is_dataclass
from pathlib import Path

import pytest

import mintmc
from mintmc import samplers

FRONT = "mintmc"
"""What ``import mintmc`` alone brings: everything that a user sees."""
ORDER = [
    "check",
    "markup",
    "written",
    "compiled",
    "count",
    "apart",
    "reordered",
    "threefry",
    "shapes",
    "statistics",
    "store.durable",
    "store.lock",
    "data",
    "energy",
    "params",
    "transforms",
    "shown",
    "flat",
    "modelled",
    "posterior",
    "control",
    "modes.label",
    "proposals",
    "acceptance",
    "ladder",
    "kernels",
    "modes",
    "store.encode",
    "result",
    "store",
    "run",
    "samplers",
    "study",
    "models",
    "protocols",
    FRONT,
    "experiments",
    "cli",
    "__main__",
]
"""From left to right. A file that stands elsewhere than its folder is named by itself."""
ROOT = Path(mintmc.__file__).parent


def modules_of(root):
    """All modules of a package but its front, by their dotted names within it."""
    names = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if parts != ("__init__",):
            names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


MODULES = modules_of(ROOT)


def imports(source, modules=MODULES):
    """The modules of the package that a source imports, at the top or within a function, by whatever kind of import."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for name in (alias.name for alias in node.names if alias.name.split(".")[0] == FRONT):
                yield _module(name.partition(".")[2], modules)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import of {node.module or '.'}: where it leads is not to be seen"
            if (node.module or "").split(".")[0] == FRONT:
                base = node.module.partition(".")[2]
                yield from (_module(f"{base}.{alias.name}".strip("."), modules) for alias in node.names)


def _module(name, modules):
    """The module that a dotted name is, or is in; the front if none is."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name or FRONT


def place(module):
    """Where a module stands: by its own name, or by its folder's."""
    return ORDER.index(module if module in ORDER else module.split(".")[0])


def from_the_right(module, source):
    """What a module imports and must not."""
    return [other for other in imports(source) if place(other) > place(module)]


def in_cycles(sources):
    """The modules that import themselves by way of others."""
    edges = {name: {other for other in imports(text, sources) if other != name} for name, text in sources.items()}
    while edges:
        imported = set().union(*edges.values())
        ends = [module for module, others in edges.items() if module not in imported or not others & edges.keys()]
        if not ends:
            break
        for module in ends:
            del edges[module]
    return sorted(edges)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_from_its_left(module):
    assert from_the_right(module, MODULES[module].read_text()) == []


def test_the_order_names_every_part():
    assert {module.split(".")[0] for module in MODULES} == {part.split(".")[0] for part in ORDER} - {FRONT}
    assert all(part in MODULES for part in ORDER if part != FRONT)


def test_no_module_imports_itself_by_way_of_others():
    assert in_cycles({module: path.read_text() for module, path in MODULES.items()}) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import mintmc.run.sample", ["run.sample"]),
        ("import mintmc.run.sample as runner, os", ["run.sample"]),
        ("import mintmc", [FRONT]),
        ("from mintmc import sample, energy", [FRONT]),
        ("from mintmc.run import sample, chains", ["run.sample", "run.chains"]),
        ("from mintmc.run.sample import resume", ["run.sample"]),
        ("def f():\n    class A:\n        from mintmc.cli.app import app", ["cli.app"]),
        ("if TYPE_CHECKING:\n    import mintmc.samplers", ["samplers"]),
        ("from mintmc import check, energy\nimport mintmcx.run", []),
    ],
)
def test_every_kind_of_import_is_seen(source, found):
    """Of the energy, which stands far left."""
    assert from_the_right("energy", source) == found


def test_a_relative_import_is_refused():
    with pytest.raises(AssertionError, match="relative import"):
        list(imports("from . import energy"))


def test_a_cycle_is_seen_wherever_its_imports_stand():
    sources = {
        "a": "from mintmc import b",
        "b": "def f():\n    import mintmc.c",
        "c": "if TYPE_CHECKING:\n    from mintmc.a import x",
        "d": "from mintmc import a, e",
        "e": "",
    }
    assert in_cycles(sources) == ["a", "b", "c"]
    assert in_cycles(sources | {"c": ""}) == []


SAMPLERS = {name for name, kind in vars(samplers).items() if isinstance(kind, type) and is_dataclass(kind)}


def words(source):
    """Every name that code uses: not what it says in strings and comments."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (part for alias in node.names for part in (alias.name.split(".")[-1], alias.asname))


@pytest.mark.parametrize("module", [module for module in MODULES if module.split(".")[0] in ("run", "store")])
def test_what_runs_and_stores_samplers_names_none(module):
    assert SAMPLERS.isdisjoint(words(MODULES[module].read_text()))


def test_a_name_of_a_sampler_would_be_seen():
    assert {"MINT", "SGLD", "MINTEE"} < SAMPLERS
    for source in ("isinstance(x, MINT)", "mintmc.MINT(3)", "from a import MINT", "from a import b as MINT"):
        assert not SAMPLERS.isdisjoint(words(source))
    assert SAMPLERS.isdisjoint(words('"""MINT"""\nx = "MINT"  # MINT'))
