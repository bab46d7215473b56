"""Derivatives without the values, kept for the next test that asks for them: most programs are tested in many ways."""

from __future__ import annotations

from functools import lru_cache

from tcdsl.autodiff import adjoint, tangent
from tcdsl.ir.program import Program

__all__ = ["kept_adjoint", "kept_tangent"]


@lru_cache(maxsize=4096)
def kept_adjoint(program: Program, wrt: tuple[str, ...]) -> Program:
    return adjoint(program, wrt, keep_outputs=False)


@lru_cache(maxsize=4096)
def kept_tangent(program: Program, wrt: tuple[str, ...]) -> Program:
    return tangent(program, wrt, keep_outputs=False)
