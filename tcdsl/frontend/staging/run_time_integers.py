"""Python's integers in indices and ranges: sizes of the program, so that one program serves many of them.

A term of an index, ``x[i + s]`` or ``x[k, i]``, may be any integer. The end of a range, a side of a condition and an
extent may be integers above `MOST_CONSTANT`: small ones are windows and the like, which loops unroll over. A program
with a small extent serves that one alone; its loops and branches on the number run as for any other. All others, such
as coefficients and divisors, are constants of the program, which is then staged for their values.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from tcdsl.frontend.staging.builder import ProgramBuilder
from tcdsl.frontend.staging.program_inputs import LARGEST_CARRIED, CarriedInteger
from tcdsl.frontend.symbols.opaque_sizes import named_sizes
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicTensor
from tcdsl.frontend.symbols.values import Value
from tcdsl.ir.build import apply, integer
from tcdsl.ir.dtypes import is_integer
from tcdsl.ir.expressions import (
    Apply,
    Constant,
    Expr,
    IndexValue,
    Local,
    Read,
    SizeValue,
    index_variables,
    reads,
    size_names,
    transform,
    walk,
)
from tcdsl.ir.sizes.spoken_sizes import NEGATIVE, POSITIVE

__all__ = ["MOST_CONSTANT", "RunTimeIntegers", "RunsOnTensors", "Specialize", "UnknownShapes", "terms"]

MOST_CONSTANT = 16


class Specialize(BaseException):
    """Python asked for the value of run-time numbers: stage again with these arguments as constants.

    Not an `Exception`, so that no ``except`` in user code catches it.
    """

    def __init__(self, parameters: frozenset[str]) -> None:
        super().__init__(parameters)
        self.parameters = parameters


class RunsOnTensors(BaseException):
    """A loop, or a branch, over what tensors of a graph hold: stage the whole function, on what they are as arrays."""


class ShapesFound(BaseException):
    """Code that ran for what its statements say of its tensors' shapes has said it: stage it."""


class UnknownShapes(BaseException):
    """A tensor of unknown shape, in a function that is staged as a whole: find out what it says about shapes first."""


def terms(node: ast.expr, variables: Collection[str] | None = None) -> Iterator[ast.expr]:
    """What an expression adds up, itself included; with ``variables`` also parts of products and quotients without."""
    yield node
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            yield from (*terms(left, variables), *terms(right, variables))
        case ast.BinOp(left=left, op=ast.Mult() | ast.FloorDiv() | ast.Mod(), right=right) if variables is not None:
            if not any(isinstance(part, ast.Name) and part.id in variables for part in ast.walk(node)):
                yield from (*terms(left, variables), *terms(right, variables))
        case ast.UnaryOp(op=ast.UAdd() | ast.USub(), operand=operand):
            yield from terms(operand, variables)


class _Session(Protocol):
    builder: ProgramBuilder
    extents: dict[str, int]

    def is_negative(self, expr: Expr) -> bool: ...


class RunTimeIntegers:
    """The integers among the arguments of the call that a function is staged for."""

    def __init__(self, session: _Session) -> None:
        self._session = session
        self._given: dict[str, tuple[int | str, int]] = {}
        self._sizes: dict[str, Expr] = {}
        #: What names hold that is made of NumPy's integers.
        self._named: dict[str, Expr] = {}
        #: The sizes that are products and quotients of such alone.
        self._made: set[str] = set()
        #: Those that became sizes, by the input that holds the number.
        self.carried: dict[str, CarriedInteger] = {}
        #: Those that are extents: they are the program's, though what else is made of them is a number of the call.
        self.fixed: dict[int | str, int] = {}
        #: The arguments that larger integers would have made sizes.
        self.small: set[str] = set()

    @property
    def builder(self) -> ProgramBuilder:
        """The program that they are numbers of."""
        return self._session.builder

    def add(self, tensor: str, place: int | str, number: int) -> None:
        """The input ``tensor`` holds the argument at ``place``, which is ``number`` in this call."""
        self._given[tensor] = place, number

    def __contains__(self, tensor: str) -> bool:
        return tensor in self._given

    def argument(self, tensor: str) -> frozenset[str]:
        """Which argument the input ``tensor`` holds."""
        return frozenset((str(self._given[tensor][0]),))

    def specialize(self, tensors: Collection[str]) -> None:
        """Stage the function again with the integers that these inputs hold as constants, if there are any."""
        if tensors:
            raise Specialize(frozenset().union(*map(self.argument, tensors)))

    def size(self, expr: Expr, bound: bool = False) -> Expr | None:
        """What is made of run-time integers, sizes and constants as an expression of sizes.

        ``None`` if it has to be a constant. ``bound`` says that it ends a range, or is an extent.
        """
        match expr:
            case Constant(value=int(number)):
                return integer(int(number))
            case Read(tensor=tensor) if tensor in self._given:
                return self._carry(tensor, bound)
            case SizeValue():
                return expr
            case Apply(primitive="add" | "sub" | "neg" | "mul" | "floor_div" | "mod" as primitive, arguments=arguments):
                parts = [self.size(argument, bound) for argument in arguments]
                known = [part for part in parts if part is not None]
                return self._applied(primitive, known) if len(known) == len(parts) else None
        return None

    def end(self, given: object) -> Expr | None:
        """What a NumPy integer of the call, or one that is made of such, is as an end of a range or an extent.

        ``None`` for all else, an array of rank 0 among it, which is data.
        """
        expr = self._number(given)
        if expr is None:
            return None
        size = self.size(expr, bound=True)
        if size is None:
            self.specialize({read.tensor for read in reads(expr)})
        return size

    def is_number(self, given: object) -> bool:
        """Whether ``given`` is such an integer."""
        return self._number(given) is not None

    def _number(self, given: object) -> Expr | None:
        match given:
            case PendingArray(extents=()):
                value = given.element
            case SymbolicTensor(extents=()):
                value = given.cell(())
            case Value():
                value = given
            case _:
                return None
        expr = transform(
            value.expr, lambda node: self._named.get(node.tensor, node) if isinstance(node, Read) else node
        )
        made = [node for node in walk(expr) if isinstance(node, Read | IndexValue | Local)]
        numbers = bool(made) and all(isinstance(node, Read) and node.tensor in self._given for node in made)
        return expr if numbers and is_integer(value.logical) else None

    def name(self, tensor: str, value: object) -> None:
        """Note that ``tensor`` holds ``value``, which may be made of such integers: ``last = n - 1``."""
        expr = self._number(value)
        if expr is not None:
            self._named[tensor] = expr

    def _applied(self, primitive: str, parts: Sequence[Expr]) -> Expr:
        made = named_sizes(apply(primitive, *parts), self.builder.opaque_size)
        if isinstance(made, SizeValue) and all(isinstance(part, Constant) or self.is_alone(part) for part in parts):
            self._made.add(made.name)
        return made

    def _carry(self, tensor: str, bound: bool) -> Expr | None:
        place, number = self._given[tensor]
        if abs(number) >= LARGEST_CARRIED:
            return None
        if bound and number <= MOST_CONSTANT:
            self.small.add(str(place))
            return None
        if tensor not in self.carried:
            negative = number < 0
            builder = self.builder
            name = f"{NEGATIVE if negative else POSITIVE}{builder.tensor(tensor).label or tensor}"
            made = builder.input(name, "bool", 2, [name])
            for extent, known in zip(made.extents, (abs(number), 0), strict=True):
                self._session.extents |= dict.fromkeys(size_names(extent), known)
            self.carried[tensor] = CarriedInteger(made.name, place, negative)
            self._sizes[tensor] = apply("neg", made.extents[0]) if negative else made.extents[0]
            builder.set_number(tensor, self._sizes[tensor])
        if bound:
            self.carried[tensor] = replace(self.carried[tensor], least=MOST_CONSTANT + 1)
        return self._sizes[tensor]

    def extent(self, expr: Expr) -> int | None:
        """What an extent is that small positional integers say: the program serves these alone, whose loops run."""
        match expr:
            case Constant(value=int(number)):
                return number
            case Read(tensor=tensor) if tensor in self._given:
                place, number = self._given[tensor]
                if not isinstance(place, int) or number > MOST_CONSTANT or abs(number) >= LARGEST_CARRIED:
                    return None
                self.fixed[place] = number
                return number
            case Apply(primitive="add" | "sub" | "neg" as primitive, arguments=arguments):
                parts = [self.extent(argument) for argument in arguments]
                known = [part for part in parts if part is not None]
                if len(known) < len(parts):
                    return None
                return -known[0] if primitive == "neg" else known[0] + (known[1] if primitive == "add" else -known[1])
        return None

    def is_alone(self, index: Expr) -> bool:
        """Whether an index is made of run-time integers and constants."""
        sizes = frozenset(self._made).union(*map(size_names, self._sizes.values()))
        names = size_names(index)
        return bool(names) and names <= sizes and not (index_variables(index) or any(reads(index)))

    def is_negative(self, index: Expr) -> bool:
        """Whether what `is_alone` is below 0 in this call. The program serves the calls in which it is, or is not."""
        if index in self._sizes.values():
            return not isinstance(index, SizeValue)
        return self._session.is_negative(named_sizes(index, self.builder.opaque_size))
