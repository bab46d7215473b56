"""The nodes of SkriptND texts: expressions, declarations, formulas and compositions.

All nodes are immutable and know their places. ``parts_of`` gives the expressions in an expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields

from tcdsl.span import Span

__all__ = [
    "Access",
    "Assertion",
    "Assignment",
    "AttributeValue",
    "Binary",
    "Block",
    "Bound",
    "Branch",
    "Call",
    "Coalesce",
    "Contains",
    "Declaration",
    "Expand",
    "Expression",
    "Extent",
    "Fold",
    "Formula",
    "Generic",
    "Guard",
    "Identifier",
    "Identity",
    "Import",
    "Invocation",
    "ListNode",
    "Literal",
    "Local",
    "Loop",
    "Member",
    "NullTest",
    "Operation",
    "Operator",
    "PackLength",
    "Quantization",
    "RangeItem",
    "Select",
    "Slice",
    "Subscript",
    "Substitute",
    "Target",
    "TextModule",
    "TextValue",
    "TypeNode",
    "Unary",
    "Using",
    "Whole",
    "Zip",
    "names_in",
    "parts_of",
    "walk",
]


# -- expressions ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal:
    """``2``, ``2.5``, ``true``, ``inf``."""

    value: bool | int | float
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TextValue:
    """``'got {stride}'``: pieces of text, and the expressions between them."""

    pieces: tuple[str, ...]
    values: tuple[Expression, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Identifier:
    """``stride``."""

    name: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Member:
    """``x.shape``, ``x.rank``, ``xs.size``."""

    name: str
    attribute: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ListNode:
    """``[a, b.., 0:n]``."""

    items: tuple[Expression, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RangeItem:
    """``b:e:s`` in a list."""

    begin: Expression
    end: Expression
    step: Expression | None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Expand:
    """``a..`` or ``a..(n)`` in a list, a shape or an index."""

    value: Expression
    count: Expression | None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Zip:
    """``(a, b)`` in front of ``..``."""

    parts: tuple[Expression, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Subscript:
    """``a[i]``."""

    value: Expression
    index: Expression
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Slice:
    """``a[b:e:s]``."""

    value: Expression
    begin: Expression | None
    end: Expression | None
    step: Expression | None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Substitute:
    """``a[i] <- b``: the pack ``a`` with other values at ``i``; ``place`` is the subscript or slice."""

    place: Subscript | Slice
    replacement: Expression
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Unary:
    """``-a``, ``+a``, ``!a``."""

    operator: str
    operand: Expression
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NullTest:
    """``?a``."""

    operand: Expression
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Binary:
    """``a + b``; minimum and maximum are ``<?`` and ``>?``."""

    operator: str
    left: Expression
    right: Expression
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Fold:
    """``a + ..``; ``a + ...`` is cumulative."""

    operand: Expression
    operator: str
    cumulative: bool
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Select:
    """``c ? a : b``; without ``b`` the value is optional."""

    condition: Expression
    chosen: Expression
    other: Expression | None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Coalesce:
    """``a ?? b``."""

    value: Expression
    default: Expression
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Identity:
    """``a is b``."""

    left: Expression
    right: Expression
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Contains:
    """``a in b``."""

    item: Expression
    pack: Expression
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """``exp(a)``, ``real(a)``, ``T(a)``; without argument the default value of a type."""

    function: str
    argument: Expression | None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Guard:
    """``|e|`` or ``|e <> low : high|`` as an index."""

    index: Expression
    below: Expression | None
    above: Expression | None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Whole:
    """``:`` as an index: the cells along the axis, as a pack."""

    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Access:
    """``x[i, j]``, ``x[k][i, j]``, ``x[]``: a cell of a tensor."""

    name: str
    item: Expression | None
    indices: tuple[Expression, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


Expression = (
    Literal
    | TextValue
    | Identifier
    | Member
    | ListNode
    | RangeItem
    | Expand
    | Zip
    | Subscript
    | Slice
    | Substitute
    | Unary
    | NullTest
    | Binary
    | Fold
    | Select
    | Coalesce
    | Identity
    | Contains
    | Call
    | Guard
    | Whole
    | Access
)


# -- declarations --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PackLength:
    """``..``, ``..(k)`` or ``..(k|5)``."""

    length: Expression | None
    bound: Expression | None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Extent:
    """An entry of a shape: ``m``, ``s..(d)``, ``..z``, ``n|10``, ``~|10``, ``static c``.

    ``value`` is missing for ``~``; ``spread`` says that each tensor of a pack has an extent of its own.
    """

    value: Expression | None
    bound: Expression | None
    repeats: PackLength | None
    spread: bool
    static: bool
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TypeNode:
    """``optional real^(r)[m, n]..(k)``; ``shape`` is None where the type is no tensor's."""

    name: str
    optional: bool
    dynamic: bool
    rank: Expression | None
    shape: tuple[Extent, ...] | None
    pack: PackLength | None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Bound:
    """``i < n``."""

    name: str
    end: Expression
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Declaration:
    """``x: real[n] = 0.0``, an attribute, input, output, constant or variable; ``bounds`` are those of its value."""

    name: str
    type: TypeNode
    default: Expression | None
    bounds: tuple[Bound, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Generic:
    """``T: num = real``."""

    name: str
    base: str
    default: str | None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Using:
    """``c..(n) = e``, ``[a, b..] = e``, ``[(a, b)..] = e``; ``length`` is that of a pack's name."""

    target: Identifier | ListNode
    length: Expression | None
    value: Expression
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Assertion:
    """``condition: 'message', label: value``."""

    condition: Expression
    message: TextValue | None
    shown: tuple[tuple[str, Expression], ...]
    span: Span | None = field(default=None, compare=False, repr=False)


# -- formulas ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Local:
    """``z = e``, a value of each point of a formula."""

    name: str
    value: Expression
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Formula:
    """``C[i, j] += A[i, l] * B[l, j], i < m, j < n, l < k | condition``."""

    target: Access
    operator: str
    value: Expression
    locals: tuple[Local, ...]
    bounds: tuple[Bound, ...]
    condition: Expression | None
    unrolled: Bound | None
    span: Span | None = field(default=None, compare=False, repr=False)


# -- compositions --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AttributeValue:
    """``stride=2`` in an invocation."""

    name: str
    value: Expression
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Invocation:
    """``label: nn.conv<T>{stride=2}(x, ~, y)``; an argument that is left out is None."""

    operator: str
    label: str
    types: tuple[str, ...]
    attributes: tuple[AttributeValue, ...]
    arguments: tuple[Expression | None, ...]
    span: Span | None = field(default=None, compare=False, repr=False)
    name_span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Block:
    """``{ y = op(x); yield y; }``."""

    label: str
    assignments: tuple[Assignment, ...]
    results: tuple[Expression, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Branch:
    """``if a then b elif c then d else e``: the conditions with what they lead to, and the rest."""

    arms: tuple[tuple[Operation, Operation], ...]
    other: Operation
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Loop:
    """``with s = 0.0 for x : xs while c do..(i -> n) op(s, x)``."""

    carried: tuple[Declaration, ...]
    scanned: tuple[tuple[Identifier, Expression], ...]
    condition: Operation | None
    tested_first: bool
    unrolled: bool
    index: Identifier | None
    count: Expression | None
    body: Operation
    span: Span | None = field(default=None, compare=False, repr=False)


Operation = Invocation | Block | Branch | Loop | Expression


@dataclass(frozen=True, slots=True)
class Target:
    """What an assignment writes: a name, ``~``, ``a..(n)``, or a list of them; ``type`` where one is given."""

    name: str | None
    length: Expression | None
    items: tuple[Target, ...] | None
    type: TypeNode | None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Assignment:
    """``a, [b, c..(k)] = operation``."""

    targets: tuple[Target, ...]
    operation: Operation
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Quantization:
    """``conv1.filter: quant.min_max_linear_quantize{bits=8, ...}``."""

    tensor: str
    operator: str
    types: tuple[str, ...]
    attributes: tuple[AttributeValue, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator or a graph, block by block; None for a block that is not there where that makes a difference."""

    name: str
    graph: bool
    public: bool
    generics: tuple[Generic, ...] = ()
    attributes: tuple[Declaration, ...] = ()
    inputs: tuple[Declaration, ...] = ()
    outputs: tuple[Declaration, ...] = ()
    constants: tuple[Declaration, ...] = ()
    variables: tuple[Declaration, ...] = ()
    usings: tuple[Using, ...] = ()
    assertions: tuple[Assertion, ...] = ()
    formulas: tuple[Formula, ...] | None = None
    composition: tuple[Assignment, ...] | None = None
    updates: tuple[Assignment, ...] = ()
    quantizations: tuple[Quantization, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)
    name_span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Import:
    """``import nn``."""

    module: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TextModule:
    """What a text holds."""

    imports: tuple[Import, ...]
    operators: tuple[Operator, ...]
    text: str
    filename: str


def parts_of(node: Expression) -> Iterator[Expression]:
    """The expressions that stand directly in ``node``."""
    for each in fields(node):
        value = getattr(node, each.name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Expression):
                yield part


def walk(node: Expression) -> Iterator[Expression]:
    """``node`` and all expressions in it."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(parts_of(found))


def names_in(node: Expression) -> frozenset[str]:
    """The names that occur in an expression."""
    return frozenset(each.name for each in walk(node) if isinstance(each, Identifier | Member | Access))
