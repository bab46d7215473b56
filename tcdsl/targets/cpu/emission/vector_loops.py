"""Innermost loops whose steps may be made several at once, as the lanes of vectors.

::

    for j in range(n):
        y[i, j] = a[i] * x[i, j] + b[j]
        total += y[i, j]

Cells side by side are read and written at the place of the loop's variable along the last axis, other cells are the
same for all steps, and no step reads what another one writes, but for what names accumulate. Tests choose among values,
and say in which lanes something happens.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass

from tcdsl.ir.dtypes import DTYPES, numpy_dtype
from tcdsl.targets.cpu.emission.walking import walk
from tcdsl.targets.cpu.intrinsics.formulas import FORMULAS
from tcdsl.targets.cpu.intrinsics.frame_memory import BufferKind
from tcdsl.targets.cpu.mathematics.elementary_functions import ELEMENTARY

__all__ = ["VectorLoop", "place_of", "vector_loop"]

_TYPES = frozenset(("bool_", *DTYPES)) - {"bool"}
# Vectors cannot be divided as whole numbers, and what is left of floats is computed one by one.
_FUNCTIONS = frozenset((*FORMULAS, *ELEMENTARY, "power")) - {"floor_div", "mod"}
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.BitAnd, ast.BitOr, ast.BitXor)
_FEW = 32
"""So few steps, where their number is known, LLVM writes out one after the other, and does better then."""


@dataclass(frozen=True, slots=True)
class VectorLoop:
    """What is known of such a loop: how many bytes its widest cells take, what it accumulates, by which operation, how
    much it computes, and which places all steps read or write, whatever tests say.
    """

    cell: int
    sums: Mapping[str, str]
    work: int
    certain: frozenset[str]


def vector_loop(
    loop: ast.For,
    bounds: Sequence[object],
    settled: Set[str],
    kind_of: Callable[[str], BufferKind | None],
    sum_type: Callable[[str], str | None],
    *,
    masks: bool,
) -> VectorLoop | None:
    """What is known of ``loop``, if its steps may be lanes.

    ``bounds`` are its values, as far as they are numbers; the names that are ``settled`` have one value where they are
    used; ``kind_of`` says what buffers are, and ``sum_type`` the types of names that may accumulate in any order.
    Only with ``masks`` tests may keep cells from being read or written.
    """
    if _is_short(bounds) or not isinstance(loop.target, ast.Name) or loop.target.id not in settled:
        return None
    return _Steps(loop.target.id, settled, kind_of, sum_type).of(loop.body, masks)


def place_of(cell: ast.Subscript) -> str:
    """A text for the place of ``cell``."""
    assert isinstance(cell.value, ast.Name)
    return f"{cell.value.id} {ast.dump(cell.slice)}"


def _is_short(bounds: Sequence[object]) -> bool:
    if len(bounds) > 2:
        return True
    first, last = (0, *bounds) if len(bounds) == 1 else bounds
    return isinstance(first, int) and isinstance(last, int) and last - first < _FEW


class _NoVectorsError(Exception):
    pass


class _Steps:
    def __init__(
        self,
        variable: str,
        settled: Set[str],
        kind_of: Callable[[str], BufferKind | None],
        sum_type: Callable[[str], str | None],
    ) -> None:
        self._variable = variable
        self._settled = settled
        self._kind_of = kind_of
        self._sum_type = sum_type
        self._cell = 0
        self._work = 0
        self._sums: dict[str, str] = {}
        #: The names that have another value in each step, those that are used, and those of floats.
        self._names = {variable}
        self._used: set[str] = set()
        self._floating: set[str] = set()
        #: Where along the last axis each buffer is read and written, by its slot; and the buffers that are written.
        self._places: dict[int, set[str]] = {}
        self._written: set[int] = set()
        #: How many tests stand around; what is read and written whatever they say, and what is so because of them.
        self._tests = 0
        self._certain: set[str] = set()
        self._uncertain: set[str] = set()

    def of(self, body: Sequence[ast.stmt], masks: bool) -> VectorLoop | None:
        try:
            for statement in body:
                self._statement(statement)
        except _NoVectorsError:
            return None
        if any(len(self._places[slot]) > 1 for slot in self._written) or not self._cell:
            return None
        if not self._used.isdisjoint(self._sums) or not (masks or self._uncertain <= self._certain):
            return None
        return VectorLoop(self._cell, self._sums, self._work, frozenset(self._certain))

    def _require(self, condition: bool) -> None:
        if not condition:
            raise _NoVectorsError

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in self._settled:
                self._value(value)
                self._names.add(name)
                if self._is_floating(value):
                    self._floating.add(name)
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Name(id="maximum" | "minimum" as kind), args=[ast.Name(id=held), value]),
            ) if held == name:
                self._sum(name, kind, value)
            case ast.AugAssign(target=ast.Name(id=name), op=operator, value=value):
                kinds = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply"}
                self._require(type(operator) in kinds)
                self._sum(name, kinds[type(operator)], value)
            case ast.Assign(targets=[ast.Subscript() as cell], value=value):
                self._value(value)
                self._store(cell)
            case ast.AugAssign(target=ast.Subscript() as cell, op=operator, value=value):
                self._require(isinstance(operator, _OPERATORS))
                self._value(value)
                self._store(cell)
            case ast.If(test=test, body=body, orelse=orelse):
                self._value(test)
                self._tests += 1
                for each in (*body, *orelse):
                    self._statement(each)
                self._tests -= 1
            case ast.Pass():
                pass
            case _:
                raise _NoVectorsError

    def _sum(self, name: str, kind: str, value: ast.expr) -> None:
        # In one statement, which is the only one that knows it.
        dtype = self._sum_type(name)
        self._require(dtype in _TYPES and name not in self._sums)
        self._sums[name] = kind
        self._value(value)
        assert dtype is not None
        self._cell = max(self._cell, numpy_dtype(dtype).itemsize)
        self._work += 1

    def _store(self, cell: ast.Subscript) -> None:
        self._require(self._read(cell))
        assert isinstance(cell.value, ast.Name)
        kind = self._kind_of(cell.value.id)
        assert kind is not None
        self._written.add(kind.slot)
        if self._tests:
            # What must not be stored is the affair of masks.
            self._uncertain.add("")

    def _read(self, cell: ast.Subscript) -> bool:
        # Whether the steps read cells side by side; else all of them read one.
        self._require(isinstance(cell.value, ast.Name))
        assert isinstance(cell.value, ast.Name)
        kind = self._kind_of(cell.value.id)
        self._require(kind is not None and not kind.checked)
        assert kind is not None
        index = cell.slice.elts if isinstance(cell.slice, ast.Tuple) else [cell.slice]
        for part in index:
            for node in walk(part):
                if isinstance(node, ast.Subscript):
                    self._require(not self._read(node))
                elif isinstance(node, ast.Name):
                    self._used.add(node.id)
        # Rows are apart or the same: where the last axes agree, no step meets another one.
        self._places.setdefault(kind.slot, set()).add(f"{cell.value.id} {''.join(map(ast.dump, index[-1:]))}")
        (self._uncertain if self._tests else self._certain).add(place_of(cell))
        varying = [part for part in index if self._varies(part)]
        if not varying:
            # Beside rows it may be among their cells.
            self._places[kind.slot].add("one")
            return False
        self._require(kind.contiguous and varying == [index[-1]] and self._is_next(index[-1]))
        self._cell = max(self._cell, numpy_dtype(kind.dtype).itemsize)
        return True

    def _varies(self, node: ast.expr) -> bool:
        return any(isinstance(part, ast.Name) and part.id in self._names for part in walk(node))

    def _is_next(self, index: ast.expr) -> bool:
        # Whether it is larger by one in each step.
        match index:
            case ast.Name(id=name):
                return name == self._variable
            case ast.BinOp(left=left, op=ast.Add(), right=right) if not self._varies(right):
                return self._is_next(left)
            case ast.BinOp(left=left, op=ast.Add(), right=right) if not self._varies(left):
                return self._is_next(right)
            case ast.BinOp(left=left, op=ast.Sub(), right=right) if not self._varies(right):
                return self._is_next(left)
        return False

    def _value(self, node: ast.expr) -> None:
        match node:
            case ast.Constant():
                pass
            case ast.Name(id=name):
                self._used.add(name)
            case ast.Subscript():
                self._read(node)
            case ast.UnaryOp(operand=operand):
                self._value(operand)
            case ast.BinOp(left=left, op=operator, right=right):
                self._require(isinstance(operator, _OPERATORS))
                self._work += 1
                self._value(left)
                self._value(right)
            case ast.Compare(left=left, comparators=[right]):
                self._work += 1
                self._value(left)
                self._value(right)
            case ast.BoolOp(values=[first, *others]):
                self._value(first)
                self._for_nothing(others)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._work += 1
                self._value(test)
                self._for_nothing([body, orelse])
            case ast.Call(func=ast.Name(id=function), args=arguments):
                self._call(function, arguments)
            case _:
                raise _NoVectorsError

    def _for_nothing(self, parts: Sequence[ast.expr]) -> None:
        self._tests += 1
        for part in parts:
            self._value(part)
        self._tests -= 1

    def _call(self, function: str, arguments: Sequence[ast.expr]) -> None:
        if function == "power":
            # Exponents of whole numbers take loops of their own.
            whole = isinstance(arguments[1], ast.Constant)
            self._require(whole or any(map(self._is_floating, arguments)))
        else:
            self._require(function in _TYPES or function in _FUNCTIONS)
        self._work += 20 if function in ELEMENTARY else 1
        for argument in arguments:
            self._value(argument)

    def _is_floating(self, node: ast.expr) -> bool:
        # Whether that is certain.
        match node:
            case ast.Constant(value=value):
                return isinstance(value, float)
            case ast.Name(id=name):
                return name in self._floating
            case ast.Subscript(value=ast.Name(id=name)):
                kind = self._kind_of(name)
                return kind is not None and kind.dtype.startswith("float")
            case ast.UnaryOp(operand=operand):
                return self._is_floating(operand)
            case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
                return self._is_floating(left) or self._is_floating(right)
            case ast.Call(func=ast.Name(id=function), args=arguments):
                if function in _TYPES:
                    return function.startswith("float")
                return function in ELEMENTARY or any(map(self._is_floating, arguments))
        return False
