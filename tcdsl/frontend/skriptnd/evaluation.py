"""The one evaluator: attributes, shapes, helper symbols, formulas and compositions are evaluated by it.

Operators are element by element on packs, and give null where a part is null. What a name stands for says its
`Scope`; what a cell of a tensor is says ``cell``, which only formulas have. Of `Unknown` values types are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import chain, combinations, pairwise, zip_longest
from typing import Any

from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError, suggestion
from tcdsl.frontend.skriptnd.arithmetic import COMPARISONS, FUNCTIONS, LOGICAL, Arithmetic
from tcdsl.frontend.skriptnd.text import syntax
from tcdsl.frontend.skriptnd.values import (
    CONCRETE,
    ZERO,
    GuardedIndex,
    Pack,
    ScalarValue,
    TensorValue,
    Unknown,
    agreed,
    bound_of,
    flat,
    is_pack,
    is_tensor,
    shown,
    type_of,
)
from tcdsl.ir.expressions import Constant
from tcdsl.span import Span

__all__ = ["MOST_ITEMS", "ExpressionEvaluator", "Scope"]

MOST_ITEMS = 10_000
MOST_CHARACTERS = 100_000
_LONG = 8
_PLAIN = frozenset((int, float, bool, str, ScalarValue))
_EMPTY = {"+": 0, "*": 1, "&&": True, "||": False}
_DECIDED = frozenset((("&&", False), ("||", True), ("=>", False)))


@dataclass(slots=True)
class Scope:
    """What names stand for; ``outer`` is asked where a name is not there."""

    names: dict[str, Any] = field(default_factory=dict)
    generics: dict[str, str] = field(default_factory=dict)
    outer: Scope | None = None

    def find(self, name: str) -> Any:
        """The value of ``name``. KeyError if there is none."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        raise KeyError(name)

    def knows(self, name: str) -> bool:
        """Whether ``name`` has a value, or is null."""
        return name in self.names or (self.outer is not None and self.outer.knows(name))

    def generic(self, name: str) -> str | None:
        """The type that a name of `@dtype` stands for."""
        found = self.generics.get(name)
        return found if found is not None or self.outer is None else self.outer.generic(name)

    def all_names(self) -> list[str]:
        """All names."""
        return [*self.names, *(self.outer.all_names() if self.outer is not None else ())]


@dataclass(slots=True)
class ExpressionEvaluator:
    """``ExpressionEvaluator(arithmetic, scope).value(node)``."""

    arithmetic: Arithmetic
    scope: Scope
    cell: Callable[[syntax.Access, ExpressionEvaluator], Any] | None = None
    #: Whether what is evaluated stands in a choice by data, and may not be read.
    may_be_left_out: bool = False
    #: Makes an array of the items of a long pack, of which data chooses one.
    table: Callable[[Pack, ScalarValue], Any] | None = None
    #: The index of an item of so many, which is checked.
    position: Callable[[int, ScalarValue, Span | None, bool], ScalarValue] | None = None

    def within(self, scope: Scope) -> ExpressionEvaluator:
        """The same with other names."""
        return ExpressionEvaluator(self.arithmetic, scope, self.cell, table=self.table, position=self.position)

    def value(self, node: syntax.Expression) -> Any:
        """The value of an expression; None is null."""
        handler: Callable[[ExpressionEvaluator, Any], Any] = _HANDLERS[type(node)]
        return handler(self, node)

    def named(self, name: str, span: Span | None) -> Any:
        """What a name stands for."""
        try:
            found = self.scope.find(name)
        except KeyError:
            hint = suggestion(name, self.scope.all_names())
            raise DslSyntaxError.at(f"`{name}` is not defined", span, hint) from None
        if isinstance(found, TensorValue):
            found.used = True
        return found

    def chosen(self, items: Pack, index: ScalarValue, span: Span | None) -> Any:
        """The item at a position that only a call or a point knows."""
        if items and self.position is not None:
            index = self.position(len(items), index, span, self.may_be_left_out)
        single = items.single()
        if single is not None:
            return single
        if not items:
            raise ShapeError.at("an item of an empty pack", span)
        if isinstance(items[0], TensorValue):
            hint = "scan the pack, `for x : xs`, or `layout.stack` it"
            raise DtypeError.at("data chooses a tensor of a pack", span, hint)
        if self.table is not None and len(items) > _LONG and {*map(type, items)} in ({bool}, {int}, {float}):
            return self.table(items, index)
        found = items[-1]
        for k in range(len(items) - 2, -1, -1):
            found = self.arithmetic.selected(self.arithmetic.binary("==", index, k, span), items[k], found, span)
        return found

    def count(self, node: syntax.Expression, what: str) -> int:
        """How many items a pack has: an int, or a bool that counts as 0 or 1."""
        value = self.value(node)
        if isinstance(value, bool):
            return int(value)
        if isinstance(value, ScalarValue) and self.arithmetic.is_size(value):
            size = self.arithmetic.size(value)
            value = int(size.value) if isinstance(size, Constant) else self.arithmetic.decisions.value(size)
        if type(value) is not int:
            data = isinstance(value, ScalarValue)
            given = "a size that only a call knows" if data else f"of type {type_of(value) or 'null'}"
            raise DtypeError.at(f"{what} is {given}, not an int", node.span)
        if not 0 <= value <= MOST_ITEMS:
            raise ShapeError.at(f"{what} is {value}", node.span, f"it is at least 0 and at most {MOST_ITEMS}")
        return value

    def items(self, nodes: tuple[syntax.Expression, ...]) -> Any:
        """The values of the items of a list, in a row; None if one is null."""
        found: list[Any] = []
        uniform, kind = None, ""
        null = unknown = False
        for node in nodes:
            part = self._part(node)
            if part is None:
                null = True
                continue
            other = type_of(part if isinstance(part, Unknown) else Pack.of(part))
            if other in CONCRETE and kind in CONCRETE and other != kind:
                raise DtypeError.at(f"a list of items of type {kind} and {other}", node.span)
            kind = kind or other
            if isinstance(part, Unknown):
                unknown = True
                continue
            found.extend(part)
            uniform = getattr(part, "uniform", None)
            self.arithmetic.count_items(len(part), node.span)
            if len(found) > MOST_ITEMS:
                raise ShapeError.at(f"a pack of more than {MOST_ITEMS} items", node.span)
        if null or unknown:
            return None if null else Unknown(kind, True)
        return Pack.of(found, None if found or len(nodes) > 1 else uniform)

    def _part(self, node: syntax.Expression) -> Any:
        # What one item of a list stands for, in a row; None if it is null.
        match node:
            case syntax.Expand(value=syntax.Zip(parts=parts)):
                packs = [self._pack(part) for part in parts]
                if None in packs:
                    return None
                unknown = [each for each in packs if isinstance(each, Unknown)]
                if unknown:
                    return reduce(lambda a, b: agreed("..", a, b, node.span), packs)
                self._same_length([len(each) for each in packs], node.span)
                return [item for row in zip(*packs, strict=True) for item in row]
            case syntax.Expand(value=inner, count=None):
                return self._pack(inner)
            case syntax.Expand(value=inner, count=count) if count is not None:
                value, repeats = self.value(inner), self.value(count)
                if repeats is None:
                    return None
                if isinstance(value, Unknown) or isinstance(repeats, Unknown):
                    return Unknown(type_of(value), True)
                repeats = self.count(count, "the number of repetitions")
                if isinstance(value, Pack):
                    if len(value) != repeats:
                        raise ShapeError.at(f"a pack of {len(value)} items is expanded to {repeats}", node.span)
                    return Pack.of(value)
                return None if value is None and repeats else Pack.of((value,) * repeats, value)
            case syntax.Range():
                return self._range(node)
        value = self.value(node)
        if is_pack(value):
            raise DtypeError.at("a pack as an item of a list", node.span, "expand it: `a..`")
        return None if value is None else (value,)

    def _pack(self, node: syntax.Expression) -> Any:
        value = self.value(node)
        if value is not None and is_pack(value) is False:
            raise DtypeError.at("`..` behind what is no pack", node.span, "give the number of repetitions: `a..(n)`")
        return value

    def positions(self, node: syntax.Expression, value: Any) -> Any:
        """What stands in the brackets behind ``value``; of a range or a mask the positions that it takes."""
        if not isinstance(node, syntax.Range):
            found = self.value(node)
            if isinstance(found, Pack) and isinstance(value, Pack | str) and type_of(found) == "bool":
                self._same_length([len(value), len(found)], node.span)
                return Pack.of(k for k, kept in enumerate(found) if kept)
            return found
        ends = self._ends(node)
        if isinstance(ends, Unknown) or isinstance(value, Unknown):
            return Unknown("int", True)
        return Pack.of(range(*ends.indices(len(value)))) if ends and isinstance(value, Pack | str) else None

    def _range(self, node: syntax.Range) -> Any:
        ends = self._ends(node)
        if not isinstance(ends, slice):
            return ends
        found = range(ends.start, ends.stop, ends.step or 1)
        if len(found) > MOST_ITEMS:
            raise ShapeError.at(f"a range of {len(found)} items", node.span, f"{MOST_ITEMS} are the most")
        return Pack.of(found)

    def _ends(self, node: syntax.Range) -> Any:
        parts = (node.begin, node.end, node.step)
        found = [None if part is None else self.value(part) for part in parts]
        given = [(part, end) for part, end in zip(parts, found, strict=True) if part is not None]
        if any(end is None for _, end in given):
            return None
        for part, end in given:
            fits = isinstance(end, Unknown) and end.type not in CONCRETE
            if is_pack(end) or (type_of(end) != "int" and not fits):
                fact = "a pack, not one int" if is_pack(end) else f"of type {type_of(end)}, not int"
                raise DtypeError.at(f"an end of a range is {fact}", part.span)
            if isinstance(end, ScalarValue):
                raise DtypeError.at("an end of a range is a number that only a call knows", part.span)
        if found[2] == 0:
            raise DslSyntaxError.at("a range with step 0", node.span)
        return Unknown("int", True) if any(isinstance(end, Unknown) for end in found) else slice(*found)

    def _same_length(self, lengths: list[int], span: Span | None) -> int:
        if len(set(lengths)) > 1:
            raise ShapeError.at(f"packs of {' and '.join(map(str, lengths))} items meet", span, "lengths have to agree")
        return lengths[0]

    def require_numbers(self, what: str, values: tuple[Any, ...], span: Span | None) -> None:
        """Raise if one of the operands of ``what`` is a tensor."""
        for value in values:
            if type(value) in _PLAIN:
                continue
            if any(map(is_tensor, flat((value,)))):
                hint = "tensors meet in operators, such as `math.add(x, y)` and `math.exp(x)`"
                raise DtypeError.at(f"`{what}` of a tensor", span, hint)

    def each(self, function: Callable[..., Any], values: tuple[Any, ...], span: Span | None) -> Any:
        """``function`` of single values, or of the items of packs."""
        if _PLAIN.issuperset(map(type, values)):
            return function(*values, span)
        if any(value is None for value in values):
            return None
        if any(isinstance(value, Unknown) for value in values):
            one = function(*(Unknown(type_of(each), False) if is_pack(each) else each for each in values), span)
            return Unknown(type_of(one), is_pack(*values))
        lengths = [len(value) for value in values if isinstance(value, Pack)]
        if not lengths:
            return function(*values, span)
        size = self._same_length(lengths, span)
        self.arithmetic.count_items(size, span)
        columns = [value if isinstance(value, Pack) else (value,) * size for value in values]
        made = Pack.of(function(*row, span) for row in zip(*columns, strict=True))
        if not size:
            singles = [value.uniform if isinstance(value, Pack) else value for value in values]
            if all(each is not None for each in singles):
                made.uniform = function(*singles, span)
        return made


def _text(self: ExpressionEvaluator, node: syntax.TextValue) -> Any:
    values = [self.value(each) for each in node.values]
    if None in values:
        return None
    if any(isinstance(value, Unknown) for value in values):
        return Unknown("str", False)
    found = "".join(chain.from_iterable(zip_longest(node.pieces, map(shown, values), fillvalue="")))
    if len(found) > MOST_CHARACTERS:
        raise ShapeError.at(f"a text of {len(found)} characters", node.span, f"{MOST_CHARACTERS} are the most")
    return found


def _member(self: ExpressionEvaluator, node: syntax.Member) -> Any:
    value = self.named(node.name, node.span)
    if value is None:
        return None
    if isinstance(value, Unknown):
        return Unknown("int", node.attribute == "shape")
    if node.attribute == "size":
        if isinstance(value, Pack):
            return value.size
        raise DtypeError.at(f"`{node.name}` is no pack, and has no size", node.span)
    if not isinstance(value, TensorValue):
        raise DtypeError.at(f"`{node.name}` is no tensor, and has no {node.attribute}", node.span)
    return value.shape if node.attribute == "shape" else len(value.shape)


def _subscript(self: ExpressionEvaluator, node: syntax.Subscript) -> Any:
    value = self.value(node.value)
    index = self.positions(node.index, value)
    if is_tensor(value) and is_pack(value) is False:
        hint = f"a cell of a tensor of rank 1 is `{(node.written or 'x[i]')[:-1]},]`"
        raise DslSyntaxError.at("a tensor is indexed as if it were a pack", node.span, hint)
    kind = type_of(value)
    if is_pack(value) is False and value is not None and kind not in ("str", ""):
        raise DtypeError.at("what is indexed is no pack", node.span)
    if isinstance(value, Unknown) or isinstance(index, Unknown):
        if type_of(index) in ("real", "str"):
            raise DtypeError.at(f"an index of type {type_of(index)}", node.index.span)
        tensor = any(map(is_tensor, flat((value,))))
        return Unknown(kind, kind != "str" and is_pack(index), tensor)
    if value is None or index is None:
        return None
    if isinstance(index, Pack):
        items = [_item(self, value, each, node.span) for each in index]
        return "".join(items) if isinstance(value, str) else Pack.of(items, value.uniform)
    return _item(self, value, index, node.span)


def _item(self: ExpressionEvaluator, value: Any, index: Any, span: Span | None) -> Any:
    if isinstance(index, ScalarValue) and index.type == "int" and isinstance(value, Pack):
        return self.chosen(value, index, span)
    if type(index) is not int:
        fact = f"an index of type {type_of(index) or 'null'} of a pack"
        raise DtypeError.at(fact, span, "indices are ints, or bools as a mask")
    if not -len(value) <= index < len(value):
        raise ShapeError.at(f"the index {index} of a pack of {len(value)} items", span)
    return value[index]


def _substitute(self: ExpressionEvaluator, node: syntax.Substitute) -> Any:
    value, replacement = self.value(node.place.value), self.value(node.replacement)
    index = self.positions(node.place.index, value)
    if value is None or index is None or replacement is None:
        return None
    if any(isinstance(each, Unknown) for each in (value, index, replacement)):
        return Unknown(type_of(value), True)
    if not isinstance(value, Pack):
        raise DtypeError.at("a substitution in what is no pack", node.span)
    places = flat((index,))
    items = replacement if isinstance(replacement, Pack) else (replacement,) * len(places)
    if len(items) != len(places):
        raise ShapeError.at(f"{len(items)} values for {len(places)} places", node.span)
    changed = list(value)
    for place, item in zip(places, items, strict=True):
        if type(place) is not int or not -len(value) <= place < len(value):
            raise ShapeError.at(f"the index {shown(place)} of a pack of {len(value)} items", node.span)
        changed[place] = item
    return Pack.of(changed)


def _unary(self: ExpressionEvaluator, node: syntax.Unary) -> Any:
    operand = self.value(node.operand)
    if node.operator == "?":
        return Unknown("bool", False) if isinstance(operand, Unknown) else operand is not None
    self.require_numbers(node.operator, (operand,), node.span)
    return self.each(lambda value, span: self.arithmetic.unary(node.operator, value, span), (operand,), node.span)


def _binary(self: ExpressionEvaluator, node: syntax.Binary) -> Any:
    left = self.value(node.left)
    if node.operator == "??":
        if left is not None and not isinstance(left, Unknown):
            return left
        right = self.value(node.right)
        return right if left is None else agreed("??", left, right, node.span)
    # What a null test protects is not evaluated: `?x && x > 0`.
    if isinstance(left, bool) and (node.operator, left) in _DECIDED:
        return node.operator != "&&"
    values = (left, self.value(node.right))
    if node.operator == "is":
        return self.each(partial(_same, self), values, node.span)
    if node.operator == "in":
        return _contains(self, node, *values)
    self.require_numbers(node.operator, values, node.span)
    if node.operator in LOGICAL:
        for part, value in zip((node.left, node.right), values, strict=True):
            if type_of(value) in CONCRETE and type_of(value) != "bool":
                raise DtypeError.at(f"`{node.operator}` takes bool, not {type_of(value)}", part.span)
    cells = isinstance(node.left, syntax.Access) and isinstance(node.right, syntax.Access)
    if cells and node.operator in COMPARISONS and any(isinstance(value, Unknown) for value in values):
        return Unknown("bool", is_pack(*values))  # cells of several types are compared, others are not
    return self.each(partial(self.arithmetic.binary, node.operator), values, node.span)


def _select(self: ExpressionEvaluator, node: syntax.Select) -> Any:
    condition = self.value(node.condition)
    if condition is None:
        return None
    if is_tensor(condition):
        hint = "write `if c then x else y` in `@compose`, and `c[]` in a formula"
        raise DtypeError.at("the condition of `?` is a tensor", node.condition.span, hint)
    if isinstance(condition, Unknown) and condition.type not in ("int", "real", "str"):
        chosen, other = _both(self, node, True)
        found = agreed("?:", chosen, other, node.span)
        packed = is_pack(chosen) if node.other is None else found.pack
        return Unknown(found.type, condition.pack or packed, found.tensor)
    if isinstance(condition, bool):
        if condition:
            return self.value(node.chosen)
        return None if node.other is None else self.value(node.other)
    if isinstance(condition, Pack | ScalarValue) and type_of(condition) in ("bool", ""):
        if isinstance(condition, ScalarValue) and node.other is None:
            raise DslSyntaxError.at("a choice by data without another value", node.span, "write `c ? a : b`")
        known = all(isinstance(each, bool) for each in flat((condition,)))
        both = _both(self, node, self.may_be_left_out or not known)
        return self.each(self.arithmetic.selected, (condition, *both), node.span)
    raise DtypeError.at(f"the condition of `?` is {type_of(condition)}, not bool", node.condition.span)


def _both(self: ExpressionEvaluator, node: syntax.Select, left_out: bool) -> tuple[Any, Any]:
    outer, self.may_be_left_out = self.may_be_left_out, left_out
    try:
        return self.value(node.chosen), None if node.other is None else self.value(node.other)
    finally:
        self.may_be_left_out = outer


def _same(self: ExpressionEvaluator, left: Any, right: Any, span: Span | None) -> Any:
    if any(isinstance(each, TensorValue) or bound_of(each) is not None for each in (left, right)):
        return left == right  # tensors, and extents that only data says
    return self.arithmetic.binary("==", left, right, span)


def _contains(self: ExpressionEvaluator, node: syntax.Binary, item: Any, pack: Any) -> Any:
    if item is None or pack is None:
        return None
    self.require_numbers("in", (item, pack), node.span)
    if isinstance(item, Unknown) or isinstance(pack, Unknown):
        return Unknown("bool", is_pack(item))
    if isinstance(item, str) and isinstance(pack, str):
        return item in pack
    if not isinstance(pack, Pack):
        raise DtypeError.at("what stands behind `in` is no pack", node.right.span)

    def contained(value: Any, span: Span | None) -> Any:
        self.arithmetic.count_items(len(pack), span)
        tests = [self.arithmetic.binary("==", value, each, span) for each in pack]
        return reduce(lambda a, b: self.arithmetic.binary("||", a, b, span), tests, False)

    return self.each(contained, (item,), node.span)


def _fold(self: ExpressionEvaluator, node: syntax.Fold) -> Any:
    pack = self.value(node.operand)
    if pack is None:
        return None
    if is_pack(pack) is False:
        raise DtypeError.at(f"`{node.operator} ..` folds a pack", node.span)
    if node.operator == ":=":
        return Unknown(pack.type, False) if isinstance(pack, Unknown) else pack.single()
    self.require_numbers(f"{node.operator} ..", (pack,), node.span)
    operate = self.arithmetic.binary
    if isinstance(pack, Unknown):
        one = Unknown(pack.type, False)
        return Unknown(type_of(operate(node.operator, one, one, node.span)), node.cumulative)
    self.arithmetic.count_items(len(pack), node.span)
    if node.cumulative:
        found: list[Any] = []
        for item in pack:
            found.append(operate(node.operator, found[-1], item, node.span) if found else item)
        return Pack.of(found)
    if node.operator == "!=" and all(type(each) in (int, str) for each in pack):
        return len({*pack}) == len(pack)
    if node.operator in COMPARISONS:
        many = node.operator == "!="
        self.arithmetic.count_items(len(pack) ** 2 if many else len(pack), node.span)
        pairs = [*combinations(pack, 2)] if many else [*pairwise(pack)]
        tests = [operate(node.operator, a, b, node.span) for a, b in pairs]
        return reduce(lambda a, b: operate("&&", a, b, node.span), tests, True)
    if not pack:
        empty = _EMPTY.get(node.operator)
        return float(empty) if empty is not None and type_of(pack) == "real" else empty
    return reduce(lambda a, b: operate(node.operator, a, b, node.span), pack)


def _call(self: ExpressionEvaluator, node: syntax.Call) -> Any:
    kind = node.function if node.function in CONCRETE else self.scope.generic(node.function)
    if kind is not None:
        if node.argument is None:
            return ZERO.get(kind, Unknown(kind, False))
        value = self.value(node.argument)
        self.require_numbers(node.function, (value,), node.span)
        return self.each(lambda value, span: self.arithmetic.converted(kind, value, span), (value,), node.span)
    if node.function not in FUNCTIONS:
        hint = suggestion(node.function, FUNCTIONS, f"functions are {', '.join(FUNCTIONS)}")
        raise DslSyntaxError.at(f"there is no function `{node.function}`", node.span, hint)
    if node.argument is None:
        raise DslSyntaxError.at(f"`{node.function}` takes one argument", node.span)
    value = self.value(node.argument)
    self.require_numbers(node.function, (value,), node.span)
    return self.each(lambda value, span: self.arithmetic.called(node.function, value, span), (value,), node.span)


def _guard(self: ExpressionEvaluator, node: syntax.Guard) -> Any:
    if self.cell is None:
        raise DslSyntaxError.at("a guarded index outside of a formula", node.span)
    values = tuple(self.value(each) for each in (node.index, node.below, node.above) if each is not None)
    self.require_numbers("|i|", values, node.span)
    return self.each(lambda *row: GuardedIndex(*row[:-1]), values, node.span)


def _access(self: ExpressionEvaluator, node: syntax.Access) -> Any:
    if self.cell is None:
        fact = f"a cell of `{node.name}` outside of a formula"
        raise DslSyntaxError.at(fact, node.span, "cells are read in `@lower`")
    return self.cell(node, self)


def _misplaced(self: ExpressionEvaluator, node: Any) -> Any:
    if isinstance(node, syntax.Zip):
        raise DslSyntaxError.at("a tuple that is not expanded", node.span, "it stands in a list: `[(a, b)..]`")
    what = "`:`" if isinstance(node, syntax.Whole) else "`..`" if isinstance(node, syntax.Expand) else "a range"
    raise DslSyntaxError.at(f"{what} outside of a list", node.span)


_HANDLERS: Mapping[type, Callable[[ExpressionEvaluator, Any], Any]] = {
    syntax.Literal: lambda self, node: node.value,
    syntax.TextValue: _text,
    syntax.Identifier: lambda self, node: self.named(node.name, node.span),
    syntax.Member: _member,
    syntax.ListNode: lambda self, node: self.items(node.items),
    syntax.Subscript: _subscript,
    syntax.Substitute: _substitute,
    syntax.Unary: _unary,
    syntax.Binary: _binary,
    syntax.Select: _select,
    syntax.Fold: _fold,
    syntax.Call: _call,
    syntax.Guard: _guard,
    syntax.Access: _access,
    syntax.Expand: _misplaced,
    syntax.Range: _misplaced,
    syntax.Zip: _misplaced,
    syntax.Whole: _misplaced,
}
