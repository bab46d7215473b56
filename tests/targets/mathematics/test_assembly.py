"""Loops over elementary functions are vector code, whatever processor they are compiled for."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from tcdsl.lowering.loopir.machine import Machine
from tcdsl.targets.cpu.mathematics.elementary_functions import ELEMENTARY
from tests.long_variants import in_turn
from tests.targets.mathematics.loops import assembly

LINUX = "{}-unknown-linux-gnu"
PROCESSORS: Mapping[str, tuple[str, str, str]] = {
    "SSE2": (LINUX.format("x86_64"), "x86-64", ""),
    "AVX2": (LINUX.format("x86_64"), "haswell", ""),
    "AVX-512": (LINUX.format("x86_64"), "skylake-avx512", ""),
    "NEON": (LINUX.format("aarch64"), "neoverse-n1", ""),
}
# The vectors that loops are written with, and whether they have masks.
FORMS = {
    "SSE2": Machine(16, masks=False),
    "AVX2": Machine(32, masks=False),
    "AVX-512": Machine(32, masks=True),
    "NEON": Machine(16, masks=False),
}
# What multiplies several numbers at once.
PACKED: Mapping[str, Mapping[str, str]] = {
    "SSE2": {"float32": r"\bmulps\b", "float64": r"\bmulpd\b"},
    "AVX2": {"float32": r"\bvf?n?m\w*ps\b.*ymm", "float64": r"\bvf?n?m\w*pd\b.*ymm"},
    "AVX-512": {"float32": r"\bvf?n?m\w*ps\b.*[yz]mm", "float64": r"\bvf?n?m\w*pd\b.*[yz]mm"},
    "NEON": {"float32": r"\bfm(?:la|ls|ul)\s+v\d+\.4s", "float64": r"\bfm(?:la|ls|ul)\s+v\d+\.2d"},
}
# What computes in double precision, and what calls functions of its own for rare arguments.
WIDE = {"power"}
RARE = {"sin", "cos", "tan"}
_CALL = re.compile(r"^\s+(?:callq?|bl|jmp|b)\s+(\*?%?[A-Za-z_]\S*)", re.MULTILINE)


def called(text: str) -> set[str]:
    """The functions that are called, or jumped to at the end."""
    return {name for name in _CALL.findall(text) if not name.startswith(".")}


def loop_of(text: str) -> str:
    """The function of the loop, without those that it calls."""
    found = re.search(r"^nest:.*?^\.Lfunc_end", text, re.MULTILINE | re.DOTALL)
    assert found
    return found.group()


# An odd number of functions takes turns with vectors that are written and those that LLVM finds.
ROWS = [(processor, dtype, name) for processor in PROCESSORS for dtype in ("float32", "float64") for name in ELEMENTARY]


@pytest.mark.parametrize(("row", "vectors"), in_turn(ROWS, ["written", "found"]))
def test_loops_are_vector_code_without_calls(row: tuple[str, str, str], vectors: str) -> None:
    (processor, dtype, name), found = row, vectors == "found"
    module = assembly(name, dtype, PROCESSORS[processor], None if found else FORMS[processor])
    text = loop_of(module)
    calls = {symbol.strip('"') for symbol in called(text)}
    if name in RARE:
        # One question for each vector, whether the slow way must be taken for it; and one for numbers that are left.
        variants = {symbol for symbol in calls if re.fullmatch(rf"tcdsl\.rare\.{name}\.{dtype}\.\d+", symbol)}
        assert variants
        calls -= variants | {f"tcdsl.rare.{name}.{dtype}"}
    assert not calls
    assert {symbol for symbol in called(module) if "tcdsl.rare." not in symbol} == set()
    packed = PACKED[processor]["float64" if name in WIDE else dtype]
    assert len(re.findall(packed, text)) > 4


def test_calls_are_seen() -> None:
    # What is left of a division is computed by the C library.
    for processor in PROCESSORS.values():
        assert called(assembly("mod", "float64", processor))
