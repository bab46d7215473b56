"""What is wrong with an operator whatever it is called with: names, types, and the forms of its blocks.

Types are known as far as the text tells them: what is not known fits everything, and is found where the operator is
called (`tcdsl.frontend.skriptnd.composition`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from tcdsl.errors import ConfigurationError, DslSyntaxError, DtypeError
from tcdsl.frontend.skriptnd.arithmetic import FUNCTIONS
from tcdsl.frontend.skriptnd.binding import binding_order
from tcdsl.frontend.skriptnd.static_types import CONCRETE, OPEN, ExpressionTyping, StaticType, article
from tcdsl.frontend.skriptnd.text import syntax
from tcdsl.frontend.skriptnd.text.syntax import names_in, walk
from tcdsl.span import Span

__all__ = ["check_operator"]

#: ``find(name, span)`` gives the operator that a name stands for in a module.
Find = Callable[[str, "Span | None"], "syntax.Operator | None"]


def check_operator(operator: syntax.Operator, find: Find) -> None:
    """Raise what is wrong with ``operator``."""
    _Checks(operator, {}, find).run()


@dataclass(slots=True)
class _Checks(ExpressionTyping):
    find: Find

    def run(self) -> None:
        """All checks, in the order in which the blocks are evaluated."""
        operator = self.operator
        self._names_once()
        binding_order(operator)
        self._attributes_and_inputs()
        for using in operator.usings:
            found = self.typed(using.value)
            if isinstance(using.target, syntax.Identifier):
                self.names[using.target.name] = found
            if using.length is not None:
                self._declared_by(using.length)
        for each in (*operator.constants, *operator.variables):
            self._shape(each.type, declares=False)
            self._length(each.type)
            self.names[each.name] = StaticType(self._base(each.type), each.type.pack is not None, True)
        for each in operator.constants:
            self._constant(each)
        for assertion in operator.assertions:
            self._assertion(assertion)
        for each in operator.outputs:
            self._shape(each.type, declares=operator.graph or operator.composition is not None or self._is_open(each))
            self._length(each.type)
        if operator.formulas is not None:
            self._formulas(operator.formulas)
        if operator.composition is not None:
            self._composition(operator)
        for line in operator.quantizations:
            self.names[line.tensor] = OPEN
            self._invocation(line.call)

    def _attributes_and_inputs(self) -> None:
        operator = self.operator
        for each in operator.attributes:
            if each.type.shape is not None:
                raise DtypeError.at(f"the attribute `{each.name}` is a tensor", each.span, "tensors are inputs")
            self.names[each.name] = StaticType(self._base(each.type), each.type.pack is not None)
            self._length(each.type)
        # Shapes of inputs may use helper symbols that are made of attributes.
        for using in operator.usings:
            for name in names_in(using.target):
                self.names.setdefault(name, OPEN)
        for each in operator.inputs:
            self._shape(each.type, declares=True)
            self._length(each.type)
        for each in operator.inputs:
            self.names[each.name] = StaticType(self._base(each.type), each.type.pack is not None, True)
        for each in operator.attributes:
            if each.default is not None:
                self._fits(self.typed(each.default), each.type, f"the attribute `{each.name}`", each.default.span)

    def _assertion(self, assertion: syntax.Assertion) -> None:
        found = self.typed(assertion.condition)
        if found.type and found.type != "bool":
            raise DtypeError.at(f"an assertion of type {found.type}, not bool", assertion.condition.span)
        message = assertion.message.values if assertion.message is not None else ()
        for value in (*message, *(node for _, node in assertion.shown)):
            self.typed(value)

    def _is_open(self, declaration: syntax.Declaration) -> bool:
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
                    both = f"two {kind}s" if seen[name] == kind else f"a {kind} and {article(seen[name])}"
                    raise DslSyntaxError.at(f"`{name}` is the name of {both}", span, "give one another name")
                seen[name] = kind

    # -- declarations ----------------------------------------------------------------------------------------------

    def _base(self, given: syntax.TypeNode) -> str:
        generics = [each.name for each in self.operator.generics]
        if given.name not in (*CONCRETE, *generics):
            known = [*CONCRETE, *generics]
            close = get_close_matches(given.name, known, 1)
            hint = f"did you mean `{close[0]}`?" if close else f"types are {', '.join(known)}"
            if given.name in ("type", "arith", "num"):
                hint = f"name it in `@dtype`: `T: {given.name};`"
            raise DtypeError.at(f"`{given.name}` is no type of a value", given.span, hint)
        return given.name

    def _length(self, given: syntax.TypeNode) -> None:
        for node in (given.rank, given.pack.length if given.pack is not None else None):
            if node is not None:
                self._declared_by(node)
        if given.pack is not None and given.pack.bound is not None:
            self.typed(given.pack.bound)

    def _declared_by(self, node: syntax.Expression) -> None:
        # The names in the length of a pack, or in an extent, which that may declare.
        for name in names_in(node):
            self.names.setdefault(name, StaticType("int", False))

    def _shape(self, given: syntax.TypeNode, declares: bool) -> None:
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
                    self.names.setdefault(name, StaticType("int", packed))
            self._integer(extent.value)

    def _is_packed(self, extent: syntax.Extent) -> bool | None:
        if extent.spread:
            return True
        if extent.repeats is None:
            return False
        length = extent.repeats.length
        # `c..(flag)` is one entry, which is there or not.
        return None if length is not None and self.typed(length).type in ("bool", "") else True

    def _integer(self, node: syntax.Expression) -> None:
        found = self.typed(node)
        if found.type and found.type not in ("int", "bool"):
            raise DtypeError.at(f"an extent of type {found.type}, not int", node.span)

    def _is_type(self, found: StaticType, wanted: str, fact: str, span: Span | None, hint: str = "") -> None:
        # Raise ``fact``, whose type that is given is known here alone, if it is another one.
        if found.type in CONCRETE and wanted in CONCRETE and found.type != wanted:
            hint = "a real has a point: `1.0`" if (found.type, wanted) == ("int", "real") else hint
            raise DtypeError.at(f"{fact} {found.type}", span, hint)

    def _fits(self, found: StaticType, wanted: syntax.TypeNode, what: str, span: Span | None) -> None:
        self._is_type(found, wanted.name, f"{what} is {wanted.name}, and its value is", span)
        if found.pack and wanted.pack is None and wanted.shape is None:
            raise DtypeError.at(f"{what} is one value, and is given a pack", span)

    def _constant(self, declaration: syntax.Declaration) -> None:
        assert declaration.default is not None
        inner = dict(self.names)
        for bound in declaration.bounds:
            if bound.name in self.names:
                raise DslSyntaxError.at(f"the index `{bound.name}` has the name of something else", bound.span)
            self.names[bound.name] = StaticType("int", self.typed(bound.value).pack)
        found = self.typed(declaration.default)
        self.names = inner
        fact = f"the constant `{declaration.name}` is {declaration.type.name}, and its value is"
        self._is_type(found, declaration.type.name, fact, declaration.default.span)

    # -- formulas --------------------------------------------------------------------------------------------------

    def _formulas(self, formulas: Sequence[syntax.Formula]) -> None:
        outputs = {each.name: each for each in self.operator.outputs}
        for each in self.operator.outputs:
            self.names[each.name] = StaticType(self._base(each.type), each.type.pack is not None, True)
        written: dict[str, list[syntax.Formula]] = {name: [] for name in outputs}
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
            self._reads_values(formula, {each for each, found in written.items() if not found or found == [formula]})
            self._formula(formula)
        for name, found in written.items():
            if not found:
                raise DslSyntaxError.at(f"the output `{name}` has no formula", outputs[name].span)

    def _reads_values(self, formula: syntax.Formula, unwritten: set[str]) -> None:
        parts = [formula.value, *(each.value for each in formula.locals), *filter(None, (formula.condition,))]
        for node in (each for part in parts for each in walk(part)):
            if isinstance(node, syntax.Access) and node.name in unwritten:
                hint = f"write `{node.name}[...] = ...` in front of it"
                raise DslSyntaxError.at(f"`{node.name}` is read, and has no values yet", node.span, hint)

    def _formula(self, formula: syntax.Formula) -> None:
        outer, self.in_formula = dict(self.names), True
        try:
            bounds = [*((formula.unrolled,) if formula.unrolled is not None else ()), *formula.bounds]
            seen: set[str] = set()
            for bound in bounds:
                if bound.name in seen:
                    raise DslSyntaxError.at(f"the index `{bound.name}` has two bounds", bound.span)
                if bound.name in outer:
                    raise DslSyntaxError.at(f"the index `{bound.name}` has the name of something else", bound.span)
                seen.add(bound.name)
                self.names[bound.name] = StaticType("int")
            for bound in bounds:
                found = self.typed(bound.value)
                if found.type and found.type != "int":
                    raise DtypeError.at(f"the bound of `{bound.name}` is {found.type}, not int", bound.span)
                self.names[bound.name] = StaticType("int", found.pack)
            for local in formula.locals:
                if local.name in self.names:
                    raise DslSyntaxError.at(
                        f"`{local.name}` has two meanings", local.span, "give the value another name"
                    )
                self.names[local.name] = self.typed(local.value)
            self.typed(formula.target)
            value = self.typed(formula.value)
            wanted, hint = self.names[formula.target.name].type, "`real(x)` and `int(x)` convert"
            fact = f"`{formula.target.name}` is {wanted}, and its value is"
            self._is_type(value, wanted, fact, formula.value.span, hint)
            if formula.condition is not None:
                test = self.typed(formula.condition)
                if test.type and test.type != "bool":
                    raise DtypeError.at(f"a condition of type {test.type}, not bool", formula.condition.span)
        finally:
            self.names, self.in_formula = outer, False

    # -- compositions ----------------------------------------------------------------------------------------------

    def _composition(self, operator: syntax.Operator) -> None:
        known = dict(self.names)
        outputs = {each.name for each in operator.outputs}
        for each in operator.composition or ():
            self._operation(each.operation)
            for target in each.targets:
                self._target(target, {given.name for given in operator.inputs})
        for output in operator.outputs:
            if output.name not in self.names:
                raise DslSyntaxError.at(f"the output `{output.name}` is never assigned", output.span)
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

    def _target(self, target: syntax.Target, inputs: set[str]) -> None:
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

    def _bind(self, target: syntax.Target) -> None:
        if target.length is not None:
            self.typed(target.length)
        if target.name is not None:
            self.names[target.name] = StaticType("", target.length is not None or None, True)

    def _operation(self, node: syntax.Operation) -> None:
        match node:
            case syntax.Invocation():
                self._invocation(node)
            case syntax.Block():
                self._inner(node)
            case syntax.Branch():
                for condition, chosen in node.arms:
                    self._operation(condition)
                    self._operation(chosen)
                self._operation(node.other)
            case syntax.Loop():
                self._loop(node)
            case _:
                self.typed(node)

    def _inner(self, block: syntax.Block) -> None:
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

    def _loop(self, node: syntax.Loop) -> None:
        outer = dict(self.names)
        for each in node.carried:
            assert each.default is not None
            self.typed(each.default)
        for _, pack in node.scanned:
            self.typed(pack)
        if node.count is not None:
            self.typed(node.count)
        for each in node.carried:
            self.names[each.name] = StaticType("", None, True)
        if node.condition is not None and node.tested_first:
            self._operation(node.condition)
        for name, _ in node.scanned:
            self.names[name.name] = StaticType("", None, True)
        if node.index is not None:
            self.names[node.index.name] = StaticType("int", False)
        self._operation(node.body)
        if node.condition is not None and not node.tested_first:
            self._operation(node.condition)
        self.names = outer

    def _invocation(self, node: syntax.Invocation) -> None:
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
            if known[each.name].type.name in CONCRETE:
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
            fact = f"the input `{declared.name}` of `{node.operator}` is {declared.type.name}, not"
            self._is_type(found, declared.type.name, fact, argument.span, "convert it: `layout.cast`")
