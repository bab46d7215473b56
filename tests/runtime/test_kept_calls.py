"""Calls that are kept on disk serve later processes that ask for the same, and no others.

One module has a function for each thing that a program can depend on. Processes run it with one text or another, from
one place or another, and say of each function what it gave and whether anything was staged for it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.kept_processes import FIRST, ROOT, SECOND, Processes


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Processes:
    return Processes(tmp_path_factory.mktemp("kept"))


def test_what_differs_is_staged_and_what_is_the_same_is_not(processes: Processes) -> None:
    first = processes.found("one", FIRST)
    assert {name: found[1:] for name, found in first.items()} == {name: [0, 1] for name in first}
    # Another place, other times.
    again = processes.found("moved", FIRST)
    assert {name: found[1:] for name, found in again.items()} == {name: [1, 0] for name in first}
    assert {name: found[0] for name, found in again.items()} == {name: found[0] for name, found in first.items()}
    # Something else in each function, in the place of the first.
    second = processes.found("one", SECOND)
    assert {name: found[1:] for name, found in second.items()} == {name: [0, 1] for name in first}
    assert {name for name in first if second[name][0] == first[name][0]} == {"by_conversion"}  # two types of one
    # The first stays.
    assert processes.found("one", FIRST) == again


LATER = """
import contextlib, io, json
import numpy as np
import pytest
import tcdsl as tc
import module_of_kept as m

x = np.arange(4.0)
assert m.by_constant(x).tolist() == [0, 2, 4, 6] and len(m.by_constant.calls.served) == 1
assert "FACTOR" not in str(m.by_constant.explain()) and "x[i] * 2.0" in str(m.by_constant.explain())
info = m.by_text.cache_info()
assert (info.programs, info.misses) == (0, 0)
m.by_text(x), m.by_text(x + 1), m.by_text(np.arange(7.0))
info = m.by_text.cache_info()
assert (info.programs, info.misses, info.hits, info.from_disk) == (1, 0, 3, 1)
with tc.config(optimize=False):  # other machine code
    m.by_text(x)
assert m.by_text.cache_info().misses == 1
# Other layouts and types are staged, and right.
assert m.by_text(np.arange(8.0)[::2]).tolist() == [2, 4, 6, 8]
assert m.by_text(np.arange(4, dtype=np.float32)).tolist() == [2, 3, 4, 5]
# Changes in this process count.
m.FACTOR = 10.0
assert m.by_constant(x).tolist() == [0, 10, 20, 30]
assert m.by_element(x).tolist() == [1, 3, 5, 7] and m.by_element.calls.served
m.WEIGHTS[1] = 4.0
assert m.by_element(x).tolist() == [1, 5, 9, 13]
assert m.by_plain(x).tolist() == [0, 2, 4, 6] and m.by_plain.calls.served
m.plain.__code__ = (lambda v: v * 7).__code__
assert m.by_plain(x).tolist() == [0, 7, 14, 21]
assert m.by_attribute(x).tolist() == [0, 2, 4, 6] and m.by_attribute.calls.served
m.attributed.factor = 5.0
assert m.by_attribute(x).tolist() == [0, 5, 10, 15]
assert m.by_rule(x).tolist() == [2, 2, 2, 2] and m.by_rule.calls.served
m.clipped.defvjp(m.clipped_pullback_of_nine)
assert m.by_rule(x).tolist() == [9, 9, 9, 9]
# Faults are those of the program.
at = np.array([1, 2])
assert m.by_oob(x, at).tolist() == [1, 2] and m.by_oob.calls.served
with pytest.raises(tc.DataIndexError, match="at"):
    m.by_oob(x, np.array([1, 9]))
with pytest.raises(tc.DtypeError):
    m.by_text("x")
with pytest.raises(tc.ConfigurationError):
    m.by_text(x, x, x)
assert m.both(x, x).tolist() == [0, 2, 4, 6] and m.both.calls.served
with pytest.raises(tc.ShapeError, match="4"):
    m.both(x, np.arange(5.0))
y = np.arange(4.0)
m.into(y, x)
assert y.tolist() == [0, 2, 4, 6] and m.into.calls.served
with pytest.raises(tc.ShapeError, match="shares memory"):
    m.into(y[:3], y[1:])
# What loops write in place is copied back at the end, and not at all by a call that fails.
y, at = np.arange(4.0), np.array([1, 2])
m.settle(y, at, np.array(2))
assert y.tolist() == [0, 1, 1.25, 3] and m.settle.calls.served
with pytest.raises(tc.DataIndexError, match="at"):
    m.settle(y, np.array([1, 9]), np.array(2))
assert y.tolist() == [0, 1, 1.25, 3]
before = np.arange(4.0), np.arange(4.0, 8.0)
given = [each.copy() for each in before]
same, other = m.exchange(*given)
assert m.exchange.calls.served
assert [each.tolist() for each in (*given, same, other)] == [each.tolist() for each in (*before[::-1], *before[::-1])]
assert not any(np.shares_memory(each, array) for each in (same, other) for array in given)
with pytest.raises(tc.ShapeError, match="shares memory"):
    m.exchange(y[:3], y[1:])
frozen = np.arange(4.0)
frozen.flags.writeable = False
with pytest.raises(tc.ShapeError, match="read-only"):
    m.into(frozen, x)
with tc.config(check="bounds"):
    assert m.by_deep(x).tolist() == [-2, -1, 0, 1] and not m.by_deep.calls.served
with tc.config(optimize=False):
    before = len(m.by_deep.calls.served)
    assert m.by_deep(x).tolist() == [-2, -1, 0, 1] and len(m.by_deep.calls.served) == before
"""

MORE = """

@op
def clipped_pullback_of_nine(x, y, d_y):
    return d_y * 9

@op
def both(a, b):
    c[i] = a[i] + b[i]
    return c

@cd
def into(y, x):
    y[i] += x[i]

@cd
def settle(y, at, rounds):
    for _t in range(rounds):
        for k in range(2):
            y[at[k]] = 0.5 * y[at[k]] + 0.5

@cd
def exchange(a, b):
    c[i] = a[i]
    a[i] = b[i]
    b[i] = c[i]
    return a, b
"""

WARM = (
    "from module_of_kept import *; x = np.arange(4.0); both(x, x), into(x.copy(), x); "
    "settle(x.copy(), np.array([1, 2]), np.array(2)), exchange(x.copy(), x.copy())"
)


def test_what_was_served_from_disk_goes_on_like_anything_else(processes: Processes) -> None:
    processes.found("later", FIRST)
    processes.write("later", FIRST, MORE)
    processes.run(WARM, "later")
    processes.run(LATER, "later")


ARRAYS = """
import sys
import numpy as np
import tcdsl as tc
from tcdsl import op
import helpers_of_arrays as helpers

NUMBER = float(sys.argv[1])
helpers.TABLE = TABLE = np.arange(int(sys.argv[2])) * NUMBER
ALIAS = TABLE if sys.argv[3] == "alias" else TABLE + 1
HELD = [TABLE]

def plain(v):
    return v * TABLE

def difference(v, t):
    return v - t

@op
def by_statement(x):
    y[i] = x[i] * TABLE[i] + TABLE[1]
    return y

@op
def by_module(x):
    return x + helpers.TABLE

@op
def by_plain(x):
    return plain(x)

@op
def by_alias(x):
    return x * TABLE + ALIAS

def made(t):
    @op
    def by_closure(x):
        return x * t
    return by_closure

by_closure = made(TABLE + 2)
by_gradient = tc.grad(lambda x: (difference(x, TABLE) * TABLE * x).sum())

@op
def staged_for_cells(x):
    return x * TABLE + np.mean(TABLE)

@op
def staged_for_a_list(x):
    return x * HELD[0]

def wanted(x):
    difference = 2 * x * TABLE - TABLE * TABLE
    closed = x * (by_closure_table + 2)
    return {
        "by_statement": x * TABLE + TABLE[1], "by_module": x + TABLE, "by_plain": x * TABLE,
        "by_alias": x * TABLE + ALIAS, "by_closure": closed, "by_gradient": difference,
        "staged_for_cells": x * TABLE + np.mean(TABLE), "staged_for_a_list": x * HELD[0]}

by_closure_table = TABLE + 0.0
x = np.arange(int(sys.argv[2])) + 1.0
FUNCTIONS = {
    name: f for name, f in sorted(vars().copy().items()) if name.startswith(("by_", "staged_")) and callable(f)}

def check():
    right = wanted(x)
    for name, f in FUNCTIONS.items():
        found = f(x)
        assert np.array_equal(found, right[name]), (name, found, right[name])

check()
served = [name for name, f in FUNCTIONS.items() if f.calls.served]
TABLE[:] = 7 - TABLE
check()
TABLE = helpers.TABLE = TABLE * 3 + 1
check()
print(*served)
"""


def test_arrays_around_a_function_are_read_by_their_names(processes: Processes) -> None:
    folder = processes.folder / "arrays"
    folder.mkdir()
    (folder / "helpers_of_arrays.py").write_text("TABLE = None")
    (folder / "arrays_of_kept.py").write_text(ARRAYS)

    def served(number: float, count: int, alias: str) -> list[str]:
        script = f"import sys; sys.argv[1:] = ['{number}', '{count}', '{alias}']; import arrays_of_kept"
        return processes.run(script, "arrays").split()

    every = ["by_closure", "by_gradient", "by_module", "by_plain", "by_statement"]
    assert served(2.0, 4, "alias") == []
    # Other cells are other inputs; another extent, and two arrays in place of one, are staged.
    assert served(3.0, 4, "alias") == every
    assert served(3.0, 5, "alias") == []
    assert served(3.0, 4, "none") == every
    assert served(5.0, 4, "none") == ["by_alias", *every]


UNKNOWN = """
import functools, random, time
import numpy as np
import tcdsl as tc
from tcdsl import op

log = []
table = np.arange(4.0)

class Settings:
    factor = 2.0

settings = Settings()

class Model:
    def __init__(self, k):
        self.k = k

    @op
    def of_instance(self, x):
        return x * self.k

def drawn():
    return random.Random(0).random()

def noted(v):
    log.append(1)
    return v

@op
def printing(x):
    print("staged")
    return x * 2

@op
def logging(x):
    return noted(x)

@op
def random_number(x):
    return x * drawn()

@op
def of_settings(x):
    return x * settings.factor

@op
def of_file(x):
    return x * float(open(__file__).readline() == "")

@op
def of_getattr(x):
    return x * getattr(settings, "factor")

@op
def of_table(x):
    return x * table + float(table[1])

@op
def importing(x):
    import math
    return x * math.pi

@op
def of_module(x, *, module=np):
    return x * module.random.default_rng(0).integers(1, 2)

@functools.lru_cache
def cached(v):
    return 2.0

@op
def of_cached(x):
    return x * cached(1)

def counter():
    count = 0
    def next_one():
        nonlocal count
        count += 1
        return count
    return next_one

counted = counter()

@op
def counting(x):
    return x * counted()

@tc.op
def of_clock(x):
    return x * (time.time() > 0)

held = {}

@tc.op
def into_dict(x):
    held["a"] = 2.0
    return x * held["a"]

@tc.op
def marked(x):
    return x * 2.0

marked.factor = 3.0

@tc.op
def of_mark(x):
    return x * marked.factor

functions = [printing, logging, random_number, of_settings, of_file, of_getattr, of_table, importing, of_module]
functions += [into_dict, marked, of_mark, of_cached, counting, of_clock, Model(2.0).of_instance]
import warnings
warnings.simplefilter("ignore")
for f in functions:
    f(np.arange(4.0))
print(*[f.__name__ for f in functions if f.calls.served])
"""


def test_what_cannot_be_told_is_not_kept(processes: Processes) -> None:
    folder = processes.folder / "unknown"
    folder.mkdir()
    (folder / "module_of_unknown.py").write_text(UNKNOWN)
    for _ in range(2):
        assert processes.run("import module_of_unknown", "unknown").split() == ["staged"]


GENERATORS = """
import numpy as np
from tcdsl import op

@op
def nested(x: "real[N, D]"):
    return sum(sum(x[n, d] for d in range(D)) for n in range(N))

def outer():
    width = 2.0

    @op
    def of_closure(x: "real[N, D]"):
        return sum(width * sum(width * x[n, d] for d in range(D)) for n in range(N))

    return of_closure

for f in (nested, outer()):
    f(np.ones((4, 3)))
    print(f.__name__, len(f.calls.served))
"""


def test_generators_in_generators_are_kept(processes: Processes) -> None:
    folder = processes.folder / "generators"
    folder.mkdir()
    (folder / "nested_generators.py").write_text(GENERATORS)
    assert processes.run("import nested_generators", "generators").split() == ["nested", "0", "of_closure", "0"]
    assert processes.run("import nested_generators", "generators").split() == ["nested", "1", "of_closure", "1"]


CELLS = r"""
import linecache, sys
import numpy as np
from tcdsl import op

def cell(number, text):
    name = f"<cell {number}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    exec(compile(text, name, "exec"), globals())

TEXT = "@op\ndef f(x):\n    return x * {}\n"
x = np.arange(3.0)
start = int(sys.argv[1]) if len(sys.argv) > 1 else 0
found = []
for number, factor in enumerate((2.0, 3.0, 2.0)):
    cell(start + number, "\n" * number + TEXT.format(factor))
    assert f(x).tolist() == (factor * x).tolist()
    found.append(len(f.calls.served))
print(found)
"""


def test_cells_of_notebooks_are_known_by_their_texts(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    # The third one is the first one again.
    assert processes.run(CELLS, "cells") == "[0, 0, 1]\n"
    assert processes.run(CELLS.replace("else 0", "else 7"), "cells") == "[1, 1, 1]\n"


def test_damaged_records_are_staged_anew(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    processes.run(CELLS, "cells")
    assert processes.run(CELLS, "cells") == "[1, 1, 1]\n"
    for path in (processes.cache / "modules").glob("f_*.call"):
        path.write_bytes(path.read_bytes()[:-3])
    script = "import warnings; warnings.simplefilter('ignore')" + CELLS
    assert processes.run(script, "cells") == "[0, 0, 1]\n"
    for path in (processes.cache / "modules").glob("nest_*.code"):
        path.unlink()
    assert processes.run(CELLS, "cells") == "[0, 0, 1]\n"


def test_little_is_imported_for_what_is_kept(processes: Processes) -> None:
    script = WARM + "; import tcdsl as tc; f = lambda x: (x * x * x).sum(); tc.value_and_grad(f)(x); tc.hessian(f)(x)"
    script += "; assert (tc.hvp(f, x, x) == 6 * x * x).all() and tc.jvp(f, (x,), (x,))[1] == (3 * x**3).sum()"
    processes.write("imports", FIRST, MORE)
    script += "\nimport sys; print(*{name for name in sys.modules if name.startswith(('tcdsl', 'islpy', 'numba'))})"
    assert "tcdsl.autodiff" in processes.run(script, "imports")
    loaded = set(processes.run(script, "imports").split())
    assert not {name for name in loaded if name.startswith(("islpy", "numba", "tcdsl.polyhedra", "tcdsl.ranges"))}
    assert not loaded & {"tcdsl.autodiff", "tcdsl.frontend.python", "tcdsl.frontend.statements", "tcdsl.ir.program"}
    assert not loaded & {"tcdsl.lowering.lower", "tcdsl.runtime.calls.staged", "tcdsl.targets.cpu.printing"}
    assert len(loaded) <= 110


TRACED = """
import sys
import numpy as np
from tcdsl import cd

executed = set()

def tracer(frame, event, argument):
    if frame.f_code.co_filename == __file__:
        if event == "line":
            executed.add(frame.f_lineno)
        return tracer

@cd
def counted(x):
    for n in range(x.shape[0]):
        if x[n] > 3:
            continue
        if x[n] < 0:
            break
        x[n] += 1.0
    x[i] *= (2 +
             1)

if sys.argv[1:]:
    sys.settrace(tracer)
x = np.arange(5.0)
counted(x)
sys.settrace(None)
lines = open(__file__).read().splitlines()
body = range(lines.index("def counted(x):") + 2, lines.index("             1)") + 1)
print(x.tolist(), [line for line in body if line not in executed], counted.cache_info().kernels)
"""


def test_where_python_is_traced_the_function_itself_runs(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(TRACED)
    environment = {**os.environ, "TCDSL_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    shown = [
        subprocess.run(
            [sys.executable, script, *more], check=True, capture_output=True, text=True, timeout=120, env=environment
        ).stdout.split("] ")
        for more in ([], ["traced"], [])
    ]
    assert [each[0] for each in shown] == ["[3.0, 6.0, 9.0, 12.0, 12.0"] * 3
    assert shown[1][1] == "["  # no line of the function is left out
