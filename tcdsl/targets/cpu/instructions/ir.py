"""All names of this room: ``ir.IntType(64)``, ``ir.Module("nest")``, ``ir.Builder(block)``."""

from __future__ import annotations

from tcdsl.targets.cpu.instructions.builder import Builder
from tcdsl.targets.cpu.instructions.modules import BasicBlock, Function, GlobalVariable, Module, Phi
from tcdsl.targets.cpu.instructions.values import (
    POINTER,
    ArrayType,
    ConstantOperand,
    DoubleType,
    FloatType,
    FunctionType,
    HalfType,
    IntType,
    Operand,
    Type,
    VectorType,
    VoidType,
)

__all__ = [
    "POINTER",
    "ArrayType",
    "BasicBlock",
    "Builder",
    "ConstantOperand",
    "DoubleType",
    "FloatType",
    "Function",
    "FunctionType",
    "GlobalVariable",
    "HalfType",
    "IntType",
    "Module",
    "Operand",
    "Phi",
    "Type",
    "VectorType",
    "VoidType",
]
