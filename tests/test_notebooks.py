"""The notebooks run from top to bottom, are stored without outputs, and show the errors they announce."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

#: What each notebook promises: texts that its cells show, and the number of pictures.
PROMISED = {
    "moons": (["20, 20 | ... -> ...", "<param w.L1: 2 -> 16", "program momentum", "momentum: final loss 0.0"], 3),
    "literal": (
        [
            "array([[2., 1.],\n       [4., 3.]])",
            'c["@"] = sum(a * b)',
            "array([[0.296, 0.13 , 0.574]",
            "2 -> 2 and 4 | 2 make 4 | 2",
            "(24.7040816326530",
            "{'a': 138.833819241982",
            "<param w.L1: 2 -> 32 float64>",
            "<param hey: q=1 -> p=1",
            'as "one step of b"',
            "wrong by 0.01",
            "[ 1.  8. 27.] [ 3. 12. 27.]",
        ],
        2,
    ),
    "waves": (["slope along a direction agrees: True", "misfit 677.68, then 0.0", "repeat arrived_"], 2),
    "ten_minutes": (
        [
            "[1. 2. 3. 4. 5. 6.]",
            "kernels=2",
            "[ 1  3  6 10 15 21 28]",
            "cost of running_sum",
            "program convolve_adjoint",
            "program life",
            "kernel life",
        ],
        2,
    ),
}


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def executed(request: pytest.FixtureRequest) -> Any:
    notebook = nbformat.read(request.param, as_version=4)
    with pytest.MonkeyPatch.context() as patch:
        # Notebooks show their pictures, whatever draws those of tests.
        patch.delenv("MPLBACKEND", raising=False)
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep))
        nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(ROOT)}}).execute()
    return notebook


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def text(cell: Any) -> str:
    parts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return "".join(parts)


def errors(cell: Any) -> list[Any]:
    return [output for output in cell.outputs if output.output_type == "error"]


def test_announced_errors_are_tcdsl_errors_with_a_caret(executed: Any) -> None:
    for cell in code_cells(executed):
        expected = "raises-exception" in cell.metadata.get("tags", [])
        found = errors(cell)
        assert bool(found) == expected, cell.source
        for error in found:
            assert error.ename in ("DslSyntaxError", "ShapeError", "DtypeError")
            assert "^" in error.evalue
            assert "ipykernel" not in error.evalue, "cells are named by their numbers"
            assert "/tcdsl/" not in "\n".join(error.traceback), "frames of the library"


def test_cells_show_what_they_promise(executed: Any, request: pytest.FixtureRequest) -> None:
    promised, pictures = PROMISED[request.node.callspec.params["executed"].stem]
    shown = [text(cell) for cell in code_cells(executed)]
    for expected in promised:
        assert any(expected in output for output in shown), expected
    outputs = [output for cell in code_cells(executed) for output in cell.outputs]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == pictures


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_without_outputs(path: Path) -> None:
    for cell in code_cells(nbformat.read(path, as_version=4)):
        assert not cell.outputs
        assert cell.execution_count is None
