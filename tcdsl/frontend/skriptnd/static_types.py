"""The types of expressions, as far as the text of an operator tells them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NamedTuple

from tcdsl.errors import DslSyntaxError, DtypeError, TcdslError
from tcdsl.frontend.skriptnd.arithmetic import COMPARISONS, FUNCTIONS, LOGICAL
from tcdsl.frontend.skriptnd.text import syntax
from tcdsl.frontend.skriptnd.text.syntax import parts_of
from tcdsl.span import Span

__all__ = ["CONCRETE", "OPEN", "ExpressionTyping", "StaticType", "article"]

CONCRETE = ("int", "real", "bool", "str")


class StaticType(NamedTuple):
    """What is known of a value: its type, nothing if that is open, and whether it is a pack or a tensor."""

    type: str = ""
    pack: bool | None = None
    tensor: bool = False


OPEN = StaticType()


@dataclass(slots=True)
class ExpressionTyping:
    """``ExpressionTyping(operator, names).typed(expression)``; ``names`` are what is known of names."""

    operator: syntax.Operator
    names: dict[str, StaticType]
    in_formula: bool = field(default=False, kw_only=True)

    def _unknown(self, name: str, span: Span | None) -> TcdslError:
        close = get_close_matches(name, self.names, 1)
        hint = f"did you mean `{close[0]}`?" if close else ""
        return DslSyntaxError.at(f"`{name}` is not defined", span, hint)

    # -- expressions -----------------------------------------------------------------------------------------------

    def typed(self, node: syntax.Expression) -> StaticType:
        """What is known of a value; raises what is wrong with it."""
        rule: Callable[[ExpressionTyping, Any], StaticType] | None = _RULES.get(type(node))
        if rule is not None:
            return rule(self, node)
        for each in parts_of(node):
            self.typed(each)
        return OPEN

    def _literal(self, node: syntax.Literal) -> StaticType:
        return StaticType({bool: "bool", int: "int", float: "real"}[type(node.value)], False)

    def _text(self, node: syntax.TextValue) -> StaticType:
        for each in node.values:
            self.typed(each)
        return StaticType("str", False)

    def _identifier(self, node: syntax.Identifier) -> StaticType:
        if node.name not in self.names:
            raise self._unknown(node.name, node.span)
        return self.names[node.name]

    def _member(self, node: syntax.Member) -> StaticType:
        if node.name not in self.names:
            raise self._unknown(node.name, node.span)
        return StaticType("int", node.attribute == "shape")

    def _subscript(self, node: syntax.Subscript) -> StaticType:
        if isinstance(node.index, syntax.Range):
            self._integers("an end of a range is no int", *_ends(node.index))
            found = self.typed(node.value)
            return StaticType(found.type, True if found.pack else found.pack, found.tensor)
        found, chosen = self.typed(node.value), self.typed(node.index)
        if found.tensor and found.pack is False:
            text = node.span.text if node.span is not None else "x[i]"
            hint = f"a cell of a tensor of rank 1 is `{text[:-1]},]`"
            raise DslSyntaxError.at("a tensor is indexed as if it were a pack", node.span, hint)
        if chosen.type and chosen.type not in ("int", "bool"):
            raise DtypeError.at(f"an index of type {chosen.type}", node.index.span)
        return StaticType(found.type, chosen.pack if found.type != "str" else False, found.tensor)

    def _integers(self, fact: str, *parts: syntax.Expression | None) -> None:
        for part in parts:
            if part is not None and self.typed(part).type not in ("int", ""):
                raise DtypeError.at(fact, part.span)

    def _substitute(self, node: syntax.Substitute) -> StaticType:
        found = self.typed(node.place.value)
        for each in _ends(node.place.index) if isinstance(node.place.index, syntax.Range) else (node.place.index,):
            self.typed(each)
        self.typed(node.replacement)
        return StaticType(found.type, True)

    def _guard(self, node: syntax.Guard) -> StaticType:
        self._integers("a guarded index is no int", node.index, node.below, node.above)
        return StaticType("int", self.typed(node.index).pack)

    def _expand(self, node: syntax.Expand) -> StaticType:
        if node.count is not None:
            self.typed(node.count)
        return self._items((node.value,)) if isinstance(node.value, syntax.Zip) else self.typed(node.value)

    def _list(self, node: syntax.ListNode) -> StaticType:
        return self._items(node.items)

    def _items(self, items: Sequence[syntax.Expression]) -> StaticType:
        kind = ""
        for item in items:
            parts: Sequence[syntax.Expression] = (item,)
            if isinstance(item, syntax.Expand):
                parts = item.value.parts if isinstance(item.value, syntax.Zip) else (item.value,)
                if item.count is not None:
                    self.typed(item.count)
            elif isinstance(item, syntax.Range):
                parts = _ends(item)
            elif isinstance(item, syntax.Zip):
                parts = item.parts
            for part in parts:
                found = self.typed(part)
                if found.pack and part is item:
                    raise DtypeError.at("a pack as an item of a list", part.span, "expand it: `a..`")
                if found.type in CONCRETE and kind in CONCRETE and found.type != kind:
                    raise DtypeError.at(f"a list of items of type {kind} and {found.type}", part.span)
                kind = kind or found.type
        return StaticType(kind, True)

    def _unary(self, node: syntax.Unary) -> StaticType:
        found = self.typed(node.operand)
        if node.operator == "?":
            return StaticType("bool", False)
        wanted = ("bool",) if node.operator == "!" else ("int", "real")
        if found.type in CONCRETE and found.type not in wanted:
            raise DtypeError.at(f"`{node.operator}` takes {' or '.join(wanted)}, not {found.type}", node.span)
        return StaticType(found.type or ("bool" if node.operator == "!" else ""), found.pack)

    def _binary(self, node: syntax.Binary) -> StaticType:
        left, right = self.typed(node.left), self.typed(node.right)
        operator, span = node.operator, node.span
        if operator in ("is", "in"):
            return StaticType("bool", _either(left, right) if operator == "is" else left.pack)
        if operator == "??":
            return self._same(left, right, operator, span)
        for found in (left, right):
            if found.tensor and not isinstance(node.left, syntax.Access) and not isinstance(node.right, syntax.Access):
                hint = "tensors meet in operators, such as `math.add(x, y)`"
                raise DtypeError.at(f"`{operator}` of a tensor", span, hint)
        pack = _either(left, right)
        if operator in LOGICAL:
            for found, part in ((left, node.left), (right, node.right)):
                if found.type in CONCRETE and found.type != "bool":
                    raise DtypeError.at(f"`{operator}` takes bool, not {found.type}", part.span)
            return StaticType("bool", pack)
        if operator in COMPARISONS:
            if not (isinstance(node.left, syntax.Access) and isinstance(node.right, syntax.Access)):
                self._same(left, right, operator, span)
            return StaticType("bool", pack)
        same = self._same(left, right, operator, span)
        if same.type in ("bool", "str"):
            raise DtypeError.at(f"`{operator}` takes int or real, not {same.type}", span)
        return StaticType(same.type, pack)

    def _same(self, left: StaticType, right: StaticType, operator: str, span: Span | None) -> StaticType:
        if left.type and right.type and left.type != right.type:
            hint = "a real has a point: `1.0`" if {left.type, right.type} == {"int", "real"} else "convert one"
            raise DtypeError.at(f"`{operator}` of {article(left.type)} and {article(right.type)}", span, hint)
        return StaticType(left.type or right.type, _either(left, right), left.tensor or right.tensor)

    def _fold(self, node: syntax.Fold) -> StaticType:
        found = self.typed(node.operand)
        if found.pack is False and not found.tensor:
            raise DtypeError.at(f"`{node.operator} ..` folds a pack", node.span)
        if node.operator in ("&&", "||") and found.type in CONCRETE and found.type != "bool":
            raise DtypeError.at(f"`{node.operator}` takes bool, not {found.type}", node.span)
        if node.operator in COMPARISONS:
            return StaticType("bool", False)
        return StaticType(found.type, node.cumulative)

    def _select(self, node: syntax.Select) -> StaticType:
        test = self.typed(node.condition)
        if test.type in CONCRETE and test.type != "bool":
            raise DtypeError.at(f"the condition of `?` is {test.type}, not bool", node.condition.span)
        chosen = self.typed(node.chosen)
        if node.other is None:
            return StaticType(chosen.type, test.pack or chosen.pack, chosen.tensor)
        both = self._same(chosen, self.typed(node.other), "?:", node.span)
        return StaticType(both.type, True if test.pack else both.pack, both.tensor)

    def _call(self, node: syntax.Call) -> StaticType:
        generics = [each.name for each in self.operator.generics]
        found = StaticType("", False) if node.argument is None else self.typed(node.argument)
        if node.function in (*CONCRETE, *generics):
            if found.type == "str" and node.function != "str":
                raise DtypeError.at(f"a str does not become {article(node.function)}", node.span)
            return StaticType(node.function, found.pack)
        if node.function not in FUNCTIONS:
            close = get_close_matches(node.function, FUNCTIONS, 1)
            hint = f"did you mean `{close[0]}`?" if close else f"functions are {', '.join(FUNCTIONS)}"
            raise DslSyntaxError.at(f"there is no function `{node.function}`", node.span, hint)
        wanted = ("int", "real") if node.function in ("abs", "sign") else ("real",)
        if found.type in CONCRETE and found.type not in wanted:
            hint = f"write `{node.function}(real(x))`" if found.type == "int" else ""
            raise DtypeError.at(f"`{node.function}` takes {' or '.join(wanted)}, not {found.type}", node.span, hint)
        return StaticType(found.type or ("real" if len(wanted) == 1 else ""), found.pack)

    def _access(self, node: syntax.Access) -> StaticType:
        if not self.in_formula:
            fact = f"a cell of `{node.name}` outside of a formula"
            raise DslSyntaxError.at(fact, node.span, "cells are read in `@lower`")
        if node.name not in self.names:
            raise self._unknown(node.name, node.span)
        found = self.names[node.name]
        if not found.tensor:
            raise DtypeError.at(f"`{node.name}` is no tensor", node.span, f"an item of a pack is `{node.name}[i]`")
        if node.item is not None and found.pack is False:
            raise DtypeError.at(f"`{node.name}` is no pack of tensors", node.span)
        if node.item is not None:
            self.typed(node.item)
        pack: bool | None = False if node.item is not None else found.pack
        for each in node.indices:
            if isinstance(each, syntax.Whole):
                pack = True
                continue
            kind = self.typed(each)
            if kind.type and kind.type != "int":
                raise DtypeError.at(f"an index of type {kind.type}, not int", each.span, "convert it: `int(x)`")
            if not isinstance(each, syntax.Expand) and kind.pack is not False:
                pack = None if pack is False else pack
        return StaticType(found.type, pack)


_RULES: Mapping[type, Callable[[ExpressionTyping, Any], StaticType]] = {
    syntax.Literal: ExpressionTyping._literal,
    syntax.TextValue: ExpressionTyping._text,
    syntax.Identifier: ExpressionTyping._identifier,
    syntax.Member: ExpressionTyping._member,
    syntax.ListNode: ExpressionTyping._list,
    syntax.Unary: ExpressionTyping._unary,
    syntax.Binary: ExpressionTyping._binary,
    syntax.Fold: ExpressionTyping._fold,
    syntax.Select: ExpressionTyping._select,
    syntax.Call: ExpressionTyping._call,
    syntax.Subscript: ExpressionTyping._subscript,
    syntax.Substitute: ExpressionTyping._substitute,
    syntax.Guard: ExpressionTyping._guard,
    syntax.Access: ExpressionTyping._access,
    syntax.Expand: ExpressionTyping._expand,
}


def _ends(node: syntax.Range) -> list[syntax.Expression]:
    return [each for each in (node.begin, node.end, node.step) if each is not None]


def _either(*kinds: StaticType) -> bool | None:
    packs = [each.pack for each in kinds]
    return True if True in packs else None if None in packs else False


def article(word: str) -> str:
    """``word`` with its article: ``an int``."""
    return f"an {word}" if word[:1] in "aeio" else f"a {word}"
