"""The programs of the rows-and-einsum language give what NumPy gives, and what other implementations printed.

``TCDSL_CASES`` may name a folder with files of such cases (``rows_and_einsum.json``: a list of objects with ``id``,
``shape``, ``expected``, ``expected_sum`` and ``expected_head``).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.rows.programs import PROGRAMS


def leaves(value: Any) -> list[np.ndarray]:
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in leaves(each)]
    return [np.asarray(value, np.float64)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    program, expected = PROGRAMS[name]
    for found, wanted in zip(leaves(program()), leaves(expected()), strict=True):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9)


def cases() -> list[dict[str, Any]]:
    folder = os.environ.get("TCDSL_CASES")
    file = Path(folder or ".") / "rows_and_einsum.json"
    return json.loads(file.read_text()) if folder and file.exists() else []


@pytest.mark.skipif(not cases(), reason="TCDSL_CASES names no folder with cases")
@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_case(case: dict[str, Any]) -> None:
    found = PROGRAMS[case["id"]][0]()
    if isinstance(case.get("expected"), dict):
        pairs = zip(leaves(found), leaves(case["expected"]), strict=True)
    else:
        array = np.asarray(found, np.float64)
        if "shape" in case:
            assert array.shape == tuple(case["shape"])
        pairs = iter(())
        if case["expected"] is not None:
            pairs = iter([(array, np.asarray(case["expected"]))])
        if "expected_sum" in case:
            np.testing.assert_allclose(array.sum(), case["expected_sum"], rtol=1e-6)
            np.testing.assert_allclose(array.ravel()[: len(case["expected_head"])], case["expected_head"], atol=1e-9)
    for one, other in pairs:
        np.testing.assert_allclose(one.ravel(), np.asarray(other).ravel(), rtol=1e-5, atol=1e-5)
