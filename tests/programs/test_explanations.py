"""Golden texts: every stage of the characteristic programs, as it prints."""

from __future__ import annotations

import pytest

from tests.golden_texts import Golden
from tests.programs.table import PROGRAMS, CharacteristicProgram, arguments_of

# Loops and generated code of a few programs, one for each kind of nest; the rest is in the program texts.
NESTS = ("matmul", "softmax", "padded_convolution", "max_pool", "scatter_add", "blur_reflect", "cumulative_sum")


def explained(program: CharacteristicProgram, stage: str) -> str:
    arguments = arguments_of(program, program.calls[0], "float32")
    return str(program.function.explain(stage, *arguments, **program.options))


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=str)
def test_program_text(program: CharacteristicProgram, golden: Golden) -> None:
    golden(f"ir/{program.name}", explained(program, "ir"))


@pytest.mark.parametrize("program", [row for row in PROGRAMS.values() if row.smooth], ids=str)
def test_gradient_text(program: CharacteristicProgram, golden: Golden) -> None:
    golden(f"grad/{program.name}", explained(program, "grad"))


@pytest.mark.parametrize("name", NESTS)
def test_loops_text(name: str, golden: Golden) -> None:
    golden(f"loops/{name}", explained(PROGRAMS[name], "loops"))


@pytest.mark.parametrize("name", NESTS)
def test_generated_module(name: str, golden: Golden) -> None:
    golden(f"python/{name}", explained(PROGRAMS[name], "python"))
