"""What operators and functions of the language do on tensors of graphs: they make new nodes.

Every operation is staged later by the function that does the same for arrays in decorated functions, so that graphs and
ops mean the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, ValuesView
from functools import partial
from itertools import permutations, starmap
from typing import Any

import numpy as np

from tcdsl.errors import DataIndexError, DslSyntaxError, DtypeError, ShapeError, TcdslError
from tcdsl.frontend.arrays.array_literals import is_literal, leaves_of, literal_of
from tcdsl.frontend.logics.logic_staging import record_einsum
from tcdsl.frontend.points.point_scalars import PointValue
from tcdsl.frontend.staging.declarations import DeclaredTarget, Unwritten
from tcdsl.frontend.staging.declared_parameters import declared_parameter
from tcdsl.frontend.staging.given_arrays import given_array, instead_of
from tcdsl.frontend.staging.run_time_integers import RunsOnTensors
from tcdsl.frontend.staging.session import Session, current_session, session_of
from tcdsl.frontend.symbolic_operators import WholeArrays, numpy_function
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.recognition import recognize
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber, SymbolicSize
from tcdsl.frontend.tile.cells import access
from tcdsl.frontend.tile.constant_cells import cell_or_view
from tcdsl.frontend.tile.sizes import bind_dims
from tcdsl.rows.inference import Origin, Shape, compose, einsum, pointwise, scalar, transpose
from tcdsl.rows.logic import result_may_grow
from tcdsl.tensors.graphs.element_types import FloatingType
from tcdsl.tensors.graphs.initialization import Given
from tcdsl.tensors.graphs.literals import tensor
from tcdsl.tensors.graphs.location import fault
from tcdsl.tensors.graphs.node_operations import ENGINE, Operation
from tcdsl.tensors.graphs.tensor import Tensor, is_differentiable
from tcdsl.tracebacks import user_location

__all__ = ["GRAPH", "GraphAlgebra", "GraphOwner", "apply_operation", "as_operand", "operators", "shape_rule"]

_STAGED = WholeArrays()
# Reductions that users know by another name than their accumulator's.
_REDUCTIONS = {"add": "sum", "multiply": "prod"}
# NumPy's functions that give arrays of NumPy, although operators could say them.
_COMPUTED = frozenset(("any", "all", "argmax", "argmin", "id"))
_NUMBERS = bool | int | float | np.generic
_SYMBOLIC = SymbolicArray | SymbolicNumber | SymbolicSize


def as_operand(value: Any) -> Any:
    """``value`` as an argument of an operation: tensors and numbers as they are, arrays as leaves, strings declare."""
    if isinstance(value, np.generic):
        given_array(value, "x", span=user_location())
    if isinstance(value, Tensor | _NUMBERS):
        session = current_session()
        if session is not None:
            session.refuse_replaced(value)
        return value
    if isinstance(value, str):
        return declared_parameter(value, user_location())
    session = current_session()
    if is_literal(value) and session is not None:
        return literal_of(session, value)
    if is_literal(value) or hasattr(value, "__array__"):
        return tensor(value)
    if isinstance(value, Unwritten | DeclaredTarget):
        raise value.fault()
    raise fault(
        DtypeError,
        f"a {type(value).__name__} does not take part in tensor arithmetic",
        instead_of(value, "") or "use tensors, arrays, numbers, and literals of these",
    )


def _computed(value: Any) -> Any:
    if isinstance(value, Tensor):
        return np.asarray(value)
    if type(value) in (list, tuple):
        return type(value)(map(_computed, value))
    # `params.values()` and the like: NumPy asks the tensors in them again until none is left.
    inside = isinstance(value, ValuesView | Sequence) and not isinstance(value, str | bytes | range)
    return [_computed(each) for each in value] if inside else value


def _refused(function: Any, given: Sequence[Any], error: Exception) -> TcdslError:
    # What NumPy says of the arrays that it has been given for tensors.
    kind = (
        ShapeError if isinstance(error, ValueError) else DtypeError if isinstance(error, TypeError) else DataIndexError
    )
    tensors = {each: f"{each.label}: {each.rows}" for each in _inside(given) if isinstance(each, Tensor)}
    hint = "NumPy computes this from the values of tensors: give it what it takes for arrays of these shapes"
    if len({each.sizes for each in tensors}) > 1:
        hint = "write `np.concatenate([t.value.ravel() for t in tensors])` for the cells of tensors of any shapes"
    name = f"{function.__module__}.{function.__name__}".replace("numpy", "np", 1)
    return fault(kind, f"`{name}`: {error}", hint, [*tensors.values()])


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, ValuesView | Sequence) and not isinstance(value, str | bytes | range):
        for each in value:
            yield from _inside(each)
    else:
        yield value


def _shape(operand: Any) -> Shape:
    return operand.rows if isinstance(operand, Tensor) else scalar()


def rows_to_tell(tensor: Tensor, array: Tensor) -> str:
    """What says that ``array``, of that shape and with output axes only, has the rows of ``tensor``: `batch=1`."""
    rows, plain = tensor.rows, array.rows
    if not (array.is_leaf and not array.parameter and rows.is_known and plain.is_known and rows.sizes == plain.sizes):
        return ""
    counts = {"batch": rows.batch, "input": rows.input} if _is_plain(plain) else {}
    return ", ".join(f"{name}={len(row.sizes)}" for name, row in counts.items() if row.sizes)


def samples_to_tell(tensor: Tensor, array: Tensor) -> int:
    """How many axes count the samples of ``tensor``, which has a cell for each, if those of ``array`` do; else 0."""
    rows, plain = tensor.rows, array.rows
    if not (array.is_leaf and not array.parameter and rows.is_known and plain.is_known and _is_plain(plain)):
        return 0
    is_column = rows.output.sizes == (1,) and not rows.input.sizes
    return len(plain.sizes) if is_column and rows.batch.sizes == plain.sizes else 0


def apply_operation(operation: Operation, arguments: Sequence[Any], labels: Sequence[str] = ()) -> Tensor:
    """A new node: ``operation`` on ``arguments``, tensors and numbers. Raises where shapes contradict each other."""
    operands = [argument for argument in arguments if isinstance(argument, Tensor)]
    element_type, recorded = None, None
    location = user_location()
    if operation.constrain is None:
        rows, recorded = ENGINE.staged(operation, arguments, location)
        element_type = recorded.element_type
    else:
        names = tuple(each.label if isinstance(each, Tensor) else str(each) for each in arguments)
        pairs = permutations(operands, 2) if operation.constrain is pointwise else ()
        told = next(filter(None, starmap(rows_to_tell, pairs)), "")
        hint = told and f"write `tc.tensor(array, {told})` if its axes are those of the other"
        rows = operation.constrain([_shape(each) for each in arguments], Origin(location, names, hint))
    return Tensor(
        labels or (operation.name,),
        rows,
        element_type,
        operation,
        arguments,
        differentiable=is_differentiable(element_type, operands),
        floating=FloatingType.meeting([each.floating for each in operands]),
        location=location,
        recorded=recorded,
    )


def _composed(shapes: Sequence[Shape], origin: Origin) -> Shape:
    return compose(shapes[0], shapes[1], origin)


def _transposed(shapes: Sequence[Shape], origin: Origin) -> Shape:
    return transpose(shapes[0], origin)


def _is_plain(shape: Shape) -> bool:
    # Whether it is known to have output axes only: an array as NumPy has them.
    return all(row.closed and not row.axes for row in (shape.batch, shape.input))


# How operations are staged: functions of the module and not local ones, so that what they compute can be pickled.

_OPERAND = "an operand"


def _staged(method: str, before: Sequence[Any], after: Sequence[Any], _: Session, given: Sequence[Any]) -> Any:
    return getattr(_STAGED, method)(*before, *given, *after)


def _staged_product(composes: bool, _: Session, given: Sequence[Any]) -> Any:
    if composes and not given[0].rows.input:
        # It might have had axes to sum over, and turned out to have none.
        return _STAGED.combine("mul", *given)
    return _STAGED.matrix_product(*given)


def _staged_stack(row: str, _: Session, given: Sequence[Any]) -> Any:
    return _STAGED.stacked(given, row)


def _staged_view(entries: Sequence[Any], _: Session, given: Sequence[Any]) -> Any:
    arrays = iter(given[1:])
    return _STAGED.view(given[0], tuple(next(arrays) if entry == _OPERAND else entry for entry in entries))


def _staged_einsum(
    spec: str,
    accumulate: str,
    primitive: str,
    _: Session,
    given: Sequence[Any],
    sizes: Sequence[int] | None = None,
) -> Any:
    return record_einsum(spec, tuple(given), accumulate, primitive, sizes)


def _staged_composition(accumulate: str, primitive: str, session: Session, given: Sequence[Any]) -> Any:
    # An operand that might have had axes to sum over, and turned out to have none, is scaled, as by `w @ x`.
    return _staged_einsum("@" if given[0].rows.input else ".", accumulate, primitive, session, given)


def shape_rule(logic: str, shapes: Sequence[Shape]) -> Callable[[Sequence[Shape], Origin], Shape] | None:
    """What a logic says of shapes; None where it means what NumPy does, whose shapes staging tells."""
    if logic == "@":
        return None if shapes[0].input.closed and not shapes[0].input.axes else _composed
    if logic == "T":
        return None if _is_plain(shapes[0]) else _transposed
    if logic == ".":
        return pointwise
    return lambda given, origin: einsum(logic, given, origin)


class GraphAlgebra:
    """Operators on tensors of graphs. A `tcdsl.frontend.symbols.operators.Algebra`."""

    def combine(self, primitive: str, *operands: object) -> Any:
        """A primitive, pointwise."""
        if primitive in ("eq", "ne") and any(operand is None for operand in operands):
            return NotImplemented
        recorded = _recorded_in_session(operands)
        if recorded is not None:
            return recorded.combine(primitive, *operands)
        if any(isinstance(operand, PointValue) for operand in operands):
            hint = "tensor statements compute with numbers, sizes, index variables and cells of arrays"
            raise fault(DtypeError, "a Tensor is not a number", hint)
        arguments = [as_operand(operand) for operand in operands]
        operation = Operation(primitive, partial(_staged, "combine", (primitive,), ()), pointwise)
        return apply_operation(operation, arguments)

    bind_dims = staticmethod(bind_dims)
    cells = staticmethod(access)

    def matrix_product(self, left: object, right: object) -> Any:
        """``left @ right``: composes if the left operand has input axes, or may have some; else NumPy's matmul."""
        recorded = _recorded_in_session((left, right))
        if recorded is not None:
            return recorded.matrix_product(left, right)
        arguments = [as_operand(left), as_operand(right)]
        for argument in arguments:
            if not isinstance(argument, Tensor):
                raise fault(DslSyntaxError, "`@` takes tensors, not numbers", "use `*` to scale by a number")
        rule = shape_rule("@", [argument.rows for argument in arguments])
        return apply_operation(Operation("@", partial(_staged_product, rule is not None), rule), arguments)

    def view(self, array: Any, key: object) -> Any:
        """``array[key]``: integers, slices, ``None``, ``...``, static indices, and integer tensors, which gather."""
        return cell_or_view(self._view, array, key)

    def _view(self, array: Any, key: object) -> Any:
        entries = _without_lists(array, key if isinstance(key, tuple) else (key,))
        bounds = [bound for each in entries if isinstance(each, slice) for bound in (each.start, each.stop, each.step)]
        if any(isinstance(bound, GraphTensor) for bound in bounds):
            raise fault(
                DslSyntaxError,
                "a tensor as a bound of a slice, whose length would not be known",
                "select positions with an integer tensor: `t[start + np.arange(length)]`",
            )
        session = current_session()
        if session is not None and any(isinstance(each, PointValue) for each in (*entries, *bounds)):
            session.needs_one_point()
        recorded = _recorded_in_session((*entries, *bounds))
        if recorded is not None:
            # By the number of a round, or what else the program computes.
            session = session_of("an index")
            if session.may_be_whole:
                raise RunsOnTensors
            return recorded.view(session.capture(array, array.label), entries)
        indices = [as_operand(entry) for entry in entries if isinstance(entry, GraphTensor | np.ndarray)]
        places = [_OPERAND if isinstance(entry, GraphTensor | np.ndarray) else entry for entry in entries]
        return apply_operation(
            Operation("view", partial(_staged_view, places)), [array, *indices], (*array.labels, "view")
        )

    def store(self, array: Any, key: object, value: object) -> None:
        """Nodes of a graph are values."""
        raise fault(
            DslSyntaxError, "a tensor is not stored into outside of decorated functions", "write a @cd function"
        )

    def updated(self, array: Any, primitive: str, operand: object) -> Any:
        """``array += operand`` makes another node; in a decorated function nobody may read this one again."""
        made = self.matrix_product(array, operand) if primitive == "matmul" else self.combine(primitive, array, operand)
        session = current_session()
        if session is not None:
            session.replace_tensor(array)
        return made

    def transposed(self, array: Any) -> Any:
        """``array.T``: input and output axes swapped; without batch and input axes NumPy's transpose."""
        rule = shape_rule("T", [array.rows])
        operation = Operation("T", partial(_staged, "transposed", (), (rule is not None,)), rule)
        return apply_operation(operation, [array], (*array.labels, "T"))

    def cast(self, operand: Any, dtype: str) -> Any:
        """``float32(x)``."""
        return apply_operation(
            Operation(dtype, partial(_staged, "cast", (), (dtype,)), pointwise), [as_operand(operand)]
        )

    def reduced(self, accumulate: str, array: Any, axis: Any, keepdims: bool) -> Any:
        """``x.sum(axis=0)``: axes count in the order batch, output, input."""
        name = _REDUCTIONS.get(accumulate, accumulate)
        session = current_session()
        if session is not None and session.shapes is not None and axis is None and not keepdims:
            # It is a number, whatever the shape will be found to be.
            return Tensor((name,), scalar(), "float64", initial=Given(np.zeros(())))
        return apply_operation(Operation(name, partial(_staged, "reduced", (accumulate,), (axis, keepdims))), [array])

    def regrouped(self, array: Any, batch: int, input: int) -> Any:  # the row's name
        """The same cells, with other axes as batch and input axes."""
        return apply_operation(
            Operation("tensor", partial(_staged, "regrouped", (), (batch, input))), [array], array.labels
        )

    def stacked(self, parts: Sequence[Any], row: str) -> Any:
        """The parts along a new axis that leads the axes of ``row``."""
        return apply_operation(Operation("stack", partial(_staged_stack, row)), list(parts))

    def einsum(self, spec: str, operands: Sequence[Any], accumulate: str, primitive: str) -> Any:
        """``einsum(spec, a, b)``."""
        record = partial(_staged_einsum, spec, accumulate, primitive)
        if spec == "@" and len(operands) == 2 and _recorded_in_session(operands) is None:
            operands = [as_operand(each) for each in operands]
            if shape_rule("@", list(map(_shape, operands))) is not None:
                record = partial(_staged_composition, accumulate, primitive)
        return self.logical("einsum", spec, operands, record)

    def logical(self, name: str, logic: str, operands: Sequence[Any], record: Callable[..., Any]) -> Any:
        """What ``record`` makes of operands whose axes meet as ``logic`` says."""
        recorded = _recorded_in_session(operands)
        if recorded is not None:
            return recorded.logical(name, logic, operands, record)
        arguments = [as_operand(each) for each in operands]
        rule = shape_rule(logic, [_shape(argument) for argument in arguments])
        return apply_operation(Operation(name, record, rule, record if result_may_grow(logic) else None), arguments)

    def operation(self, name: str, operands: Sequence[Any], record: Callable[..., Any]) -> Any:
        """What ``record`` makes of operands whose shapes are known."""
        recorded = _recorded_in_session(operands)
        if recorded is not None:
            return recorded.operation(name, operands, record)
        return apply_operation(Operation(name, record), [as_operand(each) for each in operands])

    def fault(self, kind: type[TcdslError], fact: str, hint: str) -> TcdslError:
        """The error of an operator that has no meaning."""
        return fault(kind, fact, hint)

    def function(self, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """``np.where(c, a, b)`` and ``np.sum(t)`` make nodes; others are computed from the values."""
        if recognize(function) not in _COMPUTED:
            made = numpy_function(self, function, arguments, keywords)
            if made is not NotImplemented:
                return made
        given, options = map(_computed, arguments), {name: _computed(each) for name, each in keywords.items()}
        try:
            return function(*given, **options)
        except (TcdslError, np.linalg.LinAlgError):
            raise
        except (ValueError, TypeError, IndexError) as error:
            raise _refused(function, (*arguments, *keywords.values()), error) from None

    def ufunc(self, ufunc: Any, method: str, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """``np.hypot(t, u)`` by the operators of tensors."""
        if method != "__call__":
            session = current_session()
            if session is not None and session.may_be_whole:
                raise RunsOnTensors  # as arrays of the program they have more methods
            return NotImplemented
        from tcdsl.frontend.numpy_functions.table import of_ufunc

        return of_ufunc(ufunc, method, inputs, keywords)

    def literal(self, value: Any) -> Any:
        """A literal of numbers as a leaf; one of tensors as a node that stacks them."""
        return tensor(value)

    def recorded(self, array: Any, label: str) -> Any:
        """Nodes are what they are."""
        return array

    def concrete(self, value: Any, kind: type) -> Any:
        """``float(t)`` and the like of a tensor of one cell."""
        return kind(value.item())

    def length(self, value: Any) -> int:
        """The first size."""
        if not value.sizes:
            raise fault(DtypeError, f"`{value.label}` has no axes, and no length", "`float(t)` is its number")
        return int(value.sizes[0])

    def iterate(self, value: Any) -> Iterator[Any]:
        """Its parts along the first axis."""
        return (self.view(value, k) for k in range(self.length(value)))


class GraphOwner:
    """The owner of all nodes, for `ArithmeticOperators`."""

    algebra = GraphAlgebra()

    def knows(self, name: str) -> bool:
        """Nodes have no names in a program of their own."""
        return False


GRAPH = GraphOwner()


def operators() -> GraphOwner:
    """The owner of all nodes."""
    return GRAPH


def _recorded_in_session(operands: Sequence[object]) -> Any:
    # Beside what a decorated function has staged, a tensor is part of that program.
    leaves = (leaf for each in operands for leaf in leaves_of(each))
    return next((each.builder.algebra for each in leaves if isinstance(each, _SYMBOLIC)), None)


def _without_lists(array: Any, entries: tuple[Any, ...]) -> tuple[Any, ...]:
    # Lists of numbers as index arrays; those below 0 count from the end.
    found: list[Any] = []
    for k, entry in enumerate(entries):
        if isinstance(entry, list):
            if any(isinstance(leaf, GraphTensor) for leaf in leaves_of(entry)):
                raise fault(DslSyntaxError, "a list of tensors as an index", "stack them: `t[np.stack(places)]`")
            entry = np.asarray(entry) if any(True for _ in leaves_of(entry)) else np.asarray(entry, np.int64)
            behind = [each for each in entries[k:] if each is not None]
            ahead = [each for each in entries[:k] if each is not None]
            axis = array.ndim - len(behind) if any(each is Ellipsis for each in ahead) else len(ahead)
            if entry.dtype.kind == "i" and axis < array.ndim:
                entry = entry + array.shape[axis] * (entry < 0)
        found.append(entry)
    return tuple(found)
