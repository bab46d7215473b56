"""All names of this room: ``ir.IntType(64)``, ``ir.Module("nest")``, ``ir.Builder(block)``."""

from __future__ import annotations

from tcdsl.targets.cpu.instructions.builder import Builder
from tcdsl.targets.cpu.instructions.modules import Block, Function, GlobalVariable, Module, Phi
from tcdsl.targets.cpu.instructions.values import (
    POINTER,
    ArrayType,
    Constant,
    DoubleType,
    FloatType,
    FunctionType,
    HalfType,
    IntType,
    Type,
    Value,
    VectorType,
    VoidType,
)

__all__ = [
    "POINTER",
    "ArrayType",
    "Block",
    "Builder",
    "Constant",
    "DoubleType",
    "FloatType",
    "Function",
    "FunctionType",
    "GlobalVariable",
    "HalfType",
    "IntType",
    "Module",
    "Phi",
    "Type",
    "Value",
    "VectorType",
    "VoidType",
]
