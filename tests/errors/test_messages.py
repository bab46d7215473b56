"""Every error says the fact, shows the place and the shapes, and tells what to write instead: golden messages."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tcdsl as tc
from tcdsl.errors import Diagnostic
from tcdsl.span import Span
from tests.errors import (
    faulty_branches,
    faulty_checks,
    faulty_conditions,
    faulty_derivatives,
    faulty_programs,
    faulty_rounds,
)
from tests.golden_texts import Golden

FAULTS = {**faulty_programs.FAULTS, **faulty_derivatives.FAULTS}
LOOP_FAULTS = {
    "in_rounds": faulty_rounds.FAULTS,
    "in_branches": faulty_branches.FAULTS,
    "in_conditions": faulty_conditions.FAULTS,
    "in_checks_of_rounds": faulty_checks.FAULTS,
}


def text_of(error: tc.TcdslError) -> str:
    """The class and the message, with file names instead of paths and without the numbers of lines."""
    folder = re.escape(str(Path(__file__).parent))
    text = re.sub(folder + r"[/\\]", "", str(error))
    return f"{type(error).__name__}: " + re.sub(r"(?m)^(\S+\.py):\d+:", r"\1:", text)


def raised(fault: Callable[[], Any]) -> tc.TcdslError:
    """What is raised, which says the same after a way through pickle."""
    with pytest.raises(tc.TcdslError) as caught:
        fault()
    error = caught.value
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    return error


@pytest.mark.filterwarnings("ignore:.*is unrolled:RuntimeWarning")
@pytest.mark.parametrize("part", LOOP_FAULTS)
def test_messages_of_loops(part: str, golden: Golden) -> None:
    texts = [f"-- {name}\n\n{text_of(raised(fault))}\n" for name, fault in LOOP_FAULTS[part].items()]
    golden(f"errors/{part}", "\n".join(texts))


@pytest.mark.parametrize("name", FAULTS)
def test_message(name: str, golden: Golden) -> None:
    golden(f"errors/{name}", text_of(raised(FAULTS[name])))


def test_classes_are_those_that_python_programmers_expect() -> None:
    assert issubclass(tc.DslSyntaxError, SyntaxError)
    assert issubclass(tc.ShapeError, ValueError)
    assert issubclass(tc.DtypeError, TypeError)
    assert issubclass(tc.DataIndexError, IndexError)


def test_cells_of_notebooks_are_named_by_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    ipython = pytest.importorskip("IPython")
    compiler = pytest.importorskip("IPython.core.compilerop").CachingCompiler()
    monkeypatch.setattr(ipython, "get_ipython", lambda: SimpleNamespace(compile=compiler))
    filename = compiler.cache("x = 1\ny = 2\n", 7)
    place = Span(filename, line=2, column=0, end_line=2, end_column=1)
    assert Diagnostic(tc.ShapeError, "no", place).render() == "In[7]:2: no\n    y = 2\n    ^"
    elsewhere = Span("other.py", line=2, column=0, end_line=2, end_column=1)
    assert Diagnostic(tc.ShapeError, "no", elsewhere).render() == "other.py:2: no"
