"""A whole function: the text of a decorated function and its arguments give an `Outcome`.

Understood are sizes (``N, K = A.shape``, ``A.bind_dims(N, K)``, ``M = N // 2``), declarations (``O = output(N)``,
``O: real[N, M]``), tensor statements, local definitions, ``for`` over a ``range``, ``while`` and ``if`` on sizes and on
what is computed from them, and ``return`` at the end. What a round binds first is new in each round.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache
from types import FunctionType

import numpy as np

from tests.oracle.accesses import reading_accesses
from tests.oracle.evaluation import READINGS, Result, Target, Written, apply_statement
from tests.oracle.kinds import is_float, kind_of
from tests.oracle.nodes import Node
from tests.oracle.outcome import FaultError, Outcome, ShapeFaultError, UnspecifiedError
from tests.oracle.quotients import with_brackets_in_front
from tests.oracle.reader import Reader, free_names

__all__ = ["expected"]


def expected(source: str, arguments: Mapping[str, np.ndarray]) -> Outcome:
    """What the function in ``source`` does with ``arguments``, by the rules of the language alone."""
    # Whoever writes a program asks before those who test with it.
    return _expected(source, tuple((name, a.dtype.str, a.shape, a.tobytes()) for name, a in arguments.items()))


@lru_cache(maxsize=1024)
def _expected(source: str, given: tuple[tuple[str, str, tuple[int, ...], bytes], ...]) -> Outcome:
    arguments = {name: np.frombuffer(cells, dtype).reshape(shape) for name, dtype, shape, cells in given}
    function = _Function(arguments, READINGS[0])
    first = _outcome(function, source)
    # Where no read is conditional there is one reading.
    for reading in READINGS[1:] if function.conditional else ():
        other = _outcome(_Function(arguments, reading), source)
        if first.unspecified or other.unspecified:
            return first if first.unspecified else other
        if type(first.fault) is not type(other.fault) or not all(map(_same, first.arrays, other.arrays)):
            return Outcome(unspecified="readings of conditional reads differ")
    return first


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def _outcome(function: _Function, source: str) -> Outcome:
    try:
        with np.errstate(all="ignore"):
            return function.run(source)
    except UnspecifiedError as reason:
        return Outcome(unspecified=str(reason))
    except FaultError as fault:
        return Outcome(fault=fault, doubtful=fault.doubtful)


def _as_floats(array: np.ndarray, kind: object) -> np.ndarray:
    floats = array.astype(kind if isinstance(kind, np.dtype) and is_float(kind) else np.float64)
    # The neutral elements of maximum and minimum.
    ends = np.iinfo(np.int64)
    floats[array == ends.min], floats[array == ends.max] = -np.inf, np.inf
    return floats


class _Function:
    def __init__(self, arguments: Mapping[str, np.ndarray], reading: str) -> None:
        self.tensors = {name: np.asarray(value) for name, value in arguments.items()}
        floats = [array.dtype for array in self.tensors.values() if is_float(array.dtype)]
        self.given = np.result_type(*floats) if floats else np.dtype(np.float64)
        self.sizes: dict[str, int] = {}
        self.declared: dict[str, Target] = {}
        self.local: dict[str, ast.expr] = {}
        self.written: dict[str, Written] = {}
        self.real: set[str] = set()
        self.weak: set[str] = set()  # what whole numbers alone have been written to
        self.reading = reading
        self.conditional = False  # whether a read has been met that may not be evaluated
        self.terms = 1
        self.doubts: list[str] = []

    def run(self, source: str) -> Outcome:
        functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
        for node in functions[0].body:
            if isinstance(node, ast.Return):
                names = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                arrays = tuple(self.tensors[name.id] for name in names)
                return Outcome(arrays, terms=self.terms, doubtful="; ".join(self.doubts))
            self._line(node)
        raise NotImplementedError("a function without return")

    def _line(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=tensor), attr="bind_dims"), args=names)):
                self._bind([name.id for name in names], self.tensors[tensor].shape)
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Attribute(value=ast.Name(id=tensor))):
                self._bind([name.id for name in names], self.tensors[tensor].shape)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="output"), args=extents)):
                self._declare(name, extents or None, None)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Subscript(ast.Name(id=kind), extents)):
                parts = extents.elts if isinstance(extents, ast.Tuple) else [extents]
                self._declare(name, parts, None if kind == "real" else np.dtype(kind))
                self.real |= {name} if kind == "real" else set()
            case ast.Assign(targets=[ast.Subscript()]) | ast.AugAssign(target=ast.Subscript()):
                self._statement(node)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                bound = {**self.sizes, **self.tensors, **self.local}
                reads = (part for part in ast.walk(value) if isinstance(part, ast.Subscript))
                if free_names(value, bound) or any(isinstance(part.value, ast.Name) for part in reads):
                    self.local[name] = value
                else:
                    self.sizes[name] = Reader(self.sizes, self.tensors, self.local).constant(value)
            case ast.For(target=ast.Name(id=number), iter=ast.Call(func=ast.Name(id="range"), args=bounds), body=body):
                for value in range(*map(self._number, bounds)):
                    self._block(body, {number: value})
            case ast.While(test=test, body=body):
                while self._number(test):
                    self._block(body, {})
            case ast.If(test=test, body=body, orelse=other):
                self._block(body if self._number(test) else other, {})
            case _:
                raise NotImplementedError(ast.unparse(node))

    def _number(self, node: ast.expr) -> int:
        # Python's own arithmetic of the integers that sizes and counters are.
        return int(FunctionType(compile(ast.Expression(node), "<oracle>", "eval"), dict(self.sizes))())

    def _block(self, body: list[ast.stmt], numbers: dict[str, int]) -> None:
        # A round, or an arm of a branch: what it binds first is gone after it.
        kept = [set(held) for held in (self.tensors, self.sizes, self.declared, self.local, self.written)]
        self.sizes |= numbers
        for line in body:
            self._line(line)
        for held, names in zip((self.tensors, self.sizes, self.declared, self.local, self.written), kept, strict=True):
            for name in held.keys() - names:
                del held[name]
        self.weak &= self.tensors.keys()
        self.real &= self.declared.keys()

    def _bind(self, names: list[str], shape: tuple[int, ...]) -> None:
        if len(names) != len(shape):
            raise ShapeFaultError("rank")
        for name, extent in zip(names, shape, strict=True):
            if self.sizes.setdefault(name, extent) != extent:
                raise ShapeFaultError(f"{name} is {self.sizes[name]} and {extent}")

    def _declare(self, name: str, extents: list[ast.expr] | None, dtype: np.dtype | None) -> None:
        if extents is None:
            self.declared[name] = Target()
            return
        reader = Reader(self.sizes, self.tensors, self.local)
        shape = tuple(reader.constant(extent) for extent in extents)
        if any(extent < 0 for extent in shape):
            raise ShapeFaultError(f"negative extents {shape}")
        self.declared[name] = Target(shape=shape, declared=True, dtype=dtype)

    def _guarded(self, node: Node) -> Node:
        return with_brackets_in_front(node, {name: tensor.dtype for name, tensor in self.tensors.items()})

    def _statement(self, node: ast.Assign | ast.AugAssign) -> None:
        bound = {**self.tensors, **dict.fromkeys(self.declared)}
        statement = Reader(self.sizes, bound, self.local).statement(node).mapped(self._guarded)
        known = self.declared.get(statement.target, Target())
        array = self.tensors.get(statement.target)
        kind = kind_of(statement.value, {name: tensor.dtype for name, tensor in self.tensors.items()})
        if statement.target in self.weak and (is_float(kind) or statement.accumulate == "/"):
            array = _as_floats(array, kind)
        dtype = known.dtype
        if statement.target in self.real:
            weak = self.given if isinstance(kind, type) else np.dtype(np.float64)
            dtype = kind if isinstance(kind, np.dtype) and is_float(kind) else weak
        target = Target(array, known.shape, known.declared, dtype, self.written.get(statement.target))
        self.conditional |= any(access.conditional for access in reading_accesses(statement, self.tensors))
        result: Result = apply_statement(statement, target, self.tensors, self.reading)
        fresh = self.tensors.get(statement.target) is None and known.dtype is None
        if result.array.dtype == np.int64 and kind is int and (fresh or statement.target in self.weak):
            self.weak.add(statement.target)
        else:
            self.weak.discard(statement.target)
        self.tensors[statement.target] = result.array
        if result.written is not None:
            self.written[statement.target] = result.written
        self.terms = max(self.terms, result.terms)
        if result.doubtful:
            self.doubts.append(result.doubtful)
