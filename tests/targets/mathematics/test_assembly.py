"""Loops over elementary functions are vector code, whatever processor they are compiled for."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from tcdsl.targets.cpu.mathematics.elementary_functions import ELEMENTARY
from tests.targets.mathematics.loops import assembly

LINUX = "{}-unknown-linux-gnu"
PROCESSORS: Mapping[str, tuple[str, str, str]] = {
    "SSE2": (LINUX.format("x86_64"), "x86-64", ""),
    "AVX2": (LINUX.format("x86_64"), "haswell", ""),
    "AVX-512": (LINUX.format("x86_64"), "skylake-avx512", ""),
    "NEON": (LINUX.format("aarch64"), "neoverse-n1", ""),
}
# What multiplies several numbers at once.
PACKED: Mapping[str, Mapping[str, str]] = {
    "SSE2": {"float32": r"\bmulps\b", "float64": r"\bmulpd\b"},
    "AVX2": {"float32": r"\bvf?n?m\w*ps\b.*ymm", "float64": r"\bvf?n?m\w*pd\b.*ymm"},
    "AVX-512": {"float32": r"\bvf?n?m\w*ps\b.*[yz]mm", "float64": r"\bvf?n?m\w*pd\b.*[yz]mm"},
    "NEON": {"float32": r"\bfml[as]\s+v\d+\.4s", "float64": r"\bfml[as]\s+v\d+\.2d"},
}
_CALL = re.compile(r"^\s+(?:callq?|bl|jmp|b)\s+(\*?%?[A-Za-z_]\S*)", re.MULTILINE)


def called(text: str) -> set[str]:
    """The functions that are called, or jumped to at the end."""
    return {name for name in _CALL.findall(text) if not name.startswith(".")}


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ELEMENTARY)
def test_loops_are_vector_code_without_calls(name: str, dtype: str, processor: str) -> None:
    text = assembly(name, dtype, PROCESSORS[processor])
    assert not called(text)
    assert len(re.findall(PACKED[processor][dtype], text)) > 4


def test_calls_are_seen() -> None:
    # What is left of a division is computed by the C library.
    for processor in PROCESSORS.values():
        assert called(assembly("mod", "float64", processor))
