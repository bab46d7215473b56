"""Staged programs: what tracing gives, and what must hold for a program to serve a call.

Run-time integers that a program converts to a narrower type must fit there, as Python's integers must in NumPy 2:
``x + n`` with int8 cells and ``n=300`` is an error at the call, not a sum modulo 256.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from tcdsl.config import settings
from tcdsl.errors import DtypeError
from tcdsl.frontend.staging.given_arrays import require_aligned
from tcdsl.frontend.staging.program_inputs import CarriedInteger, DrawnKey
from tcdsl.frontend.staging.session import BroadcastGuard
from tcdsl.frontend.surroundings.draws import KEYS
from tcdsl.frontend.surroundings.plain_values import exact, same_plain
from tcdsl.frontend.surroundings.readings import same_configuration
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.ir.dtypes import INTEGER, is_integer
from tcdsl.ir.expressions import Apply, Cast, Constant, Expr, Read, SizeValue, children, walk
from tcdsl.ir.interpreter.point_values import PointValues
from tcdsl.ir.program import AxisExtent, Program, statement_expressions, tensors_read
from tcdsl.ir.sizes.size_code import SizeCode
from tcdsl.ir.sizes.size_functions import SizeFunction
from tcdsl.ir.stages import needed_by, tensors_needed
from tcdsl.rewrite.renaming import expression_with_tensors_renamed
from tcdsl.runtime.calling.arguments import Call, tensor_argument
from tcdsl.runtime.calling.execution import Executable
from tcdsl.runtime.calling.repeated import Served
from tcdsl.runtime.calling.structure import Structure
from tcdsl.runtime.calling.written_memory import check_written, output_buffers
from tcdsl.span import Span

__all__ = ["Entry", "LinearPart", "Traced", "narrowed_integers"]


@dataclass(frozen=True, slots=True)
class Traced:
    """What tracing gives: the program, the structure of its results, and what the surroundings held.

    ``linear`` is the second part of a derivative at a point (`tcdsl.rewrite.linearization`): a program of
    values that this one returns after its results, of its inputs, and of tangents or cotangents.

    With ``checked``, the output behind the results says whether the user's checks have passed: so nothing drops them.
    """

    program: Program
    structure: Structure
    readings: tuple[Any, ...] = ()
    linear: Program | None = None
    checked: bool = False

    @property
    def checks(self) -> tuple[str, ...]:
        """The output that says whether the checks have passed, if there is one."""
        first = self.structure.leaves
        return self.program.outputs[first : first + 1] if self.checked else ()

    def checking(self, passed: SymbolicTensor | None) -> Traced:
        """What was traced, which returns whether all checks have passed, if there are any."""
        if passed is None:
            return self
        program = replace(self.program, outputs=(*self.program.outputs, passed.name))
        return replace(self, program=program, checked=True)

    def checking_unused_indices(self) -> Traced:
        """The same, which checks indices that are data in values of which no result is made, too."""
        from tcdsl.simplification.index_checks import unused_index_checks, with_index_checks

        unused = unused_index_checks(self.program)
        if not unused:
            return self
        program, passed = with_index_checks(self.program, unused, self.checks)
        outputs = (*program.outputs[: self.structure.leaves], passed)
        return replace(self, program=replace(program, outputs=outputs), checked=True)

    def without_needless_checks(self) -> Traced:
        """The same without the output of the checks, where other outputs need them, and the linear part does not."""
        program = self.program
        others = tuple(name for name in program.outputs if name not in self.checks)
        needed = tensors_needed(program, (*others, *(new for _, new in program.updates)))
        given = () if self.linear is None else (tensor.name for tensor in self.linear.inputs)
        if not self.checked or not needed.difference(given).issuperset(self.checks):
            return self
        return replace(self, program=replace(program, outputs=others), checked=False)


@dataclass(frozen=True, slots=True)
class LinearPart:
    """The second program of a derivative at a point, and those of its inputs that it reads."""

    executable: Executable
    read: frozenset[str]

    @staticmethod
    def of(program: Program, orders: tuple[int, ...]) -> LinearPart:
        """The part that ``program`` is; ``orders`` are those of its contractions."""
        read = frozenset().union(*map(tensors_read, program.statements), *map(needed_by, program.repeats))
        return LinearPart(Executable(program, orders=orders), read)


@dataclass(slots=True)
class Entry(Served):
    """One staged program, with what must hold for it to serve a call.

    ``differentiable`` are those of its inputs that are floating arguments: neither configuration nor surroundings.
    """

    executable: Executable
    guards: tuple[BroadcastGuard, ...] = ()
    configuration: Mapping[str, Any] = field(default_factory=dict)
    linear: LinearPart | None = None
    labels: tuple[str, ...] = ()
    differentiable: tuple[str, ...] = ()
    #: Whether it has the tapes of a gradient.
    tapes: bool = False
    #: The limit of memory that it was staged for, and how many states of its loops it keeps, if that is why.
    tape_memory: int | None = None
    checkpoints: int = 0
    _changed: Any = None

    def arrays(self, call: Call, seeds: Sequence[np.ndarray] = ()) -> list[np.ndarray] | None:
        """The program's inputs for ``call``, or ``None`` if this entry does not serve it.

        ``seeds`` are the last inputs: the tangents that a derivative takes besides its function's arguments.
        """
        for place, value in self.constants.items():
            if not same_plain(value, call.at(place).given):
                return None
        if not all(same_configuration(value, call.configuration[name]) for name, value in self.configuration.items()):
            return None
        if not self._is_of_now():
            return None
        arrays: list[np.ndarray] = []
        given: list[tuple[str, str, Any]] = []
        for source, tensor in zip(self.inputs, self.executable.program.inputs, strict=False):
            if isinstance(source, int):
                argument = call.arguments[source]
                given.append((tensor.name, argument.label, argument.given))
                arrays.append(argument.array)
            elif isinstance(source, CarriedInteger):
                carrier = source.array(call.at(source.place).given)
                if carrier is None:
                    return None
                arrays.append(carrier)
            else:
                label, value = tensor.label or tensor.name, source.current()
                given.append((tensor.name, label, value))
                try:
                    array = tensor_argument(self.executable.program.name, label, 0, value).array
                except DtypeError:
                    return None  # staging anew says where it is read
                if array.dtype != tensor.dtype or array.ndim != len(tensor.shape):
                    return None
                arrays.append(array)
        if not self.serves(tuple([array.shape for array in arrays])):
            return None
        require_aligned(self.executable.program, given, f"{self.executable.program.name}(): ")
        arrays.extend(seeds)
        if self.narrowed:
            check_narrowed(self.narrowed, self.executable.program, arrays, self.executable.sizes(arrays))
        return arrays

    def _is_of_now(self) -> bool:
        # What was otherwise the last time is asked first: it is most often so again.
        if self._changed is not None and not self._changed.unchanged():
            return False
        self._changed = next((reading for reading in self.readings if not reading.unchanged()), None)
        return self._changed is None

    def differs_in_surroundings(self, other: Entry) -> bool:
        """Whether another one for calls like those of this one differs in what was read around the function alone."""
        mine, others = (
            (each.guards, each.tape_memory, each.checkpoints, exact(tuple(each.constants.items())))
            for each in (self, other)
        )
        return mine == others and same_configuration(dict(self.configuration), dict(other.configuration))

    def run(self, arrays: list[np.ndarray], call: Call | None = None, out: Sequence[Any] | None = None) -> Any:
        """Run on the program's inputs and put the results, which ``out`` receives, into their structure."""
        program = self.executable.program
        check = partial(check_written, program, arrays, call) if program.updates else None
        if check is not None and call is not None:
            check()  # some arrays may have been made from other objects
        sizes = self.executable.sizes(arrays)
        buffers = None if out is None else output_buffers(program, out, arrays, sizes)
        results = self.computed(arrays, buffers, sizes, check)
        return self.structure.build([array if array.ndim else array[()] for array in results])

    def computed(self, arrays: list[np.ndarray], *options: Any) -> Sequence[np.ndarray]:
        """The results of the program, which spends the key of random numbers that it was given."""
        results = self.executable.run(arrays, *options)
        if self.draws:
            KEYS.spend()
        return results

    @property
    def draws(self) -> bool:
        """Whether it draws random numbers."""
        return any(isinstance(each, DrawnKey) for each in self.inputs)

    def serves(self, shapes: tuple[tuple[int, ...], ...]) -> bool:
        """Whether the guards hold for inputs of these shapes."""
        if self.tape_memory is not None and self.tape_memory != settings().tape_memory:
            return False
        if self.guards and self.guarded is None:
            self.guarded = self.written_guards().bound()
        return Served.serves(self, shapes)

    def written_guards(self) -> SizeFunction:
        """The function of the inputs' shapes that says whether the guards hold."""
        return _guards(self.executable.program, self.guards)


def _guards(program: Program, guards: Sequence[BroadcastGuard]) -> SizeFunction:
    # Sizes without the assertions: a guard decides which program's assertions are the ones that count.
    positions = {tensor.name: k for k, tensor in enumerate(program.inputs)}
    code = SizeCode([])
    for size in program.sizes:
        if isinstance(size.source, AxisExtent):
            code.define(size.name, f"shapes[{positions[size.source.tensor]}][{size.source.axis}]")
    for size in program.sizes:
        if not isinstance(size.source, AxisExtent):
            code.define(size.name, f"int({code.value(size.source)})")
    held = [_RELATIONS[each.relation].format(code.value(each.left), code.value(each.right)) for each in guards]
    return code.written(" and ".join(held), "shapes")


# What holds of two extents: see `BroadcastGuard`.
_RELATIONS = {
    "equal": "({0} == {1} or {0} != 1 != {1})",
    "left": "({0} == 1 != {1})",
    "right": "({0} != 1 == {1})",
    "same": "{0} == {1}",
    "most": "{0} <= {1}",
}


@dataclass(frozen=True, slots=True)
class NarrowedInteger:
    """An expression of run-time integers and sizes, and the integer type that it is converted to.

    ``place`` is that of the argument that it is, if it is one and no more.
    """

    value: Expr
    dtype: str
    span: Span | None
    place: int | str | None


def narrowed_integers(program: Program, numbers: Mapping[str, int | str]) -> tuple[NarrowedInteger, ...]:
    """What ``program`` narrows of ``numbers``, the inputs that are Python integers, which have these places."""
    if not numbers:
        return ()
    found: dict[tuple[Expr, str], NarrowedInteger] = {}
    sizes = {size.name for size in program.sizes}
    for repeat in program.repeats:
        # What a round is given is what is outside, under another name.
        updated = dict(repeat.body.updates)
        given = dict(zip((each.name for each in repeat.body.inputs[1:]), repeat.inputs, strict=True))
        names = {name: outer for name, outer in given.items() if outer in numbers and name not in updated}
        for inner in narrowed_integers(repeat.body, {name: numbers[outer] for name, outer in names.items()}):
            if any(isinstance(node, SizeValue) and node.name not in sizes for node in walk(inner.value)):
                continue  # it depends on the number of the round
            value = expression_with_tensors_renamed(inner.value, names)
            found.setdefault((value, inner.dtype), replace(inner, value=value))
    for expr in (expr for statement in program.statements for expr in statement_expressions(statement)):
        for node in _evaluated(expr):
            if (
                isinstance(node, Cast)
                and is_integer(node.dtype)
                and node.dtype != INTEGER  # it holds them all
                and node.operand.dtype in ("int64", "uint64")
                and _is_number(node.operand, numbers)
            ):
                place = numbers[node.operand.tensor] if isinstance(node.operand, Read) else None
                narrowed = NarrowedInteger(node.operand, node.dtype, node.span, place)
                found.setdefault((node.operand, node.dtype), narrowed)
    return tuple(found.values())


def check_narrowed(
    narrowed: Sequence[NarrowedInteger], program: Program, arrays: Sequence[np.ndarray], sizes: Mapping[str, int]
) -> None:
    """Raise `DtypeError` unless every one of ``narrowed`` fits for these inputs."""
    held = {tensor.name: array for tensor, array in zip(program.inputs, arrays, strict=True) if array.ndim == 0}
    values = PointValues({}, 1, sizes, held.__getitem__)
    for one in narrowed:
        number = int(values.single(one.value))
        ends = np.iinfo(one.dtype)
        if not ends.min <= number <= ends.max:
            raise DtypeError.at(
                f"the integer {number} does not fit in {one.dtype}",
                one.span,
                f"{one.dtype} holds {ends.min} to {ends.max}; convert the other operand to a wider type, "
                "as in int64(x)",
            )


def _evaluated(expr: Expr) -> Iterator[Expr]:
    # Without what stands behind `and` and `or`: a comparison of signed and unsigned converts what it knows to fit.
    yield expr
    guarded = isinstance(expr, Apply) and expr.primitive in ("and_", "or_")
    for part in children(expr)[: 1 if guarded else None]:
        yield from _evaluated(part)


def _is_number(expr: Expr, numbers: Collection[str]) -> bool:
    # Known before the call runs, and not by the sizes alone: at least one of the numbers takes part.
    leaves = [node for node in walk(expr) if not children(node)]
    known = all(
        isinstance(leaf, Constant | SizeValue) or (isinstance(leaf, Read) and leaf.tensor in numbers) for leaf in leaves
    )
    arithmetic = all(isinstance(node, Apply | Cast) for node in walk(expr) if children(node))
    return known and arithmetic and any(isinstance(leaf, Read) for leaf in leaves)
