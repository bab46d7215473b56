"""Literal modules through the import system: by prefix and by marker, reloaded, and never from a stale cache."""

from __future__ import annotations

import importlib
import inspect
import os
import py_compile
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import literal

Write = Callable[[str, str], Path]

PRODUCT = """\
from tcdsl import cd, op

@cd
def add_product(c, a, b):
    c[i, j] =+ a[i, k] *. b[k, j]

@op
def gated(a, b):
    return (a - 0.5) -?/ (b @^ a)
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes modules to a folder on the path; afterwards no hook and none of the modules is left."""
    monkeypatch.syspath_prepend(str(tmp_path))
    loaded = set(sys.modules)

    def written(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        importlib.invalidate_caches()
        return path

    yield written
    for prefix in (None, "lit", "lit_a", "lit_b"):
        literal.uninstall(prefix)
    for name in set(sys.modules) - loaded:
        if name.startswith("lit"):
            del sys.modules[name]


def check_product(module: ModuleType) -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    c = np.ones((2, 4))
    module.add_product(c, a, b)
    np.testing.assert_allclose(c, 1 + a @ b)
    x, y = np.array([0.0, 1.0, 2.0]), np.array([5.0, 0.0, 3.0])
    np.testing.assert_allclose(module.gated(x, y), [0.0, 1.0, 3.0])


def test_a_prefix_makes_its_modules_literal(write: Write) -> None:
    write("lit/__init__.py", "")
    write("lit/inner.py", PRODUCT)
    write("lit_other.py", PRODUCT)
    tc.literal.install("lit")
    check_product(importlib.import_module("lit.inner"))
    with pytest.raises(SyntaxError):
        importlib.import_module("lit_other")


def test_a_comment_makes_its_module_literal(write: Write) -> None:
    write("lit_a.py", "#!/usr/bin/env python\n# coding: utf-8\n\n# tcdsl: literal\n" + PRODUCT)
    write("lit_b.py", "x = 1\n# tcdsl: literal\n" + PRODUCT)
    with pytest.raises(SyntaxError):
        importlib.import_module("lit_a")
    tc.literal.install()
    check_product(importlib.import_module("lit_a"))
    with pytest.raises(SyntaxError):
        importlib.import_module("lit_b")


def test_installing_twice_and_taking_it_back(write: Write) -> None:
    write("lit_a.py", PRODUCT)
    before = list(sys.meta_path)
    tc.literal.install("lit_a")
    tc.literal.install("lit_a")
    tc.literal.install("lit_b")
    assert len(sys.meta_path) == len(before) + 1
    tc.literal.uninstall("lit_b")
    check_product(importlib.import_module("lit_a"))
    tc.literal.uninstall("lit_a")
    tc.literal.uninstall("lit_a")
    assert sys.meta_path == before


def test_other_modules_are_found_as_ever(write: Write) -> None:
    write("lit_plain.py", "x =-1\n")
    tc.literal.install()
    module = importlib.import_module("lit_plain")
    assert module.x == -1
    assert module.__cached__ is not None
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("lit_absent")


def test_a_changed_file_is_loaded_anew(write: Write) -> None:
    path = write("lit_a.py", PRODUCT)
    tc.literal.install("lit_a")
    module = importlib.import_module("lit_a")
    check_product(module)
    stamp = path.stat()
    path.write_text(PRODUCT.replace("@^", "^^"))
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # of the same size and time: a cache would be fooled
    importlib.reload(module)
    np.testing.assert_allclose(module.gated(np.array([1.0, 2.0]), np.array([0.0, 3.0])), [0.0, 2.0])


AMBIGUOUS = "{0}from tcdsl import op\n@op\ndef f(x, *, n):\n    n =+ 1\n    return x * n\n"


def test_no_compiled_module_is_shared_with_plain_imports(write: Write, tmp_path: Path) -> None:
    # Python reads this text, too, with another meaning.
    path = write("lit_a.py", AMBIGUOUS.format(""))
    plain = importlib.import_module("lit_a")
    assert plain.f(np.ones(1), n=5) == [1.0]
    compiled = Path(py_compile.compile(str(path), doraise=True) or "")
    tc.literal.install("lit_a")
    module = importlib.reload(plain)
    assert module.f(np.ones(1), n=5) == [6.0]
    compiled.unlink()
    importlib.reload(module)
    assert not list(tmp_path.rglob("lit_a*.pyc"))
    tc.literal.uninstall("lit_a")
    module = importlib.reload(module)
    assert module.f(np.ones(1), n=5) == [1.0]


def test_source_is_what_was_written(write: Write) -> None:
    write("lit_a.py", PRODUCT)
    tc.literal.install("lit_a")
    module = importlib.import_module("lit_a")
    source = inspect.getsource(module.gated.function)
    assert "(a - 0.5) -?/ (b @^ a)" in source
    assert source in str(module.gated.explain("source"))
    assert inspect.getsource(module) == PRODUCT


def test_tracebacks_point_into_the_literal_text(write: Write) -> None:
    text = "from tcdsl import op\n@op\ndef f(x, *, n):\n    y = x *. 2 -?/ ünicode(x) -?/ [1, 2][n]\n    return y\n"
    write("lit_a.py", text.replace("ünicode", "abs"))
    tc.literal.install("lit_a")
    module = importlib.import_module("lit_a")
    with pytest.raises(IndexError) as raised:
        module.f(np.ones(2), n=3)
    shown = "".join(traceback.format_exception(raised.value))
    assert "    y = x *. 2 -?/ abs(x) -?/ [1, 2][n]\n" + " " * 30 + "^^^^^^^^^" in shown


def test_functions_inside_functions_and_methods(write: Write) -> None:
    text = """\
from tcdsl import op
class Layer:
    def __init__(self, rate): self.rate = rate
    @op
    def scaled(self, x):
        y = x *. self.rate -?/ x
        return y
def make(scale):
    @op
    def inner(x):
        return x *. scale
    return inner
"""
    write("lit_a.py", text)
    tc.literal.install("lit_a")
    module = importlib.import_module("lit_a")
    tc.literal.uninstall("lit_a")
    np.testing.assert_allclose(module.Layer(-1.0).scaled(np.array([-2.0, 3.0])), [-2.0, 0.0])
    np.testing.assert_allclose(module.make(3.0)(np.ones(2)), [3.0, 3.0])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_encodings_and_line_ends(write: Write, encoding: str, line_end: str) -> None:
    text = "# coding: latin-1\n" if encoding == "latin-1" else ""
    text += 'from tcdsl import op\n@op\ndef f(x):\n    "é"\n    é = x *. 2  # é\n    return é\n'
    path = write("lit_a.py", "")
    path.write_bytes(text.replace("\n", line_end).encode(encoding))
    tc.literal.install("lit_a")
    assert importlib.import_module("lit_a").f(np.ones(1)) == [2.0]


def test_a_prefix_must_be_a_name() -> None:
    with pytest.raises(tc.ConfigurationError, match="give the name of a module"):
        tc.literal.install("my/package.py")


def test_warnings_of_python_are_shown_once(write: Write) -> None:
    write("lit_a.py", 'from tcdsl import op\n@op\ndef f(x):\n    """\\d"""\n    return x *. 2\n')
    tc.literal.install("lit_a")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        importlib.import_module("lit_a")
    assert [(each.filename[-8:], each.lineno) for each in caught if "\\d" in str(each.message)] == [("lit_a.py", 4)]
