"""What is wrong with an operator whatever it is called with: names, types, and the forms of its blocks.

Types are known as far as the text tells them: what is not known fits everything, and is found where the operator is
called (`tcdsl.frontend.skriptnd.composition`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import NamedTuple

from tcdsl.errors import ConfigurationError, DslSyntaxError, DtypeError, TcdslError
from tcdsl.frontend.skriptnd.arithmetic import COMPARISONS, FUNCTIONS, LOGICAL
from tcdsl.frontend.skriptnd.binding import binding_order
from tcdsl.frontend.skriptnd.text.syntax import (
    Access,
    Assignment,
    Binary,
    Block,
    Branch,
    Call,
    Coalesce,
    Contains,
    Declaration,
    Expand,
    Expression,
    Extent,
    Fold,
    Formula,
    Guard,
    Identifier,
    Identity,
    Invocation,
    ListNode,
    Literal,
    Loop,
    Member,
    NullTest,
    Operation,
    Operator,
    RangeItem,
    Select,
    Slice,
    Subscript,
    Substitute,
    Target,
    TextValue,
    TypeNode,
    Unary,
    Zip,
    names_in,
    walk,
)
from tcdsl.span import Span

__all__ = ["check_operator"]

#: ``find(name, span)`` gives the operator that a name stands for in a module.
Find = Callable[[str, "Span | None"], "Operator | None"]

_CONCRETE = ("int", "real", "bool", "str")


class Kind(NamedTuple):
    """What is known of a value: its type, nothing if that is open, and whether it is a pack or a tensor."""

    type: str = ""
    pack: bool | None = None
    tensor: bool = False


_OPEN = Kind()


def check_operator(operator: Operator, find: Find) -> None:
    """Raise what is wrong with ``operator``."""
    _Checks(operator, find).run()


@dataclass(slots=True)
class _Checks:
    operator: Operator
    find: Find
    names: dict[str, Kind] = field(default_factory=dict)

    def run(self) -> None:
        """All checks, in the order in which the blocks are evaluated."""
        operator = self.operator
        self._names_once()
        binding_order(operator)
        for each in operator.attributes:
            if each.type.shape is not None:
                raise DtypeError.at(f"the attribute `{each.name}` is a tensor", each.span, "tensors are inputs")
            self.names[each.name] = Kind(self._base(each.type), each.type.pack is not None)
            self._length(each.type)
        # Shapes of inputs may use helper symbols that are made of attributes.
        for using in operator.usings:
            for name in names_in(using.target):
                self.names.setdefault(name, _OPEN)
        for each in operator.inputs:
            self._shape(each.type, declares=True)
            self._length(each.type)
        for each in operator.inputs:
            self.names[each.name] = Kind(self._base(each.type), each.type.pack is not None, True)
        for each in operator.attributes:
            if each.default is not None:
                self._fits(self.typed(each.default), each.type, f"the attribute `{each.name}`", each.default.span)
        for using in operator.usings:
            found = self.typed(using.value)
            if isinstance(using.target, Identifier):
                self.names[using.target.name] = found
            if using.length is not None:
                self._declared_by(using.length)
        for group in (operator.constants, operator.variables):
            for each in group:
                self._shape(each.type, declares=False)
                self._length(each.type)
                self.names[each.name] = Kind(self._base(each.type), each.type.pack is not None, True)
        for each in operator.constants:
            self._constant(each)
        for assertion in operator.assertions:
            found = self.typed(assertion.condition)
            if found.type and found.type != "bool":
                raise DtypeError.at(f"an assertion of type {found.type}, not bool", assertion.condition.span)
            for value in (
                *(assertion.message.values if assertion.message else ()),
                *(node for _, node in assertion.shown),
            ):
                self.typed(value)
        for each in operator.outputs:
            self._shape(each.type, declares=operator.graph or operator.composition is not None or self._is_open(each))
            self._length(each.type)
        if operator.formulas is not None:
            self._formulas(operator.formulas)
        if operator.composition is not None:
            self._composition(operator)

    def _is_open(self, declaration: Declaration) -> bool:
        return any(each.bound is not None for each in declaration.type.shape or ())

    # -- names -----------------------------------------------------------------------------------------------------

    def _names_once(self) -> None:
        operator = self.operator
        seen: dict[str, str] = {}
        groups: Sequence[tuple[str, Iterable[tuple[str, Span | None]]]] = (
            ("type", [(each.name, each.span) for each in operator.generics]),
            ("attribute", [(each.name, each.span) for each in operator.attributes]),
            ("input", [(each.name, each.span) for each in operator.inputs]),
            (
                "helper symbol",
                [(name, each.span) for each in operator.usings for name in sorted(names_in(each.target))],
            ),
            ("constant", [(each.name, each.span) for each in operator.constants]),
            ("variable", [(each.name, each.span) for each in operator.variables]),
            ("output", [(each.name, each.span) for each in operator.outputs]),
        )
        for kind, names in groups:
            for name, span in names:
                if name in seen:
                    both = f"two {kind}s" if seen[name] == kind else f"a {kind} and {_a(seen[name])}"
                    raise DslSyntaxError.at(f"`{name}` is the name of {both}", span, "give one another name")
                seen[name] = kind

    def _unknown(self, name: str, span: Span | None) -> TcdslError:
        close = get_close_matches(name, self.names, 1)
        hint = f"did you mean `{close[0]}`?" if close else ""
        return DslSyntaxError.at(f"`{name}` is not defined", span, hint)

    # -- declarations ----------------------------------------------------------------------------------------------

    def _base(self, given: TypeNode) -> str:
        generics = [each.name for each in self.operator.generics]
        if given.name not in (*_CONCRETE, *generics):
            known = [*_CONCRETE, *generics]
            close = get_close_matches(given.name, known, 1)
            hint = f"did you mean `{close[0]}`?" if close else f"types are {', '.join(known)}"
            if given.name in ("type", "arith", "num"):
                hint = f"name it in `@dtype`: `T: {given.name};`"
            raise DtypeError.at(f"`{given.name}` is no type of a value", given.span, hint)
        return given.name

    def _length(self, given: TypeNode) -> None:
        for node in (given.rank, given.pack.length if given.pack is not None else None):
            if node is not None:
                self._declared_by(node)
        if given.pack is not None and given.pack.bound is not None:
            self.typed(given.pack.bound)

    def _declared_by(self, node: Expression) -> None:
        # The names in the length of a pack, or in an extent, which that may declare.
        for name in names_in(node):
            self.names.setdefault(name, Kind("int", False))

    def _shape(self, given: TypeNode, declares: bool) -> None:
        for extent in given.shape or ():
            if extent.repeats is not None and extent.repeats.length is not None:
                if declares:
                    self._declared_by(extent.repeats.length)
                else:
                    self._integer(extent.repeats.length)
            if extent.bound is not None:
                self.typed(extent.bound)
            if extent.value is None:
                continue
            if declares:
                packed = self._is_packed(extent)
                for name in names_in(extent.value):
                    self.names.setdefault(name, Kind("int", packed))
            self._integer(extent.value)

    def _is_packed(self, extent: Extent) -> bool | None:
        if extent.spread:
            return True
        if extent.repeats is None:
            return False
        length = extent.repeats.length
        # `c..(flag)` is one entry, which is there or not.
        return None if length is not None and self.typed(length).type in ("bool", "") else True

    def _integer(self, node: Expression) -> None:
        found = self.typed(node)
        if found.type and found.type not in ("int", "bool"):
            raise DtypeError.at(f"an extent of type {found.type}, not int", node.span)

    def _fits(self, found: Kind, wanted: TypeNode, what: str, span: Span | None) -> None:
        if found.type in _CONCRETE and wanted.name in _CONCRETE and found.type != wanted.name:
            hint = "a real has a point: `1.0`" if (found.type, wanted.name) == ("int", "real") else ""
            raise DtypeError.at(f"{what} is {wanted.name}, and its value is {found.type}", span, hint)
        if found.pack and wanted.pack is None and wanted.shape is None:
            raise DtypeError.at(f"{what} is one value, and is given a pack", span)

    def _constant(self, declaration: Declaration) -> None:
        assert declaration.default is not None
        inner = dict(self.names)
        for bound in declaration.bounds:
            if bound.name in self.names:
                raise DslSyntaxError.at(f"the index `{bound.name}` has the name of something else", bound.span)
            self.names[bound.name] = Kind("int", self.typed(bound.end).pack)
        try:
            found = self.typed(declaration.default)
        finally:
            self.names = inner
        if found.type in _CONCRETE and declaration.type.name in _CONCRETE and found.type != declaration.type.name:
            fact = f"the constant `{declaration.name}` is {declaration.type.name}, and its value is {found.type}"
            hint = "a real has a point: `1.0`" if found.type == "int" else ""
            raise DtypeError.at(fact, declaration.default.span, hint)

    # -- formulas --------------------------------------------------------------------------------------------------

    def _formulas(self, formulas: Sequence[Formula]) -> None:
        outputs = {each.name: each for each in self.operator.outputs}
        for each in self.operator.outputs:
            self.names[each.name] = Kind(self._base(each.type), each.type.pack is not None, True)
        written: dict[str, list[Formula]] = {name: [] for name in outputs}
        for formula in formulas:
            name, span = formula.target.name, formula.target.span
            if name not in outputs:
                hint = f"outputs are {', '.join(outputs)}"
                if name not in self.names:
                    close = get_close_matches(name, outputs, 1)
                    hint = f"did you mean `{close[0]}`?" if close else hint
                raise DslSyntaxError.at(f"`{name}` is no output", span, hint)
            earlier = written[name]
            if len(earlier) == 2 or (earlier and formula.operator == "=") or (earlier and earlier[0].operator != "="):
                hint = "one formula with `=`, then one that accumulates"
                raise DslSyntaxError.at(f"`{name}` has too many formulas", formula.span, hint)
            if formula.operator == ":=" and not earlier:
                hint = f"write `{name}[...] = ...` in front of it"
                raise DslSyntaxError.at(f"`:=` changes `{name}`, which has no values yet", formula.span, hint)
            earlier.append(formula)
            self._formula(formula)
        for name, each in written.items():
            if not each:
                raise DslSyntaxError.at(f"the output `{name}` has no formula", outputs[name].span)

    def _formula(self, formula: Formula) -> None:
        outer = dict(self.names)
        try:
            bounds = [*((formula.unrolled,) if formula.unrolled is not None else ()), *formula.bounds]
            seen: set[str] = set()
            for bound in bounds:
                if bound.name in seen:
                    raise DslSyntaxError.at(f"the index `{bound.name}` has two bounds", bound.span)
                if bound.name in outer:
                    raise DslSyntaxError.at(f"the index `{bound.name}` has the name of something else", bound.span)
                seen.add(bound.name)
                self.names[bound.name] = Kind("int")
            for bound in bounds:
                found = self.typed(bound.end)
                if found.type and found.type != "int":
                    raise DtypeError.at(f"the bound of `{bound.name}` is {found.type}, not int", bound.span)
                self.names[bound.name] = Kind("int", found.pack)
            for local in formula.locals:
                if local.name in self.names:
                    raise DslSyntaxError.at(
                        f"`{local.name}` has two meanings", local.span, "give the value another name"
                    )
                self.names[local.name] = self.typed(local.value)
            self.typed(formula.target)
            value = self.typed(formula.value)
            wanted = self.names[formula.target.name].type
            if value.type in _CONCRETE and wanted in _CONCRETE and value.type != wanted:
                hint = "a real has a point: `1.0`" if value.type == "int" else "`real(x)` and `int(x)` convert"
                raise DtypeError.at(
                    f"`{formula.target.name}` is {wanted}, and its value is {value.type}", formula.value.span, hint
                )
            if formula.condition is not None:
                test = self.typed(formula.condition)
                if test.type and test.type != "bool":
                    raise DtypeError.at(f"a condition of type {test.type}, not bool", formula.condition.span)
        finally:
            self.names = outer

    # -- compositions ----------------------------------------------------------------------------------------------

    def _composition(self, operator: Operator) -> None:
        known = dict(self.names)
        outputs = {each.name for each in operator.outputs}
        self._assignments(operator.composition or (), {each.name for each in operator.inputs}, outputs)
        for each in operator.outputs:
            if each.name not in self.names:
                raise DslSyntaxError.at(f"the output `{each.name}` is never assigned", each.span)
        if operator.updates:
            variables = {each.name for each in operator.variables}
            for name in variables:
                self.names.pop(name, None)
            for assignment in operator.updates:
                self.names |= {name: known[name] for name in variables}
                self._operation(assignment.operation)
                for target in assignment.targets:
                    if target.name in outputs:
                        hint = "outputs are assigned in `@compose`"
                        raise DslSyntaxError.at(f"`@update` assigns the output `{target.name}`", target.span, hint)
                    if target.name is not None and target.name not in variables:
                        self._bind(target)

    def _assignments(self, assignments: Sequence[Assignment], inputs: set[str], outputs: set[str]) -> None:
        for each in assignments:
            self._operation(each.operation)
            for target in each.targets:
                self._target(target, inputs)

    def _target(self, target: Target, inputs: set[str]) -> None:
        if target.items is not None:
            for each in target.items:
                self._target(each, inputs)
            return
        if target.name is None:
            return
        if target.name in inputs:
            raise DslSyntaxError.at(
                f"the input `{target.name}` is assigned", target.span, "give the result another name"
            )
        if target.name in self.names:
            raise DslSyntaxError.at(
                f"`{target.name}` is assigned twice", target.span, "each result has a name of its own"
            )
        self._bind(target)

    def _bind(self, target: Target) -> None:
        if target.length is not None:
            self.typed(target.length)
        if target.name is not None:
            self.names[target.name] = Kind("", target.length is not None or None, True)

    def _operation(self, node: Operation) -> None:
        match node:
            case Invocation():
                self._invocation(node)
            case Block():
                self._inner(node)
            case Branch():
                for condition, chosen in node.arms:
                    self._operation(condition)
                    self._operation(chosen)
                self._operation(node.other)
            case Loop():
                self._loop(node)
            case _:
                self.typed(node)

    def _inner(self, block: Block) -> None:
        outer = dict(self.names)
        own: set[str] = set()
        for each in block.assignments:
            self._operation(each.operation)
            for target in each.targets:
                if target.name is not None:
                    if target.name in own:
                        raise DslSyntaxError.at(f"`{target.name}` is assigned twice", target.span)
                    own.add(target.name)
                    self.names.pop(target.name, None)  # which shadows one around the block
                self._target(target, set())
        for result in block.results:
            self.typed(result)
        self.names = outer

    def _loop(self, node: Loop) -> None:
        outer = dict(self.names)
        for each in node.carried:
            assert each.default is not None
            self.typed(each.default)
        for _, pack in node.scanned:
            self.typed(pack)
        if node.count is not None:
            self.typed(node.count)
        for each in node.carried:
            self.names[each.name] = Kind("", None, True)
        if node.condition is not None and node.tested_first:
            self._operation(node.condition)
        for name, _ in node.scanned:
            self.names[name.name] = Kind("", None, True)
        if node.index is not None:
            self.names[node.index.name] = Kind("int", False, True)
        self._operation(node.body)
        if node.condition is not None and not node.tested_first:
            self._operation(node.condition)
        self.names = outer

    def _invocation(self, node: Invocation) -> None:
        operator = self.find(node.operator, node.name_span)
        if operator is None:
            generics = [each.name for each in self.operator.generics]
            if len(node.arguments) == 1 and not node.attributes and node.operator in (*FUNCTIONS, *generics):
                return
            module, _, name = node.operator.rpartition(".")
            what = f"the module `{module}` has no operator `{name}`" if module else f"there is no operator `{name}`"
            raise DslSyntaxError.at(what, node.name_span)
        known = {each.name: each for each in operator.attributes}
        for each in node.attributes:
            if each.name not in known:
                close = get_close_matches(each.name, known, 1)
                hint = f"did you mean `{close[0]}`?" if close else f"its attributes are {', '.join(known) or 'none'}"
                raise ConfigurationError.at(f"`{node.operator}` has no attribute `{each.name}`", each.span, hint)
            found = self.typed(each.value)
            if known[each.name].type.name in _CONCRETE:
                self._fits(found, known[each.name].type, f"the attribute `{each.name}`", each.value.span)
        for declared in operator.attributes:
            given = any(each.name == declared.name for each in node.attributes)
            if not given and declared.default is None and not declared.type.optional:
                hint = f"write `{node.operator}{{{declared.name}=...}}`"
                raise ConfigurationError.at(
                    f"`{node.operator}` lacks the attribute `{declared.name}`", node.name_span, hint
                )
        if len(node.arguments) > len(operator.inputs):
            fact = f"`{node.operator}` takes {len(operator.inputs)} inputs, and is given {len(node.arguments)}"
            raise ConfigurationError.at(fact, node.span)
        for k, declared in enumerate(operator.inputs):
            argument = node.arguments[k] if k < len(node.arguments) else None
            if argument is None:
                if not declared.type.optional and declared.default is None:
                    raise ConfigurationError.at(f"`{node.operator}` lacks the input `{declared.name}`", node.span)
                continue
            found = self.typed(argument)
            if found.type in _CONCRETE and declared.type.name in _CONCRETE and found.type != declared.type.name:
                fact = f"the input `{declared.name}` of `{node.operator}` is {declared.type.name}, not {found.type}"
                hint = "a real has a point: `1.0`" if found.type == "int" else "convert it: `layout.cast`"
                raise DtypeError.at(fact, argument.span, hint)

    # -- expressions -----------------------------------------------------------------------------------------------

    def typed(self, node: Expression) -> Kind:
        """What is known of a value; raises what is wrong with it."""
        match node:
            case Literal(value=value):
                return Kind({bool: "bool", int: "int", float: "real"}[type(value)], False)
            case TextValue(values=values):
                for each in values:
                    self.typed(each)
                return Kind("str", False)
            case Identifier(name=name):
                if name not in self.names:
                    raise self._unknown(name, node.span)
                return self.names[name]
            case Member(name=name, attribute=attribute):
                if name not in self.names:
                    raise self._unknown(name, node.span)
                return Kind("int", attribute == "shape")
            case ListNode(items=items):
                return self._list(items)
            case Unary():
                return self._unary(node)
            case Binary():
                return self._binary(node)
            case Fold():
                return self._fold(node)
            case Select():
                return self._select(node)
            case Coalesce(value=value, default=default):
                return self._same(self.typed(value), self.typed(default), "??", node.span)
            case NullTest(operand=operand):
                self.typed(operand)
                return Kind("bool", False)
            case Identity(left=left, right=right):
                found = self.typed(left), self.typed(right)
                return Kind("bool", _either(*found))
            case Contains(item=item, pack=pack):
                self.typed(pack)
                return Kind("bool", self.typed(item).pack)
            case Call():
                return self._call(node)
            case Subscript(value=value, index=index):
                found, chosen = self.typed(value), self.typed(index)
                if found.tensor and found.pack is False:
                    text = node.span.text if node.span is not None else "x[i]"
                    hint = f"a cell of a tensor of rank 1 is `{text[:-1]},]`"
                    raise DslSyntaxError.at("a tensor is indexed as if it were a pack", node.span, hint)
                if chosen.type and chosen.type not in ("int", "bool"):
                    raise DtypeError.at(f"an index of type {chosen.type}", index.span)
                return Kind(found.type, chosen.pack if found.type != "str" else False, found.tensor)
            case Slice(value=value):
                for part in (node.begin, node.end, node.step):
                    if part is not None and self.typed(part).type not in ("int", ""):
                        raise DtypeError.at("an end of a range is no int", part.span)
                found = self.typed(value)
                return Kind(found.type, True if found.pack else found.pack, found.tensor)
            case Substitute(place=place, replacement=replacement):
                found = self.typed(place.value)
                if isinstance(place, Subscript):
                    self.typed(place.index)
                self.typed(replacement)
                return Kind(found.type, True)
            case Guard():
                for part in (node.index, node.below, node.above):
                    if part is not None and self.typed(part).type not in ("int", ""):
                        raise DtypeError.at("a guarded index is no int", part.span)
                return Kind("int", self.typed(node.index).pack)
            case Access():
                return self._access(node)
            case Expand(value=value, count=count):
                if count is not None:
                    self.typed(count)
                return self._list((value,)) if isinstance(value, Zip) else self.typed(value)
        for each in walk(node):
            if each is not node and not isinstance(each, Zip | Expand | RangeItem):
                self.typed(each)
        return _OPEN

    def _list(self, items: Sequence[Expression]) -> Kind:
        kind = ""
        for item in items:
            parts: Sequence[Expression] = (item,)
            if isinstance(item, Expand):
                parts = item.value.parts if isinstance(item.value, Zip) else (item.value,)
                if item.count is not None:
                    self.typed(item.count)
            elif isinstance(item, RangeItem):
                parts = (item.begin, item.end, *((item.step,) if item.step is not None else ()))
            elif isinstance(item, Zip):
                parts = item.parts
            for part in parts:
                found = self.typed(part)
                if found.type in _CONCRETE and kind in _CONCRETE and found.type != kind:
                    raise DtypeError.at(f"a list of items of type {kind} and {found.type}", part.span)
                kind = kind or found.type
        return Kind(kind, True)

    def _unary(self, node: Unary) -> Kind:
        found = self.typed(node.operand)
        wanted = ("bool",) if node.operator == "!" else ("int", "real")
        if found.type in _CONCRETE and found.type not in wanted:
            raise DtypeError.at(f"`{node.operator}` takes {' or '.join(wanted)}, not {found.type}", node.span)
        return Kind(found.type or ("bool" if node.operator == "!" else ""), found.pack)

    def _binary(self, node: Binary) -> Kind:
        left, right = self.typed(node.left), self.typed(node.right)
        operator, span = node.operator, node.span
        for found in (left, right):
            if found.tensor and not isinstance(node.left, Access) and not isinstance(node.right, Access):
                hint = "tensors meet in operators, such as `math.add(x, y)`"
                raise DtypeError.at(f"`{operator}` of a tensor", span, hint)
        pack = _either(left, right)
        if operator in LOGICAL:
            for found, part in ((left, node.left), (right, node.right)):
                if found.type in _CONCRETE and found.type != "bool":
                    raise DtypeError.at(f"`{operator}` takes bool, not {found.type}", part.span)
            return Kind("bool", pack)
        if operator in COMPARISONS:
            if not (isinstance(node.left, Access) and isinstance(node.right, Access)):
                self._same(left, right, operator, span)
            return Kind("bool", pack)
        same = self._same(left, right, operator, span)
        if same.type in ("bool", "str"):
            raise DtypeError.at(f"`{operator}` takes int or real, not {same.type}", span)
        return Kind(same.type, pack)

    def _same(self, left: Kind, right: Kind, operator: str, span: Span | None) -> Kind:
        if left.type and right.type and left.type != right.type:
            hint = "a real has a point: `1.0`" if {left.type, right.type} == {"int", "real"} else "convert one"
            raise DtypeError.at(f"`{operator}` of {_a(left.type)} and {_a(right.type)}", span, hint)
        return Kind(left.type or right.type, _either(left, right), left.tensor or right.tensor)

    def _fold(self, node: Fold) -> Kind:
        found = self.typed(node.operand)
        if found.pack is False and not found.tensor:
            raise DtypeError.at(f"`{node.operator} ..` folds a pack", node.span)
        if node.operator in ("&&", "||") and found.type in _CONCRETE and found.type != "bool":
            raise DtypeError.at(f"`{node.operator}` takes bool, not {found.type}", node.span)
        if node.operator in COMPARISONS:
            return Kind("bool", False)
        return Kind(found.type, node.cumulative)

    def _select(self, node: Select) -> Kind:
        test = self.typed(node.condition)
        if test.type in _CONCRETE and test.type != "bool":
            raise DtypeError.at(f"the condition of `?` is {test.type}, not bool", node.condition.span)
        chosen = self.typed(node.chosen)
        if node.other is None:
            return Kind(chosen.type, test.pack or chosen.pack, chosen.tensor)
        both = self._same(chosen, self.typed(node.other), "?:", node.span)
        return Kind(both.type, True if test.pack else both.pack, both.tensor)

    def _call(self, node: Call) -> Kind:
        generics = [each.name for each in self.operator.generics]
        found = Kind("", False) if node.argument is None else self.typed(node.argument)
        if node.function in (*_CONCRETE, *generics):
            if found.type == "str" and node.function != "str":
                raise DtypeError.at(f"a str does not become {_a(node.function)}", node.span)
            return Kind(node.function, found.pack)
        if node.function not in FUNCTIONS:
            close = get_close_matches(node.function, FUNCTIONS, 1)
            hint = f"did you mean `{close[0]}`?" if close else f"functions are {', '.join(FUNCTIONS)}"
            raise DslSyntaxError.at(f"there is no function `{node.function}`", node.span, hint)
        wanted = ("int", "real") if node.function in ("abs", "sign") else ("real",)
        if found.type in _CONCRETE and found.type not in wanted:
            hint = f"write `{node.function}(real(x))`" if found.type == "int" else ""
            raise DtypeError.at(f"`{node.function}` takes {' or '.join(wanted)}, not {found.type}", node.span, hint)
        return Kind(found.type or ("real" if len(wanted) == 1 else ""), found.pack)

    def _access(self, node: Access) -> Kind:
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
            if type(each).__name__ == "Whole":
                pack = True
                continue
            kind = self.typed(each)
            if kind.type and kind.type != "int":
                raise DtypeError.at(f"an index of type {kind.type}, not int", each.span, "convert it: `int(x)`")
            if not isinstance(each, Expand) and kind.pack is not False:
                pack = None if pack is False else pack
        return Kind(found.type, pack)


def _either(*kinds: Kind) -> bool | None:
    packs = [each.pack for each in kinds]
    return True if True in packs else None if None in packs else False


def _a(word: str) -> str:
    return f"an {word}" if word[:1] in "aeio" else f"a {word}"
