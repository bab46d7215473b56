"""Golden texts: every stage of the characteristic programs, as it prints."""

from __future__ import annotations

import pytest

import tcdsl as tc
from tests.golden_texts import Golden
from tests.programs.table import PROGRAMS, CharacteristicProgram, arguments_of


def explained(program: CharacteristicProgram, stage: str) -> str:
    arguments = arguments_of(program, program.calls[0], "float32")
    # Tiles of products are as wide as the processor's vectors, and rows of padded windows have masks where these have.
    with tc.config(optimize="-padding -panels -windows"):
        return str(program.function.explain(stage, *arguments, **program.options))


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=str)
def test_program_text(program: CharacteristicProgram, golden: Golden) -> None:
    golden(f"ir/{program.name}", explained(program, "ir"))


@pytest.mark.parametrize("program", [row for row in PROGRAMS.values() if row.smooth], ids=str)
def test_gradient_text(program: CharacteristicProgram, golden: Golden) -> None:
    golden(f"grad/{program.name}", explained(program, "grad"))


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=str)
def test_loops_text(program: CharacteristicProgram, golden: Golden) -> None:
    golden(f"loops/{program.name}", explained(program, "loops"))


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=str)
def test_generated_module(program: CharacteristicProgram, golden: Golden) -> None:
    golden(f"python/{program.name}", explained(program, "python"))
