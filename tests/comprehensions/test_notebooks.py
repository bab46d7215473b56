"""``%%tc`` in a real shell."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl as tc

interactiveshell = pytest.importorskip("IPython.core.interactiveshell")

CELL = "def twice(float(N) A) -> (B) {\n    B(i) = 2 * A(i)\n}\ndef halved(float(N) A) -> (B) { B(i) = A(i) / 2 }\n"


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    found = interactiveshell.InteractiveShell()
    found.history_manager.enabled = False
    found.run_line_magic("load_ext", "tcdsl")
    yield found
    found.run_line_magic("unload_ext", "tcdsl")
    assert "tc" not in found.magics_manager.magics["cell"]
    # What it would do when the process ends, it does now.
    found.atexit_operations()
    atexit.unregister(found.atexit_operations)


def run(shell: Any, cell: str) -> Any:
    result = shell.run_cell(cell, store_history=True)
    result.raise_error()
    return result.result


def test_definitions_become_names_of_the_notebook(shell: Any) -> None:
    run(shell, f"%%tc\n{CELL}")
    run(shell, "import numpy as np\nA = np.ones(3, np.float32)")
    np.testing.assert_array_equal(run(shell, "twice(A) + halved(A)"), [2.5, 2.5, 2.5])


def test_all_definitions_may_be_one_object(shell: Any) -> None:
    run(shell, f"%%tc layers\n{CELL}")
    assert run(shell, "list(layers)") == ["twice", "halved"]
    assert "twice" not in shell.user_ns


def test_faults_show_the_cell(shell: Any) -> None:
    with pytest.raises(tc.DslSyntaxError, match=r"B\(i\) = 2 \* C\(i\)\n +\^"):
        run(shell, f"%%tc\n{CELL.replace('A(i)', 'C(i)', 1)}")
    with pytest.raises(tc.ConfigurationError, match="%%tc two words"):
        run(shell, f"%%tc two words\n{CELL}")
