"""Derivatives without the values, kept for the next test that asks for them: most programs are tested in many ways."""

from __future__ import annotations

from functools import lru_cache

from tcdsl.autodiff import adjoint, tangent
from tcdsl.autodiff.jacobians.program_jacobians import jacobian
from tcdsl.ir.program import Program
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.text.printer import format_program
from tests.range_checks import verify_deeply

__all__ = ["kept_adjoint", "kept_jacobian", "kept_tangent"]


@lru_cache(maxsize=4096)
def kept_adjoint(program: Program, wrt: tuple[str, ...]) -> Program:
    return adjoint(program, wrt, keep_outputs=False)


@lru_cache(maxsize=4096)
def kept_tangent(program: Program, wrt: tuple[str, ...]) -> Program:
    return tangent(program, wrt, keep_outputs=False)


@lru_cache(maxsize=4096)
def kept_jacobian(program: Program, wrt: tuple[str, ...], mode: str) -> Program:
    """Verified, and as it reads back."""
    made = jacobian(program, wrt, mode=mode, keep_outputs=False)
    assert parse_program(format_program(made)) == made
    verify_deeply(made)
    return made
