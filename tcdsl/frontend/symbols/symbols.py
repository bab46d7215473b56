"""What stands for arrays, sizes and numbers while a decorated function runs at staging time.

Staging calls the user's function once with these objects. They do ordinary arithmetic
(`tcdsl.frontend.arrays.arithmetic` gives them their operators) and refuse what only a concrete value could answer: a
`SymbolicSize` has no truth value.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, DtypeError, MissingAttributeError
from tcdsl.frontend.symbols.known_integers import KnownInteger
from tcdsl.frontend.symbols.operators import (
    Algebra,
    ArithmeticOperators,
    CellOperators,
    MemoryOperators,
    OperatorHost,
    itself,
)
from tcdsl.frontend.symbols.recognition import REDUCTIONS
from tcdsl.frontend.symbols.retired_values import require_current
from tcdsl.frontend.symbols.values import Value
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Boundary, Constant, Expr, Read, walk
from tcdsl.rows.ranks import RowRanks
from tcdsl.span import Span

__all__ = [
    "ArrayMethods",
    "ElementType",
    "OpenArray",
    "PendingArray",
    "SymbolicArray",
    "SymbolicNumber",
    "SymbolicSize",
    "SymbolicTensor",
    "View",
    "number_value",
    "shape_of",
]

# So many nodes are computed once more where pending arithmetic is used again.
_REUSED = 100


def number_value(operand: object, span: Span | None = None) -> Value | None:
    """A number or a size as a value; ``None`` for anything else."""
    match operand:
        case SymbolicSize():
            return Value(operand.expr, "int", "int64")
        case SymbolicNumber():
            return Value(operand.expr, operand.weak_kind, operand.expr.dtype)
        case bool() | int() | float() | np.generic():
            return Value.of(operand, span)
    return None


class _Number(ArithmeticOperators):
    # What is one number has no attributes of arrays.

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        fact = f"a number of the call has no `{name}`"
        hint = "pass an array of rank 0, `np.array(1.5)`; or use the number as it is"
        raise self.builder.algebra.fault(MissingAttributeError, fact, hint)


class SymbolicSize(_Number):
    """An extent, or an expression of extents: what ``A.shape[0]`` gives. An int64 expression of sizes."""

    __slots__ = ("builder", "expr")

    def __init__(self, builder: OperatorHost, expr: Expr) -> None:
        self.builder = builder
        self.expr = expr

    def __repr__(self) -> str:
        from tcdsl.ir.text.printer import format_expr

        return f"<size {format_expr(self.expr)}>"

    __deepcopy__ = itself


class SymbolicNumber(_Number):
    """A number that is known only at the call: scalar configuration such as a learning rate.

    ``expr`` computes it from rank-0 inputs; ``weak_kind`` is ``float``, ``int`` or ``bool``: it takes the type of what
    it meets. ``parameters`` are the arguments that it depends on: where Python must know its value, the function is
    staged again with those as constants.
    """

    __slots__ = ("builder", "expr", "parameters", "weak_kind")

    def __init__(self, builder: OperatorHost, expr: Expr, weak_kind: str, parameters: frozenset[str]) -> None:
        self.builder = builder
        self.expr = expr
        self.weak_kind = weak_kind
        self.parameters = parameters

    def __repr__(self) -> str:
        from tcdsl.ir.text.printer import format_expr

        return f"<run-time {self.weak_kind} {format_expr(self.expr)}>"

    __deepcopy__ = itself


class ElementType(str):
    """The name of an element type that compares as NumPy's do: ``x.dtype == np.float32``."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str) or other is None:
            return str.__eq__(self, other)
        try:
            return np.dtype(str(self)) == np.dtype(other)  # type: ignore[call-overload,no-any-return]
        except TypeError:
            return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __getattr__(self, name: str) -> Any:
        return getattr(np.dtype(str(self)), name)


def shape_of(builder: OperatorHost, extents: Sequence[Expr]) -> tuple[SymbolicSize | int, ...]:
    """``extents`` as users see them: sizes, or integers where they are constant."""
    return tuple(
        KnownInteger(extent.value)
        if isinstance(extent, Constant) and isinstance(extent.value, int)
        else SymbolicSize(builder, extent)
        for extent in extents
    )


def reduced(
    algebra: Algebra,
    name: str,
    array: Any,
    axis: Any = None,
    keepdims: bool = False,
    *,
    where: Any = True,
    initial: Any = None,
    dtype: Any = None,
    **others: Any,
) -> Any:
    """``x.sum(axis=0, where=mask)``, ``np.max(x, initial=0.0)``: a reduction as NumPy's of that name."""
    others = {option: given for option, given in others.items() if given is not None}
    if others or (dtype is not None and name not in ("sum", "prod", "mean")):
        shown = ", ".join(f"`{option}`" for option in others or ("dtype",))
        hint = "assign what it gives" if "out" in others else "it takes `axis`, `keepdims`, `where` and `initial`"
        raise algebra.fault(DslSyntaxError, f"`{name}` with {shown} has no meaning for tensors", hint)
    if dtype is not None:
        # The sums of small integers are 64-bit, and means are floating.
        made = reduced(algebra, name, array.astype(dtype), axis, keepdims, where=where, initial=initial)
        return made.astype(dtype)
    initial = _begun(algebra, name, initial, array)
    if where is not True:
        if name == "mean":
            count = algebra.combine("where", where, 1.0, algebra.combine("snd", array, 0.0))
            total = reduced(algebra, "sum", array, axis, keepdims, where=where)
            kind = str(total.dtype) if str(total.dtype).startswith("float") else "float64"
            return algebra.combine("div", total, algebra.cast(algebra.reduced("add", count, axis, keepdims), kind))
        neutral = initial if name in ("max", "min") else _NEUTRAL[name]
        if neutral is None:
            hint = f"say what no cell gives: `{name}(x, initial=0.0, where=mask)`"
            raise algebra.fault(DslSyntaxError, f"`{name}` with `where` and without `initial`", hint)
        array = algebra.combine("where", where, array, neutral)
    found = algebra.reduced(REDUCTIONS[name], array, axis, keepdims)
    return found if initial is None else algebra.combine(_COMBINED[name], found, initial)


def _begun(algebra: Algebra, name: str, initial: Any, array: Any) -> Any:
    # What a reduction starts from has the type of its result.
    if initial is None or not isinstance(initial, int | float | np.number | np.bool_):
        return initial
    dtype = str(array.dtype)  # which a tensor of unknown shape does not have yet
    kind = np.dtype(dtype).kind
    kind = "i" if kind == "b" and name in ("sum", "prod") else kind
    try:
        return float(initial) if kind == "f" else bool(initial) if kind == "b" else int(initial)
    except (ValueError, OverflowError):
        fact = f"`{name}` of {dtype} with `initial={initial}`"
        raise algebra.fault(DtypeError, fact, "give a number of that type") from None


_NEUTRAL: Mapping[str, Any] = {"sum": 0, "prod": 1, "any": False, "all": True, "argmax": None, "argmin": None}
_COMBINED = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}


def _reduction(name: str, what: str) -> Any:
    def method(self: Any, axis: Any = None, keepdims: bool = False, **options: Any) -> Any:
        return reduced(self.builder.algebra, name, self, axis, keepdims, **options)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"{what}, over all axes or the given ones."
    return method


class ArrayMethods(CellOperators):
    """Mixin: ``x.T`` and ``x.sum(axis=0)`` on symbolic arrays and on tensors of graphs."""

    __slots__ = ()

    def bind_dims(self, *sizes: Any) -> None:
        """``A.bind_dims(N, K)`` names the extents, each a `tcdsl.tile.TensorDim`; what is bound already must agree."""
        self.builder.algebra.bind_dims(self, sizes)

    def use(self, lens: Any) -> Any:
        """``A.use(lens)``: the tensor with its axes called and ordered as a `tcdsl.tile.TensorLens` says."""
        if not hasattr(lens, "used"):
            raise self.builder.algebra.fault(DtypeError, f"{lens!r} as a lens", 'write `TensorLens("NCHW", "NHWC")`')
        return lens.used(self)

    def copy(self) -> Any:
        """The cells as they are now, in an array of their own."""
        return self.builder.algebra.combine("id", self)

    @property
    def T(self) -> Any:  # noqa: N802  # NumPy's name
        """The array with its axes in reverse order; with batch or input axes, input and output axes swapped."""
        return self.builder.algebra.transposed(self)

    sum = _reduction("sum", "The sum")
    prod = _reduction("prod", "The product")
    max = _reduction("max", "The largest cell")
    min = _reduction("min", "The smallest cell")
    mean = _reduction("mean", "The mean")
    any = _reduction("any", "Whether any cell is true")
    all = _reduction("all", "Whether all cells are true")

    def var(self, axis: Any = None, *, ddof: Any = 0, keepdims: bool = False) -> Any:
        """The variance, over all axes or the given ones."""
        return self.builder.algebra.function(np.var, (self, axis), {"ddof": ddof, "keepdims": keepdims})

    def std(self, axis: Any = None, *, ddof: Any = 0, keepdims: bool = False) -> Any:
        """The standard deviation, over all axes or the given ones."""
        return self.builder.algebra.function(np.std, (self, axis), {"ddof": ddof, "keepdims": keepdims})

    # These are errors that say how to write it.
    argmax = _reduction("argmax", "The place of the largest cell")
    argmin = _reduction("argmin", "The place of the smallest cell")


def _by_shape(function: Any) -> Any:
    # `x.reshape(2, 3)` and `x.reshape((2, 3))`.
    def method(array: Any, *given: Any, **options: Any) -> Any:
        whole = given[0] if len(given) == 1 and (given[0] is None or isinstance(given[0], tuple | list)) else given
        return function(array, None if not given and function is np.transpose else whole, **options)

    return method


#: Methods of NumPy's arrays that are its functions.
METHODS: Mapping[str, Any] = {
    **{name: getattr(np, name) for name in (
        "clip", "cumprod", "cumsum", "diagonal", "dot", "ptp", "ravel", "repeat", "round", "squeeze", "swapaxes",
        "take", "trace",
    )},
    "conj": np.conjugate,
    "conjugate": np.conjugate,
    "flatten": np.ravel,
    "reshape": _by_shape(np.reshape),
    "transpose": _by_shape(np.transpose),
}  # fmt: skip


class SymbolicArray(MemoryOperators, ArrayMethods):
    """An array of known rank and type and symbolic extents. Base of `SymbolicTensor` and `PendingArray`.

    ``rows`` says which axes are batch, output and input axes, in this order; a plain array has output axes only.
    """

    __slots__ = ()

    builder: OperatorHost
    extents: tuple[Expr, ...]
    rows: RowRanks
    _element_type: str
    #: What this is a view of, if it is one.
    base: SymbolicArray | None
    #: The operator in place by which plain Python has made another value of this one, which nobody may read any more.
    replaced: Span | None

    @property
    def element_type(self) -> str:
        """The element type, as the representation has it."""
        return self._element_type

    @property
    def dtype(self) -> ElementType:
        """The element type, as users see it."""
        return ElementType(self.element_type)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.extents)

    ndim = rank

    @property
    def shape(self) -> tuple[SymbolicSize | int, ...]:
        """The extents: sizes, or integers where they are constant."""
        return shape_of(self.builder, self.extents)

    def astype(self, dtype: Any) -> Any:
        """The array converted to ``dtype``. `DtypeError` for a type that the language does not have."""
        given = getattr(dtype, "__tcdsl_name__", dtype)  # `float32` is also the language's function
        try:
            name = str(np.dtype(given))
        except (TypeError, ValueError):  # ValueError where it has a `dtype`, as a tensor has
            name = str(given)
        return self.builder.algebra.cast(self, name)

    def __getattr__(self, name: str) -> Any:
        method = METHODS.get(name)
        if method is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        return partial(method, self)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.builder.algebra.concrete(self, np.ndarray)

    def __dlpack__(self, **options: Any) -> Any:
        return self.builder.algebra.concrete(self, np.ndarray)

    __dlpack_device__ = __dlpack__

    @property
    def size(self) -> SymbolicSize | int:
        """The number of cells."""
        total: Any = 1
        for extent in self.shape:
            total = total * extent
        return total  # type: ignore[no-any-return]


class SymbolicTensor(SymbolicArray):
    """A tensor of the program: ``name`` is its version in the program, ``label`` what the user calls it.

    In `@op` it is a value. In `@cd` it is memory (``memory``): storing into it makes ``name`` the new version, for
    every name that holds it. ``declared`` says that the function stated its extents, whatever is written to it;
    ``sized`` is the function and its statement that inferred them. ``brackets`` are those of the product that a node of
    a graph is, in terms of `axis_variable`s.
    """

    __slots__ = (
        "_element_type",
        "_name",
        "base",
        "brackets",
        "builder",
        "declared",
        "extents",
        "label",
        "memory",
        "replaced",
        "sized",
    )

    def __init__(
        self,
        builder: OperatorHost,
        name: str,
        dtype: str,
        extents: Sequence[Expr],
        label: str = "",
        memory: bool = False,
    ) -> None:
        self.builder = builder
        self._name = name
        self.base = None
        self.replaced = None
        self._element_type = dtype
        self.extents = tuple(extents)
        self.label = label or name
        self.memory = memory
        self.declared = False
        self.sized: tuple[object, Span | None] = (None, None)
        self.brackets: tuple[Expr, ...] = ()

    @property
    def name(self) -> str:
        """The version in the program."""
        if self.replaced is not None or self.base is not None:
            require_current(self, self.label)
        return self._name

    def restored(self, name: str, dtype: str) -> None:
        """From here on this memory holds the cells of another version, into which nothing is stored by that."""
        self._name, self._element_type = name, dtype

    @property
    def rows(self) -> RowRanks:
        """Which axes are batch, output and input axes. They belong to the version, whatever names hold it."""
        return self.builder.rows(self._name) or RowRanks(output=self.rank)

    @rows.setter
    def rows(self, rows: RowRanks) -> None:
        if rows.total != self.rank:
            raise ValueError(f"{self!r} has rank {self.rank}, not {rows.total}")
        self.builder.set_rows(self._name, rows)

    def become(self, version: SymbolicTensor) -> SymbolicTensor:
        """Store: from here on this memory holds the cells of ``version``."""
        self.builder.stores(self)
        self._name, self._element_type = version.name, version.element_type
        return self

    def sized_in(self, function: object) -> Span | None:
        """The statement of ``function`` that inferred the extents, if one did."""
        return self.sized[1] if self.sized[0] is function and not self.declared else None

    def cell(
        self,
        indices: Sequence[Expr],
        span: Span | None = None,
        boundaries: Sequence[Boundary] | None = None,
        fill: Expr | None = None,
    ) -> Value:
        """The value of the cell at ``indices``."""
        borders = (Boundary.SKIP,) * len(indices) if boundaries is None else tuple(boundaries)
        read = Read(self.name, tuple(indices), borders, compute_dtype(self.element_type), fill, span)
        return Value(read, None, self.element_type)

    def held(self) -> SymbolicTensor:
        """What this memory holds now, as a value that later stores do not change."""
        return SymbolicTensor(self.builder, self.name, self.element_type, self.extents, self.label)

    def own_memory(self, label: str = "") -> SymbolicTensor:
        """Memory of its own that holds what this one holds now, called ``label``."""
        label = label or self.label
        made = SymbolicTensor(self.builder, self.name, self.element_type, self.extents, label, memory=True)
        self.builder.copies(made)
        return made

    def __repr__(self) -> str:
        from tcdsl.ir.text.printer import format_expr

        return f"<tensor {self.label}: {self.dtype}[{', '.join(map(format_expr, self.extents))}]>"


class PendingArray(SymbolicArray):
    """Whole-array arithmetic that has no statement yet, so that ``p - learning_rate * g`` becomes one statement.

    ``element`` is the value of a cell; its index variable for the axis that is k-th from the right is `axis_variable`
    (k). ``uses`` counts what was computed with it.
    """

    __slots__ = ("_element", "_element_type", "_made", "base", "builder", "extents", "replaced", "rows", "uses")

    def __init__(
        self, builder: OperatorHost, element: Value, extents: Sequence[Expr], rows: RowRanks | None = None
    ) -> None:
        self.builder = builder
        self._element = element
        self._element_type = element.logical
        self.extents = tuple(extents)
        self.rows = RowRanks(output=len(self.extents)) if rows is None else rows
        self._made: SymbolicTensor | None = None
        self.base = None
        self.replaced = None
        self.uses = 0

    @property
    def element(self) -> Value:
        """The value of a cell."""
        require_current(self)
        return self._element

    def shared(self) -> SymbolicArray:
        """What stands for the array in arithmetic: a tensor, if it is large and used more than once."""
        if self.uses < 2 or self.element.product is not None:
            return self
        large = next(itertools.islice(walk(self.element.expr), _REUSED, None), None) is not None
        return self.materialize() if large else self

    def materialize(self, label: str = "t") -> SymbolicTensor:
        """The tensor that holds these cells; the statement that computes it is recorded at the first call."""
        require_current(self)
        # What a function that was differentiated has recorded is known in its own recording alone.
        if self._made is None or not self.builder.knows(self._made.name):
            made: SymbolicTensor = self.builder.algebra.recorded(self, label)
            made.rows = self.rows
            made.base = self.base
            self._made = made
        return self._made

    def __repr__(self) -> str:
        from tcdsl.ir.text.printer import format_expr

        return f"<array {self.dtype}[{', '.join(map(format_expr, self.extents))}]>"


class OpenArray(PendingArray):
    """An array whose statement can still be completed, until its cells are asked for. Names hold it as it is."""

    __slots__ = ()

    def bound(self, name: str) -> None:
        """An assignment in a decorated function has bound the array to ``name``."""


class View(PendingArray):
    """A part of a tensor, as basic indexing gives it: its cell is the tensor's cell at ``indices``.

    ``indices`` are affine in the `axis_variable`s of the view, or data, the same for all its cells, which is checked.
    They reach no cell twice. A view of memory is memory too: it holds what the tensor holds when it is read, and what
    is stored into it is stored into the tensor.
    """

    __slots__ = ("boundaries", "indices", "span", "tensor")

    def __init__(
        self,
        tensor: SymbolicTensor,
        indices: Sequence[Expr],
        extents: Sequence[Expr],
        rows: RowRanks | None = None,
        span: Span | None = None,
        boundaries: Sequence[Boundary] | None = None,
    ) -> None:
        self.tensor = tensor
        self.indices = tuple(indices)
        self.boundaries = (Boundary.SKIP,) * len(self.indices) if boundaries is None else tuple(boundaries)
        self.span = span
        super().__init__(tensor.builder, tensor.cell(self.indices, span, self.boundaries), extents, rows)
        self.base = tensor

    @property
    def element_type(self) -> str:
        """The element type of the tensor, which memory of whole numbers may still take from what is stored."""
        return self.tensor.element_type

    @property
    def element(self) -> Value:
        """The value of a cell as it is now."""
        require_current(self)
        return self.tensor.cell(self.indices, self.span, self.boundaries)

    @property
    def memory(self) -> bool:
        """Whether a store into the view changes cells that others see."""
        return self.tensor.memory

    @property
    def label(self) -> str:
        """What the user calls the tensor."""
        return self.tensor.label

    def is_same(self, other: View) -> bool:
        """Whether another view is of the same cells of the same tensor."""
        ours, theirs = (self.indices, self.extents, self.boundaries), (other.indices, other.extents, other.boundaries)
        return self.tensor is other.tensor and ours == theirs

    def held(self) -> PendingArray:
        """What the view holds now, as a value that later stores do not change."""
        return PendingArray(self.builder, self.element, self.extents, self.rows)

    def of(self, tensor: SymbolicTensor) -> View:
        """The same part of another tensor of the same shape."""
        return View(tensor, self.indices, self.extents, self.rows, self.span, self.boundaries)

    def stands_for(self, tensor: SymbolicTensor | None) -> None:
        """Until the memory changes or this is called again, statements read ``tensor`` where they read the view."""
        self._element, self._made = self.element, tensor

    def materialize(self, label: str = "t") -> SymbolicTensor:
        """A tensor that holds these cells as they are now."""
        element = self.element
        if element != self._element:
            self._element, self._made = element, None
        return super().materialize(label)
