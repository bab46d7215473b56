"""The packages import in one direction, without cycles, and ``import tcdsl`` loads little."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "tcdsl"

# A package may import itself and those named here. Modules directly under tcdsl/ are packages of their own.
BASE = {"errors", "config", "indices", "installation", "recent", "tracebacks", "locks", "pass_names", "ir", "shapes"}
# What `import tcdsl` itself loads.
FIRST = {"config", "errors", "installation", "large_stack", "locks", "pass_names", "tracebacks"}
COMPILER = BASE | {"frontend", "simplification", "autodiff", "lowering", "codegen"}
ALLOWED = {
    "errors": {"ir.span"},
    "config": {"errors", "locks", "pass_names", "tracebacks"},
    "pass_names": {"errors"},
    "indices": set(),
    "large_stack": {"locks"},
    "installation": set(),
    "tracebacks": {"errors", "installation", "ir.span", "large_stack"},
    "locks": set(),
    "recent": set(),
    "ir": {"errors"},
    "shapes": {"errors", "ir"},
    "frontend": BASE,
    "primitives": BASE | {"tensors"},
    "simplification": BASE,
    "autodiff": BASE | {"simplification"},
    "lowering": BASE | {"simplification"},
    "codegen": BASE | {"lowering"},
    "runtime": COMPILER,
    "syntax": {"errors", "ir.span", "frontend", "tracebacks"},
    # What users import, and what is built on that.
    "": COMPILER | {"runtime", "primitives", "tensors", "train", "syntax"},
    "tensors": COMPILER | {"runtime"},
    "train": COMPILER | {"runtime", "primitives", "tensors", "tracebacks"},
    "tools": COMPILER | {"runtime", "primitives", "syntax", ""},
    "__main__": {"tools"},
}

MODULES = sorted(PACKAGE.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


KNOWN = {module_name(path) for path in MODULES}


def layer(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def statements(node: ast.AST, at_import: bool) -> Iterator[ast.stmt]:
    """All import statements under ``node``; with ``at_import``, those alone that run when the module is imported."""
    for child in ast.iter_child_nodes(node):
        if is_type_checking(child) and at_import:
            continue
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif not (at_import and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)):
            yield from statements(child, at_import)


def imports(path: Path, at_import: bool = False) -> set[str]:
    """The modules of this package that ``path`` imports."""
    found = set()
    for statement in statements(ast.parse(path.read_text()), at_import):
        if isinstance(statement, ast.Import):
            found.update(alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            assert statement.level == 0, f"{path}: write absolute imports"
            module = statement.module or ""
            for alias in statement.names:
                submodule = f"{module}.{alias.name}"
                found.add(submodule if submodule in KNOWN else module)
    return {name for name in found if name.split(".")[0] == "tcdsl"}


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_imports_go_one_way(path: Path) -> None:
    here = layer(module_name(path))
    assert here in ALLOWED, f"say in tests/test_layers.py what tcdsl.{here} may import"
    for name in imports(path):
        there = layer(name)
        allowed = there == here or there in ALLOWED[here] or name.removeprefix("tcdsl.") in ALLOWED[here]
        assert allowed, f"{module_name(path)} imports {name}: {here or 'tcdsl'} may not know {there or 'tcdsl'}"


def test_no_cycles_when_modules_are_imported() -> None:
    graph = {module_name(path): imports(path, at_import=True) & KNOWN for path in MODULES}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, "import cycle: " + " -> ".join((*trail[trail.index(name) :], name))
        if name not in done:
            for other in sorted(graph[name]):
                visit(other, (*trail, name))
            done.add(name)

    for name in sorted(graph):
        visit(name, ())


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_import_loads_no_heavy_package() -> None:
    heavy = {"numba", "llvmlite", "islpy", "astor", "rich", "platformdirs", "sklearn", "matplotlib", "torch", "jax"}
    loaded = run_python("import sys, tcdsl; print(*{name.split('.')[0] for name in sys.modules})").split()
    assert "tcdsl" in loaded
    assert not heavy & set(loaded)


def test_import_loads_no_more_than_settings_and_errors() -> None:
    # Everything else is loaded when it is first asked for; `python -m benchmarks.calls` measures how long it takes.
    loaded = run_python("import sys, tcdsl; print(*(name for name in sys.modules if name.startswith('tcdsl')))").split()
    assert set(loaded) == {"tcdsl"} | {f"tcdsl.{name}" for name in FIRST}


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_files_say_what_they_offer(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), "a module opens with a sentence on what it is"
    targets = [
        t.id for node in tree.body if isinstance(node, ast.Assign) for t in node.targets if isinstance(t, ast.Name)
    ]
    assert "__all__" in targets or not any(isinstance(n, ast.FunctionDef | ast.ClassDef) for n in tree.body)


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_files_and_functions_stay_short(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 450
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.end_lineno is not None:
            assert node.end_lineno - node.lineno < 75, f"{node.name} is too long: split it"
