"""Nothing that a process remembers grows with the number of its programs, files or shapes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "tcdsl"
# What is remembered for each key without a limit, since there are few keys: types, rows of tables, folders.
FEW_KEYS = {
    "_loader",
    "_result_dtype",
    "_storer",
    "_template",
    "_unlocked",
    "drivers_in",
    "interval_of_dtype",
    "library_function",
    "library_functions",
    "known_text",
    "library_module",
    "native_calls",
    "primitive_code",
    "sources_digest",
    "store",
}


def unlimited(path: Path) -> list[str]:
    """The functions with parameters that `functools.cache` remembers."""
    return [
        node.name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(each) in ("cache", "functools.cache") for each in node.decorator_list)
        and ast.unparse(node.args)
    ]


def test_caches_without_a_limit_have_few_keys() -> None:
    found = {name for path in PACKAGE.rglob("*.py") for name in unlimited(path)}
    assert found == FEW_KEYS


@pytest.mark.parametrize(("text", "names"), [("@cache\ndef f(x): ...", ["f"]), ("@cache\ndef f(): ...", [])])
def test_how_they_are_found(text: str, names: list[str], tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(text)
    assert unlimited(tmp_path / "module.py") == names
