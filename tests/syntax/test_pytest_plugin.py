"""The pytest plugin, in pytest runs of their own."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

from tests.test_layers import FIRST

ROOT = Path(__file__).parent.parent.parent
INSTALLED = any(entry.name == "tcdsl" for entry in importlib.metadata.entry_points(group="pytest11"))
PLUGIN = ("-p", "tcdsl.syntax.pytest_plugin")

TESTS = """\
import numpy as np
from tcdsl import op

@op
def gated(x):
    y = x -?/ x
    return y

def test_right():
    assert gated.interpret(np.ones(1)) == [1.0]

def test_wrong():
    value = gated.interpret(np.array([-1.0]))
    assert value[0] == 7.0

def test_source():
    import inspect
    assert "-?/" in inspect.getsource(gated.function)
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    # What else is installed would take half of each run.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep))
    return pytester


@pytest.mark.parametrize("mode", [pytest.param("prepend", marks=pytest.mark.long), "importlib"])
def test_a_marked_file(run: pytest.Pytester, mode: str) -> None:
    run.makepyfile(test_literal="# tcdsl: literal\n" + TESTS, test_plain="def test_plain():\n    assert 1 + 1 == 2\n")
    for _ in range(2):  # the second time, with whatever the first one has stored
        result = run.runpytest_subprocess(*PLUGIN, f"--import-mode={mode}")
        result.assert_outcomes(passed=3, failed=1)
        # pytest's own explanation of a failed assertion
        result.stdout.fnmatch_lines(
            ["*value = gated.interpret(*", ">*assert value*0* == 7.0", "E *assert *0.0* == 7.0"]
        )
    assert not list(run.path.rglob("test_literal*.pyc"))


def test_the_option_makes_test_files_literal(run: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    run.makepyfile(test_literal=TESTS)
    run.runpytest_subprocess(*PLUGIN).assert_outcomes(errors=1)
    if INSTALLED:  # pytest finds it by itself, beside others
        monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    given = () if INSTALLED else PLUGIN
    run.runpytest_subprocess(*given, "--tcdsl-literal").assert_outcomes(passed=2, failed=1)


def test_the_setting_makes_test_files_literal(run: pytest.Pytester) -> None:
    run.makepyfile(
        test_literal=TESTS, ordinary="x =-1\nfrom tcdsl import op\n@op\ndef f(x):\n    x =-1\n    return x\n"
    )
    run.makeconftest(
        "import pytest\nfrom tcdsl import op\n"
        "@op\ndef three(x):\n    return x *. 3\n"
        "@pytest.fixture\ndef triple():\n    return three\n"
    )
    run.makepyfile(
        test_fixture="import ordinary\n"
        "def test_it(triple):\n    assert triple.interpret(2.0) == 6.0\n    assert ordinary.f.interpret(5.0) == -1\n"
    )
    run.makeini("[pytest]\ntcdsl_literal = true\npythonpath = .\n")
    run.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=3, failed=1)


def test_plain_assertions(run: pytest.Pytester) -> None:
    run.makepyfile(test_literal="# tcdsl: literal\n" + TESTS)
    result = run.runpytest_subprocess(*PLUGIN, "--assert=plain")
    result.assert_outcomes(passed=2, failed=1)
    assert "assert 0.0 == 7.0" not in result.stdout.str()


def test_faults_are_errors_of_collection(run: pytest.Pytester) -> None:
    run.makepyfile(test_literal="# tcdsl: literal\n" + TESTS.replace("-?/", "-??"))
    result = run.runpytest_subprocess(*PLUGIN)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*test_literal.py:7: `-??` is no operator", "*y = x -?? x", "*      ^^^"])


def test_modules_of_the_package_are_not_compiled_anew() -> None:
    loaded = importlib.import_module("tcdsl.ir.program")
    assert type(loaded.__loader__) is SourceFileLoader


def test_the_plugin_is_light() -> None:
    code = "import sys, tcdsl.syntax.pytest_plugin; print(*[n for n in sys.modules if n.startswith('tcdsl')])"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert set(loaded.split()) == {"tcdsl", *(f"tcdsl.{name}" for name in (*FIRST, "syntax", "syntax.pytest_plugin"))}
