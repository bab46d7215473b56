"""The house: each folder's README says what it may import, nothing goes round in circles, and folders stay small."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "tcdsl"

# What `import tcdsl` itself loads.
FIRST = {"config", "errors", "installation", "large_stack", "locks", "pass_names", "tracebacks"}

# What modules directly under tcdsl/ may import; folders say it in the last lines of their READMEs.
MODULES_MAY_IMPORT = {
    "": {
        *("comprehensions", "config", "errors", "frontend", "installation", "interop", "library", "runtime"),
        *("skriptnd", "syntax", "tensors", "tile", "train"),
    },
    "__main__": {"tools"},
    "config": {"errors", "locks", "pass_names", "tracebacks"},
    "errors": {"error_catalogue", "span"},
    "indices": set(),
    "installation": set(),
    "large_stack": {"locks"},
    "locks": set(),
    "progress": {"config"},
    "pass_names": {"errors"},
    "primitives": {"tensors", "tracebacks"},
    "recent": set(),
    "sizes": {"frontend", "indices"},
    "span": {"recent"},
    "tile": {"frontend", "tensors", "tracebacks"},
    "tracebacks": {"errors", "installation", "large_stack", "span"},
}

MOST_FILES = 16

# Rooms that other packages do not see, and why.
_BY_NAME = "programs run on any target: others know what a target is, and find each by its name"
PRIVATE = {"targets/cpu": _BY_NAME, "targets/numba": _BY_NAME}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def room_of(module: str) -> str:
    """The folder of a module, such as ``ir/text``; a module directly under tcdsl/ is a room of its own."""
    inside = FILES[module].parent.relative_to(PACKAGE).as_posix()
    return inside if inside != "." else module.removeprefix("tcdsl").removeprefix(".")


@cache
def syntax_tree(module: str) -> ast.Module:
    return ast.parse(FILES[module].read_text())


@cache
def nodes(module: str) -> list[ast.AST]:
    return list(ast.walk(syntax_tree(module)))


def imports(module: str) -> set[str]:
    """The modules of this package that ``module`` imports, at any time, or names in strings."""
    found = set()
    for node in nodes(module):
        match node:
            case ast.Import(names=names):
                found.update(alias.name for alias in names)
            case ast.ImportFrom(module=source, names=names, level=level):
                assert level == 0, f"{module}: write absolute imports"
                inner = [f"{source}.{alias.name}" for alias in names]
                found.update(name if name in FILES else source or "" for name in inner)
            case ast.Constant(value=str(text)) if text.startswith("tcdsl."):
                found.add(text.split(":")[0])
    return (found & FILES.keys()) - {module}


@cache
def import_graph() -> dict[str, set[str]]:
    return {module: imports(module) for module in FILES}


def readme(room: str) -> Path:
    return PACKAGE / room / "README.md"


@cache
def may_import(room: str) -> set[str]:
    """What the README of a room says, or the table above."""
    if room in MODULES_MAY_IMPORT:
        return MODULES_MAY_IMPORT[room]
    text = readme(room).read_text()
    assert text.count("May import:") == 1, f"{readme(room)} says what its files may import in its last lines"
    return set(re.findall(r"`([^`]+)`", text.partition("May import:")[2]))


def name_for(room: str, other: str) -> str:
    """How a room speaks of another one: rooms of its own package by their names, others by their packages."""
    package = other.split("/", maxsplit=1)[0]
    private = any(other == inner or other.startswith(f"{inner}/") for inner in PRIVATE)
    return other if private or room.split("/", maxsplit=1)[0] == package else package


def are_relatives(module: str, other: str) -> bool:
    """Whether ``module`` is the `__init__` of a folder that ``other`` lies in: it offers what is inside."""
    inner = module != "tcdsl" and FILES[module].name == "__init__.py"
    return inner and FILES[other].is_relative_to(FILES[module].parent)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("README.md")), ids=lambda path: path.parent.name)
def test_readmes_name_files_that_exist(path: Path) -> None:
    named = re.findall(r"`([\w./]+(?:\.py|/))`", path.read_text(encoding="utf-8"))
    missing = {name for name in named if not any((folder / name).exists() for folder in (path.parent, ROOT, PACKAGE))}
    assert not missing, "files are named as seen from the README's folder, from tcdsl/ or from the root"


@pytest.mark.parametrize("room", sorted({room_of(module) for module in FILES}))
def test_rooms_import_what_they_say(room: str) -> None:
    used: dict[str, str] = {}
    for module in FILES:
        if room_of(module) != room:
            continue
        for other in import_graph()[module]:
            there = room_of(other)
            if there not in ("", room) and not are_relatives(module, other):
                used.setdefault(name_for(room, there), f"{module} imports {other}")
    unsaid = {name: example for name, example in used.items() if name not in may_import(room)}
    assert not unsaid, f"what {room or 'tcdsl'} may import does not list {unsaid}"
    assert may_import(room) == used.keys(), "a room that is no longer imported is no longer listed"


def test_private_rooms_are_known_to_their_package_alone() -> None:
    rooms = {room_of(module) for module in FILES}
    assert rooms >= PRIVATE.keys()
    for private in PRIVATE:
        package = private.split("/")[0]
        others = {room for room in rooms if room.split("/")[0] != package}
        assert not {room for room in others if any(name.startswith(private) for name in may_import(room))}
        assert name_for("runtime/calling", f"{private}/call") == f"{private}/call"  # which no README lists


def test_rooms_have_one_direction() -> None:
    rooms = {room_of(module) for module in FILES}
    assert rooms >= MODULES_MAY_IMPORT.keys()
    # Packages among each other, and the rooms of one package among each other.
    packages: dict[str, set[str]] = {room.split("/")[0]: set() for room in rooms}
    for room in rooms:
        packages[room.split("/")[0]] |= {name.split("/")[0] for name in may_import(room)} - {room.split("/")[0]}
    inside = {room: {name for name in may_import(room) if name.split("/")[0] == room.split("/")[0]} for room in rooms}
    assert not list(circles(packages))
    assert not list(circles(inside))


def circles(graph: Mapping[str, Iterable[str]]) -> Iterator[frozenset[str]]:
    """The strongly connected parts of more than one node, by Tarjan's algorithm."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    waiting: list[str] = []

    def visit(node: str) -> Iterator[frozenset[str]]:
        order[node] = low[node] = len(order)
        waiting.append(node)
        for other in sorted(graph[node]):
            if other not in order:
                yield from visit(other)
                low[node] = min(low[node], low[other])
            elif other in waiting:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            part = frozenset(waiting[waiting.index(node) :])
            del waiting[waiting.index(node) :]
            if len(part) > 1:
                yield part

    for node in sorted(graph):
        if node not in order:
            yield from visit(node)


def test_circles_are_seen() -> None:
    graph = {"a": "b", "b": "c", "c": "a", "d": "ae", "e": "", "f": "g", "g": "f"}
    assert set(circles(graph)) == {frozenset("abc"), frozenset("fg")}


def test_files_have_one_direction() -> None:
    # At any time: also in what they import while they run, and for types alone.
    assert not list(circles(import_graph()))


@pytest.mark.parametrize("folder", sorted({path.parent for path in FILES.values()}), ids=lambda path: path.name)
def test_folders_stay_small(folder: Path) -> None:
    assert len(list(folder.glob("*.py"))) <= MOST_FILES


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_import_loads_no_heavy_package() -> None:
    heavy = {
        "numba",
        "llvmlite",
        "islpy",
        "astor",
        "rich",
        "platformdirs",
        "sklearn",
        "matplotlib",
        "torch",
        "jax",
    }
    loaded = run_python("import sys, tcdsl; print(*{name.split('.')[0] for name in sys.modules})").split()
    assert "tcdsl" in loaded
    assert not heavy & set(loaded)


def test_import_loads_no_more_than_settings_and_errors() -> None:
    # Everything else is loaded when it is first asked for; `python -m benchmarks.calls` measures how long it takes.
    loaded = run_python("import sys, tcdsl; print(*(name for name in sys.modules if name.startswith('tcdsl')))").split()
    assert set(loaded) == {"tcdsl"} | {f"tcdsl.{name}" for name in FIRST}


def test_texts_are_read_without_what_stages_and_compiles() -> None:
    text = "import nn; graph g { @input { x: real[2]; } @output { y: real[2]; } @compose { y = nn.relu(x); } }"
    loaded = run_python(f"import sys, tcdsl; tcdsl.skriptnd.parse({text!r}); print(*sys.modules)").split()
    assert "tcdsl.frontend.skriptnd.composition" in loaded
    assert not {"islpy", "llvmlite", "tcdsl.frontend.staging.session", "tcdsl.runtime.function"} & set(loaded)


def test_files_say_what_they_offer() -> None:
    for module in FILES:
        tree = syntax_tree(module)
        assert ast.get_docstring(tree), f"{module} opens with a sentence on what it is"
        assigned = (t for node in tree.body if isinstance(node, ast.Assign) for t in node.targets)
        defines = any(isinstance(n, ast.FunctionDef | ast.ClassDef) for n in tree.body)
        assert not defines or any(isinstance(t, ast.Name) and t.id == "__all__" for t in assigned), module


def test_files_and_functions_stay_short() -> None:
    for module, path in FILES.items():
        assert len(path.read_text().splitlines()) <= 600, module
        for node in nodes(module):
            if isinstance(node, ast.FunctionDef) and node.end_lineno is not None:
                assert node.end_lineno - node.lineno < 75, f"{module}.{node.name} is too long: split it"
