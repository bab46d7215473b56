"""The nodes of SkriptND texts: expressions, declarations, formulas and compositions.

All nodes are immutable and know their places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from tcdsl.frontend.words.nodes import TextNode, walk
from tcdsl.span import Span

__all__ = ["Access", "Binary", "Call", "Expand", "Expression", "Fold"]
__all__ += ["Guard", "Identifier", "ListNode", "Literal", "Member", "Named"]
__all__ += ["Range", "Select", "Subscript", "Substitute", "TextValue", "Unary", "Whole", "Zip"]
__all__ += ["Assertion", "Declaration", "Extent", "Formula", "Generic", "PackLength", "Target", "TypeNode", "Using"]
__all__ += ["Assignment", "Block", "Branch", "Invocation", "Loop"]
__all__ += ["Operation", "Operator", "Quantization", "TextModule", "names_in"]


class Node(TextNode):
    """A part of a text, which knows its place."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def written(self) -> str:
        """What stands in its place, if that is one line."""
        return "" if self.span is None else self.span.text


class Expression(Node):
    """What has a value."""


class Literal(Expression):
    """``2``, ``2.5``, ``true``, ``inf``."""

    value: bool | int | float


class TextValue(Expression):
    """``'got {stride}'``: pieces of text, and the expressions between them."""

    pieces: tuple[str, ...]
    values: tuple[Expression, ...] = ()


class Identifier(Expression):
    """``stride``."""

    name: str


class Member(Expression):
    """``x.shape``, ``x.rank``, ``xs.size``."""

    name: str
    attribute: str


class ListNode(Expression):
    """``[a, b.., 0:n]``."""

    items: tuple[Expression, ...]


class Range(Expression):
    """``b:e:s`` in a list or as an index."""

    begin: Expression | None
    end: Expression | None
    step: Expression | None


class Expand(Expression):
    """``a..`` or ``a..(n)`` in a list, a shape or an index."""

    value: Expression
    count: Expression | None


class Zip(Expression):
    """``(a, b)`` in front of ``..``."""

    parts: tuple[Expression, ...]


class Subscript(Expression):
    """``a[i]`` and ``a[b:e:s]``."""

    value: Expression
    index: Expression


class Substitute(Expression):
    """``a[i] <- b``: the pack ``a`` with other values at ``i``; ``place`` is the subscript."""

    place: Subscript
    replacement: Expression


class Unary(Expression):
    """``-a``, ``+a``, ``!a``, and ``?a``, whether it is null."""

    operator: str
    operand: Expression


class Binary(Expression):
    """``a + b``, ``a is b``, ``a in b``, ``a ?? b``; minimum and maximum are ``<?`` and ``>?``."""

    operator: str
    left: Expression
    right: Expression


class Fold(Expression):
    """``a + ..``; ``a + ...`` is cumulative."""

    operand: Expression
    operator: str
    cumulative: bool


class Select(Expression):
    """``c ? a : b``; without ``b`` the value is optional."""

    condition: Expression
    chosen: Expression
    other: Expression | None


class Call(Expression):
    """``exp(a)``, ``real(a)``, ``T(a)``; without argument the default value of a type."""

    function: str
    argument: Expression | None


class Guard(Expression):
    """``|e|`` or ``|e <> low : high|`` as an index."""

    index: Expression
    below: Expression | None
    above: Expression | None


class Whole(Expression):
    """``:`` as an index: the cells along the axis, as a pack."""


class Access(Expression):
    """``x[i, j]``, ``x[k][i, j]``, ``x[]``: a cell of a tensor."""

    name: str
    item: Expression | None
    indices: tuple[Expression, ...]


class Named(Node):
    """A name with an expression: an index and its end, ``i < n``, a value of each point of a formula, ``z = e``, an
    attribute of an invocation, ``stride=2``.
    """

    name: str
    value: Expression


class PackLength(Node):
    """``..``, ``..(k)`` or ``..(k|5)``."""

    length: Expression | None
    bound: Expression | None


class Extent(Node):
    """An entry of a shape: ``m``, ``s..(d)``, ``..z``, ``n|10``, ``~|10``, ``static c``.

    ``value`` is missing for ``~``; ``spread`` says that each tensor of a pack has an extent of its own.
    """

    value: Expression | None
    bound: Expression | None
    repeats: PackLength | None
    spread: bool


class TypeNode(Node):
    """``optional real^(r)[m, n]..(k)``; ``shape`` is None where the type is no tensor's.

    ``word`` is the place of the word `optional`, up to the next one.
    """

    name: str
    optional: bool = False
    rank: Expression | None = None
    shape: tuple[Extent, ...] | None = None
    pack: PackLength | None = None
    word: Span | None = field(default=None, compare=False, repr=False)

    @property
    def names(self) -> frozenset[str]:
        """The names in its rank, its shape and its length."""
        shape, pack = self.shape or (), (self.pack,) if self.pack is not None else ()
        lengths = (each.length for each in (*(extent.repeats for extent in shape), *pack) if each is not None)
        nodes = (self.rank, *(extent.value for extent in shape), *lengths)
        return frozenset[str]().union(*(names_in(node) for node in nodes if node is not None))


class Declaration(Node):
    """``x: real[n] = 0.0``, an attribute, input, output, constant or variable; ``bounds`` are those of its value."""

    name: str
    type: TypeNode
    default: Expression | None
    bounds: tuple[Named, ...]


class Generic(Node):
    """``T: num = real``."""

    name: str
    base: str
    default: str | None


class Target(Node):
    """What is assigned: a name, ``~``, ``a..(n)``, a list ``[a, b..]`` of them, or in one a tuple, ``(a, b)..``.

    ``items`` are those of the list, or of the tuple; ``type`` is there where one is given.
    """

    name: str | None = None
    pack: PackLength | None = None
    items: tuple[Target, ...] | None = None
    type: TypeNode | None = None

    def label(self, count: int) -> str:
        """The label that a call has by its only result; ``count`` is the number of its results."""
        return self.name or "" if count == 1 and self.items is None else ""

    @property
    def names(self) -> tuple[str, ...]:
        """All names, from left to right."""
        inner = (name for each in self.items or () for name in each.names)
        return (*inner, *((self.name,) if self.name is not None else ()))


class Using(Node):
    """``c..(n) = e``, ``[a, b..] = e``, ``[(a, b)..] = e``."""

    target: Target
    value: Expression


class Assertion(Node):
    """``condition: 'message', label: value``."""

    condition: Expression
    message: TextValue | None
    shown: tuple[tuple[str, Expression], ...]


class Formula(Node):
    """``C[i, j] += A[i, l] * B[l, j], i < m, j < n, l < k | condition``."""

    target: Access
    operator: str
    value: Expression
    locals: tuple[Named, ...]
    bounds: tuple[Named, ...]
    condition: Expression | None
    unrolled: Named | None

    @property
    def accesses(self) -> Iterator[Access]:
        """The cells that are read."""
        parts = [self.value, *(each.value for each in self.locals), *filter(None, (self.condition,))]
        return (node for part in parts for node in walk(part) if isinstance(node, Access))


class Invocation(Node):
    """``label: nn.conv<T>{stride=2}(x, ~, y)``; an argument that is left out is None."""

    operator: str
    label: str
    types: tuple[str, ...]
    attributes: tuple[Named, ...]
    arguments: tuple[Expression | None, ...]
    name_span: Span | None = field(default=None, compare=False, repr=False)


class Block(Node):
    """``{ y = op(x); yield y; }``."""

    label: str
    assignments: tuple[Assignment, ...]
    results: tuple[Expression, ...]


class Branch(Node):
    """``if a then b elif c then d else e``: the conditions with what they lead to, and the rest."""

    arms: tuple[tuple[Operation, Operation], ...]
    other: Operation


class Loop(Node):
    """``with s = 0.0 for x : xs while c do..(i -> n) op(s, x)``; ``result`` is the first name of its results."""

    result: str
    carried: tuple[Declaration, ...]
    scanned: tuple[tuple[Identifier, Expression], ...]
    condition: Operation | None
    tested_first: bool
    unrolled: bool
    index: Identifier | None
    count: Expression | None
    body: Operation


Operation = Invocation | Block | Branch | Loop | Expression


class Assignment(Node):
    """``a, [b, c..(k)] = operation``."""

    targets: tuple[Target, ...]
    operation: Operation


class Quantization(Node):
    """``conv1.filter: quant.min_max_linear_quantize{bits=8, ...}``: the call is that of the operator for the tensor."""

    tensor: str
    call: Invocation


class Operator(Node):
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
    name_span: Span | None = field(default=None, compare=False, repr=False)

    def __hash__(self) -> int:
        return hash((self.name, self.span))


class TextModule(TextNode):
    """What a text holds."""

    imports: tuple[Identifier, ...]
    operators: tuple[Operator, ...]
    text: str
    filename: str


def names_in(node: Expression) -> frozenset[str]:
    """The names that occur in an expression."""
    if isinstance(node, Identifier):
        return frozenset((node.name,))
    return frozenset(each.name for each in walk(node) if isinstance(each, Identifier | Member | Access))
