"""Counting the operations of a program and of its derivatives, and the bounds between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from tcdsl.autodiff import adjoint, tangent
from tcdsl.autodiff.cost import count_operations
from tcdsl.ir.program import Program
from tcdsl.ir.sizes.size_binding import bind_sizes, evaluate_size
from tcdsl.polyhedra.writes import writes_each_cell_once
from tcdsl.simplification import simplify

__all__ = ["Derivatives", "Measured", "kept_derivatives"]


@dataclass(frozen=True)
class Measured:
    """Weighted operations for one set of arguments.

    ``normal`` are those of the function simplified as its derivatives are; ``interface`` is the number of elements of
    inputs and outputs, ``product_cells`` the number of cells of products.
    """

    primal: float
    normal: float
    tangent: float
    adjoint: float
    interface: int
    product_cells: int

    def check_with_interface(self) -> None:
        """Assert the bound that allows for inputs and outputs, for both derivatives."""
        assert self.adjoint <= 4 * (self.primal + self.interface) + 1e-6, self
        assert self.tangent <= 4 * (self.primal + self.interface) + 1e-6, self

    def check(self) -> None:
        """Assert the bounds of theorems 6.1 and 6.55.

        The tangent's has no allowance for inputs and outputs, so that it tells what a sum or a product over a single
        point is. In normal form a sum of equal terms is a multiplication by their number, which is one operation even
        if the number is 1. And the derivative of a product divides and multiplies once for a single factor too: for the
        tangent, a product of n factors counts n operations, not n - 1.
        """
        self.check_with_interface()
        assert self.tangent <= 4 * (max(self.primal, self.normal) + self.product_cells) + 1e-6, self


class Derivatives:
    """A program, its tangent and its adjoint by ``wrt``, made once to be measured at several sizes."""

    def __init__(self, program: Program, wrt: Sequence[str]) -> None:
        self.program = program
        self.normal = simplify(program)
        self.wrt = tuple(wrt)
        self.tangent = tangent(program, wrt)
        self.adjoint = adjoint(program, wrt)

    def with_arguments(self, arrays: Sequence[np.ndarray]) -> Iterator[tuple[Program, list[np.ndarray]]]:
        """The program, the tangent and the adjoint, each with arrays to run it on."""
        sizes = bind_sizes(self.program, [array.shape for array in arrays])
        outputs = [self.program.tensor(name) for name in self.program.outputs]
        shapes = [tuple(evaluate_size(extent, sizes) for extent in output.shape) for output in outputs]
        seeds = [
            np.ones(shape, output.dtype)
            for output, shape in zip(outputs, shapes, strict=True)
            if output.dtype.startswith("float")
        ]
        pairs = zip(arrays, self.program.inputs, strict=True)
        directions = [array for array, tensor in pairs if tensor.name in self.wrt]
        yield self.program, [*arrays]
        yield self.tangent, [*arrays, *directions]
        yield self.adjoint, [*arrays, *seeds]

    def measured(self, arrays: Sequence[np.ndarray]) -> Measured:
        """What one call of each takes."""
        counts = [count_operations(made, inputs).weighted for made, inputs in self.with_arguments(arrays)]
        sizes = bind_sizes(self.program, [array.shape for array in arrays])

        def cells(name: str) -> int:
            return prod(evaluate_size(extent, sizes) for extent in self.program.tensor(name).shape)

        interface = sum(array.size for array in arrays) + sum(map(cells, self.program.outputs))
        products = [
            statement.target.tensor
            for statement in self.program.statements
            if statement.accumulate in ("multiply", "power") and not writes_each_cell_once(statement)
        ]
        normal = count_operations(self.normal, arrays).weighted
        return Measured(counts[0], normal, counts[1], counts[2], interface, sum(map(cells, products)))


@lru_cache(maxsize=64)
def kept_derivatives(program: Program, wrt: tuple[str, ...]) -> Derivatives:
    """`Derivatives`, kept for the next test that asks for them."""
    return Derivatives(program, wrt)
