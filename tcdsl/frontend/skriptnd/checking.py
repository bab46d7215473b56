"""What is wrong with an operator whatever it is called with: names, types, and the forms of its blocks.

Its values are `Unknown`: types are known as far as the text tells them. What is not known fits everything, and is found
where the operator is called (`tcdsl.frontend.skriptnd.composition`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import zip_longest
from typing import Any

from tcdsl.errors import ConfigurationError, DslSyntaxError, DtypeError, suggestion
from tcdsl.frontend.skriptnd.arithmetic import FUNCTIONS, Arithmetic, StandIns
from tcdsl.frontend.skriptnd.binding import binding_order
from tcdsl.frontend.skriptnd.composition import ComposedBlock, Composer, looked_at_variable
from tcdsl.frontend.skriptnd.evaluation import ExpressionEvaluator, Scope
from tcdsl.frontend.skriptnd.loops import LoopRounds
from tcdsl.frontend.skriptnd.text import syntax
from tcdsl.frontend.skriptnd.text.syntax import names_in
from tcdsl.frontend.skriptnd.values import CONCRETE, Pack, Unknown, article, flat, is_pack, is_tensor, type_of
from tcdsl.frontend.words.shared_parts import sharing
from tcdsl.span import Span

__all__ = ["check_operator", "require_no_recursion"]

#: ``find(name, span)`` gives the operator that a name stands for in a module, and the module where it stands.
Find = Callable[[str, "Span | None"], "tuple[syntax.Operator, str] | None"]
#: Operators, and where they are called.
Calls = list[tuple[syntax.Operator, syntax.Invocation]]
#: The kinds of names in an operator, and its fields that have them.
_NAMED = {
    "type": "generics",
    "attribute": "attributes",
    "input": "inputs",
    "helper symbol": "usings",
    "constant": "constants",
    "variable": "variables",
    "output": "outputs",
}


def check_operator(operator: syntax.Operator, find: Find) -> Calls:
    """The calls in ``operator``. Raises what is wrong with it."""
    bases = {each.name: each.base for each in operator.generics}
    arithmetic = Arithmetic("float32", "int64", StandIns(), bases=bases)
    evaluator = ExpressionEvaluator(arithmetic, Scope(generics={each.name: each.name for each in operator.generics}))
    composer = Composer(arithmetic, None, lambda module, name, span: None, looked_at_variable)
    found = _UncalledOperator(composer, "", evaluator, "", operator=operator, find_operator=find)
    with sharing():
        found.check()
    return found.calls


def require_no_recursion(calls: Mapping[syntax.Operator, Calls]) -> None:
    """Raise if operators call themselves; ``calls`` are those of each operator."""
    try:
        TopologicalSorter({each: [called for called, _ in found] for each, found in calls.items()}).prepare()
    except CycleError as error:
        called, caller, *_ = error.args[1]
        operator, node = next(each for each in calls[caller] if each[0] is called)
        fact = f"the operator `{operator.name}` calls itself"
        raise DslSyntaxError.at(fact, node.span, "use a loop of `@compose`") from None


def _cell(node: syntax.Access, evaluator: ExpressionEvaluator) -> Unknown:
    # What is known of a cell of a tensor.
    found = evaluator.named(node.name, node.span)
    if not is_tensor(found):
        raise DtypeError.at(f"`{node.name}` is no tensor", node.span, f"an item of a pack is `{node.name}[i]`")
    if node.item is not None:
        if found.pack is False:
            raise DtypeError.at(f"`{node.name}` is no pack of tensors", node.span)
        evaluator.value(node.item)
    pack: bool | None = False if node.item is not None else found.pack
    for each in node.indices:
        if isinstance(each, syntax.Whole):
            pack = True
            continue
        expanded = isinstance(each, syntax.Expand)
        given = evaluator.items((each,)) if expanded else evaluator.value(each)
        _require_cells(given, "int", "an index", each.span, "convert it: `int(x)`")
        if not expanded and is_pack(given) is not False:
            pack = None if pack is False else pack
    return Unknown(found.type, pack)


@dataclass(slots=True)
class _UncalledOperator(ComposedBlock):
    """An operator that nothing calls: others are found by ``find_operator``, and not composed."""

    operator: syntax.Operator = field(kw_only=True)
    find_operator: Find = field(kw_only=True)
    calls: Calls = field(kw_only=True, default_factory=list)

    @property
    def names(self) -> dict[str, Any]:
        return self.evaluator.scope.names

    def check(self) -> None:
        """All checks, in the order in which the blocks are evaluated."""
        operator = self.operator
        self._names_once()
        binding_order(operator)
        self._attributes_and_inputs()
        for using in operator.usings:
            found, target = self.evaluator.value(using.value), using.target
            known = found if target.items is None else Unknown(type_of(found))
            self.names.update(dict.fromkeys(target.names, known))
            if target.pack is not None and target.pack.length is not None:
                self._declared_by(target.pack.length)
        for each in (*operator.constants, *operator.variables):
            self._type(each.type, declares=False)
            self._tensor(each)
        for each in operator.constants:
            assert each.default is not None
            found = self._inner_names(each.bounds).value(each.default)
            _require_type(found, each.type.name, f"the constant `{each.name}`", each.default.span)
        for assertion in operator.assertions:
            condition = self.evaluator.value(assertion.condition)
            _require_kind(condition, "bool", "an assertion", assertion.condition.span)
            message = assertion.message.values if assertion.message is not None else ()
            for value in (*message, *(node for _, node in assertion.shown)):
                self.evaluator.value(value)
        for each in operator.outputs:
            is_open = any(extent.bound is not None for extent in each.type.shape or ())
            self._type(each.type, declares=operator.graph or operator.composition is not None or is_open)
        if operator.formulas is not None:
            self._formulas(operator.formulas)
        if operator.composition is not None:
            self._composition(operator.composition)
        for line in operator.quantizations:
            self.names[line.tensor] = Unknown()
            self.operation(line.call, "")

    def _attributes_and_inputs(self) -> None:
        operator = self.operator
        for each in operator.attributes:
            if each.type.shape is not None:
                raise DtypeError.at(f"the attribute `{each.name}` is a tensor", each.span, "tensors are inputs")
            self.names[each.name] = Unknown(self._base(each.type), each.type.pack is not None)
            self._type(each.type, declares=True)
        # Shapes of inputs may use helper symbols that are made of attributes.
        helpers = {name for using in operator.usings for name in using.target.names} - {*self.names}
        self.names.update(dict.fromkeys(helpers, Unknown()))
        for each in operator.inputs:
            self._type(each.type, declares=True)
        for each in operator.inputs:
            self._tensor(each)
        for each in operator.attributes:
            if each.default is not None:
                _fits(self.evaluator.value(each.default), each.type, f"the attribute `{each.name}`", each.default.span)
        for name in helpers:
            del self.names[name]  # until it is its turn

    def _names_once(self) -> None:
        seen: dict[str, str] = {}
        for kind, each in ((kind, each) for kind, group in _NAMED.items() for each in getattr(self.operator, group)):
            for name in each.target.names if isinstance(each, syntax.Using) else (each.name,):
                if name in seen:
                    both = f"two {kind}s" if seen[name] == kind else f"a {kind} and {article(seen[name])}"
                    raise DslSyntaxError.at(f"`{name}` is the name of {both}", each.span, "give one another name")
                seen[name] = kind

    def _base(self, given: syntax.TypeNode) -> str:
        known = [*CONCRETE, *(each.name for each in self.operator.generics)]
        if given.name not in known:
            hint = suggestion(given.name, known, f"types are {', '.join(known)}")
            if given.name in ("type", "arith", "num"):
                hint = f"name it in `@dtype`: `T: {given.name};`"
            raise DtypeError.at(f"`{given.name}` is no type of a value", given.span, hint)
        return given.name

    def _tensor(self, declaration: syntax.Declaration) -> None:
        given = declaration.type
        self.names[declaration.name] = Unknown(self._base(given), given.pack is not None, True)

    def _type(self, given: syntax.TypeNode, declares: bool) -> None:
        # The shape of a type, its rank and length; extents declare names, or are made of known ones.
        for extent in given.shape or ():
            length = None if extent.repeats is None else extent.repeats.length
            if length is not None:
                self._integer(length, declares)
            if extent.bound is not None:
                self.evaluator.value(extent.bound)
            if extent.value is not None:
                packed: bool | None = extent.spread or extent.repeats is not None
                if length is not None and not extent.spread and type_of(self.evaluator.value(length)) in ("bool", ""):
                    packed = None  # `c..(flag)` is one entry, which is there or not
                self._integer(extent.value, declares, packed)
        for node in (given.rank, given.pack.length if given.pack is not None else None):
            if node is not None:
                self._declared_by(node)
        if given.pack is not None and given.pack.bound is not None:
            self.evaluator.value(given.pack.bound)

    def _declared_by(self, node: syntax.Expression, packed: bool | None = False) -> None:
        # The names in the length of a pack, or in an extent, which that may declare.
        for name in names_in(node):
            self.names.setdefault(name, Unknown("int", packed))

    def _integer(self, node: syntax.Expression, declares: bool, packed: bool | None = False) -> None:
        if declares:
            self._declared_by(node, packed)
        value = self.evaluator.value(node)
        if type_of(value) != "bool":  # which counts as 0 or 1
            _require_kind(value, "int", "an extent", node.span)

    def _inner_names(self, bounds: Sequence[syntax.Named]) -> ExpressionEvaluator:
        # What values at points are made of: the names of indices are not those of other things.
        inner = ExpressionEvaluator(self.evaluator.arithmetic, Scope(outer=self.evaluator.scope), _cell)
        names = inner.scope.names
        for bound in bounds:
            if bound.name in names:
                raise DslSyntaxError.at(f"the index `{bound.name}` has two bounds", bound.span)
            if bound.name in self.names:
                raise DslSyntaxError.at(f"the index `{bound.name}` has the name of something else", bound.span)
            names[bound.name] = Unknown("int", False)
        for bound in bounds:
            end = inner.value(bound.value)
            _require_cells(end, "int", f"a bound of `{bound.name}`", bound.span)
            names[bound.name] = Unknown("int", is_pack(end))
        return inner

    def _formulas(self, formulas: Sequence[syntax.Formula]) -> None:
        outputs = {each.name: each for each in self.operator.outputs}
        for each in self.operator.outputs:
            self.names[each.name] = Unknown(self._base(each.type), each.type.pack is not None, True)
        written: dict[str, list[syntax.Formula]] = {name: [] for name in outputs}
        unwritten = {*outputs}
        for formula in formulas:
            name, span = formula.target.name, formula.target.span
            if name not in outputs:
                others = f"outputs are {', '.join(outputs)}"
                hint = others if name in self.names else suggestion(name, outputs, others)
                raise DslSyntaxError.at(f"`{name}` is no output", span, hint)
            earlier = written[name]
            if len(earlier) == 2 or (earlier and formula.operator == "=") or (earlier and earlier[0].operator != "="):
                hint = "one formula with `=`, then one that accumulates"
                raise DslSyntaxError.at(f"`{name}` has too many formulas", formula.span, hint)
            if formula.operator == ":=" and not earlier:
                hint = f"write `{name}[...] = ...` in front of it"
                raise DslSyntaxError.at(f"`:=` changes `{name}`, which has no values yet", formula.span, hint)
            earlier.append(formula)
            for node in formula.accesses:
                if node.name in unwritten:
                    hint = f"write `{node.name}[...] = ...` in front of it"
                    raise DslSyntaxError.at(f"`{node.name}` is read, and has no values yet", node.span, hint)
            unwritten.discard(name)
            self._formula(formula)
        for name, found in written.items():
            if not found:
                raise DslSyntaxError.at(f"the output `{name}` has no formula", outputs[name].span)

    def _formula(self, formula: syntax.Formula) -> None:
        inner = self._inner_names([*((formula.unrolled,) if formula.unrolled is not None else ()), *formula.bounds])
        for local in formula.locals:
            if inner.scope.knows(local.name):
                raise DslSyntaxError.at(f"`{local.name}` has two meanings", local.span, "give the value another name")
            inner.scope.names[local.name] = inner.value(local.value)
        wanted = inner.value(formula.target).type
        value, hint = inner.value(formula.value), "`real(x)` and `int(x)` convert"
        inner.arithmetic.require_accumulated(formula.operator, Unknown(wanted), formula.target.span)
        _require_cells(value, type_of(value), "a value", formula.value.span)
        _require_type(value, wanted, f"`{formula.target.name}`", formula.value.span, hint)
        if formula.condition is not None:
            _require_cells(inner.value(formula.condition), "bool", "a condition", formula.condition.span)

    def _composition(self, assignments: Sequence[syntax.Assignment]) -> None:
        optional = {each.name for each in self.operator.inputs if each.type.optional and self.operator.graph}
        for node in (each.operation for each in assignments):
            if isinstance(node, syntax.Identifier) and node.name in optional:
                raise DtypeError.at(
                    f"`{node.name}` may be null", node.span, f"choose another value: `{node.name} ?? y`"
                )
        self.run(assignments)
        for output in self.operator.outputs:
            if output.name not in self.names:
                raise DslSyntaxError.at(f"the output `{output.name}` is never assigned", output.span)
            _require_type(self.names[output.name], output.type.name, f"the output `{output.name}`", output.span)
        self.run(self.operator.updates, [each.name for each in self.operator.variables])

    def changed(self, target: syntax.Target, result: Any) -> None:
        """A variable keeps its type."""
        _require_type(result, self.names[target.name or ""].type, f"`{target.name}`", target.span)

    def assign_one(self, target: syntax.Target, result: Any) -> None:
        """Know that a result has a name."""
        if target.name is None:
            ComposedBlock.assign_one(self, target, result)
            return
        if target.name in self.names:
            fact, hint = (f"`{target.name}` is assigned twice", "each result has a name of its own")
            if any(target.name == each.name for each in self.operator.inputs):
                fact, hint = f"the input `{target.name}` is assigned", "give the result another name"
            raise DslSyntaxError.at(fact, target.span, hint)
        if target.pack is not None and target.pack.length is not None:
            self.value(target.pack.length)
        if target.type is not None:
            self._declared_type(target.name, target.type, result)
        self.names[target.name] = Unknown(type_of(result), target.pack is not None or is_pack(result), True)

    def _declared_type(self, name: str, given: syntax.TypeNode, value: Any) -> None:
        _require_type(value, self._base(given), f"`{name}`", given.span)
        for extent in given.shape or ():
            if extent.value is not None:
                self.value(extent.value)

    def test(self, condition: syntax.Operation) -> Any:
        """A condition: both arms are looked at, also where it is known."""
        ComposedBlock.test(self, condition)
        return Unknown("bool", False)

    def _loop(self, node: syntax.Loop, own: str) -> list[Any]:
        # One round of any loop.
        packs = []
        for name, pack in node.scanned:
            value = self.value(pack)
            if is_pack(value) is False:
                raise DtypeError.at(f"`{name.name}` scans what is no pack", name.span)
            packs.append((name, Pack.of((Unknown(type_of(value), False, True),))))
        count = None if node.count is None else self.value(node.count)
        if node.unrolled:
            self.require_unrollable(node, node.condition is None and not is_tensor(count))
        starts = [self.value(each.default) for each in node.carried if each.default is not None]
        for each, start in zip(node.carried, starts, strict=True):
            if each.type.name:
                self._declared_type(each.name, each.type, start)
        state = [Unknown(type_of(each), is_pack(each), True) for each in starts]
        results = LoopRounds(self, node, own, packs, state).one_round(self.composition)
        return [*results[: len(state)], *(Unknown(type_of(each), True, True) for each in results[len(state) :])]

    def _invocation(self, node: syntax.Invocation, own: str) -> list[Any]:
        found = self.find_operator(node.operator, node.name_span)
        if found is None:
            generics = [each.name for each in self.operator.generics]
            if len(node.arguments) == 1 and not node.attributes and node.operator in (*FUNCTIONS, *generics):
                return ComposedBlock._invocation(self, node, own)
            module, _, name = node.operator.rpartition(".")
            what = f"the module `{module}` has no operator `{name}`" if module else f"there is no operator `{name}`"
            raise DslSyntaxError.at(what, node.name_span)
        operator, _ = found
        self.calls.append((operator, node))
        missing = {each.name: each for each in operator.attributes}
        for each in node.attributes:
            known = missing.pop(each.name, None)
            if known is None:
                names = [attribute.name for attribute in operator.attributes]
                hint = suggestion(each.name, names, f"its attributes are {', '.join(names) or 'none'}")
                raise ConfigurationError.at(f"`{node.operator}` has no attribute `{each.name}`", each.span, hint)
            value = self.value(each.value)
            if known.type.name in CONCRETE:
                _fits(value, known.type, f"the attribute `{each.name}`", each.value.span)
        for name, declared in missing.items():
            if declared.default is None and not declared.type.optional:
                fact, hint = f"`{node.operator}` lacks the attribute `{name}`", f"write `{node.operator}{{{name}=...}}`"
                raise ConfigurationError.at(fact, node.name_span, hint)
        if len(node.arguments) > len(operator.inputs):
            fact = f"`{node.operator}` takes {len(operator.inputs)} inputs, and is given {len(node.arguments)}"
            raise ConfigurationError.at(fact, node.span)
        for declared, argument in zip_longest(operator.inputs, node.arguments):
            if argument is None:
                if not declared.type.optional and declared.default is None:
                    raise ConfigurationError.at(f"`{node.operator}` lacks the input `{declared.name}`", node.span)
                continue
            value = self.value(argument)
            kind, wanted = type_of(value), declared.type.name
            if kind in CONCRETE and wanted in CONCRETE and kind != wanted:
                point = (kind, wanted) == ("int", "real") and not is_tensor(value)
                convert = f"convert it: `layout.cast` of a tensor, `{wanted}(a)` of a number"
                fact = f"the input `{declared.name}` of `{node.operator}` is {wanted}, not {kind}"
                raise DtypeError.at(fact, argument.span, "a real has a point: `1.0`" if point else convert)
        types = (each.type for each in operator.outputs)
        return [Unknown(each.name if each.name in CONCRETE else "", each.pack is not None, True) for each in types]


def _require_kind(value: Any, wanted: str, what: str, span: Span | None, hint: str = "") -> None:
    # Raise if the type of a value is another one; what is open fits.
    if type_of(value) not in (wanted, ""):
        raise DtypeError.at(f"{what} of type {type_of(value)}, not {wanted}", span, hint)


def _require_cells(value: Any, wanted: str, what: str, span: Span | None, hint: str = "") -> None:
    # Raise, too, if a tensor stands where one of its cells is meant.
    _require_kind(value, wanted, what, span, hint)
    if any(map(is_tensor, flat((value,)))):
        raise DtypeError.at("a tensor in a formula", span, "read a cell of it: `x[i,j]`, or `x[]` of rank 0")


def _require_type(value: Any, wanted: str, what: str, span: Span | None, hint: str = "") -> None:
    # Raise if the type of a value, or the one that is wanted, is known to be another one.
    kind = type_of(value)
    if kind in CONCRETE and wanted in CONCRETE and kind != wanted:
        hint = "a real has a point: `1.0`" if (kind, wanted) == ("int", "real") else hint
        raise DtypeError.at(f"{what} is {wanted}, and its value is {kind}", span, hint)


def _fits(value: Any, wanted: syntax.TypeNode, what: str, span: Span | None) -> None:
    _require_type(value, wanted.name, what, span)
    if is_pack(value) and wanted.pack is None and wanted.shape is None:
        raise DtypeError.at(f"{what} is one value, and is given a pack", span)
