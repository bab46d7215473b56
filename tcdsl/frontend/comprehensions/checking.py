"""What must hold of a source before it is staged: names, types, ranks, operators, calls. All faults are found together.

A result has the type that holds all values that its statements give it, unless its type is declared; types and ranks of
all tensors are therefore known here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from tcdsl.errors import Diagnostic, DslSyntaxError, DtypeError, ShapeError, TcdslError, raise_diagnostics
from tcdsl.frontend.comprehensions.builtins import BUILTINS
from tcdsl.frontend.comprehensions.checked import Checked, CheckedCall, CheckedStatement, TensorType
from tcdsl.frontend.comprehensions.expression_types import ExpressionTypes, size_faults
from tcdsl.frontend.comprehensions.text.element_types import fits, joined
from tcdsl.frontend.comprehensions.text.syntax import (
    Call,
    Definition,
    DefinitionCall,
    ElementType,
    Exists,
    LocalDefinition,
    Name,
    Range,
    Source,
    Statement,
)
from tcdsl.frontend.words.nodes import walk
from tcdsl.ir.dtypes import is_boolean
from tcdsl.span import Span

__all__ = ["checked_source"]

_ACCUMULATORS = {"=": "assign", "+": "add", "*": "multiply", "min": "min", "max": "max"}
_MOST_AXES = 32
_MOST_STATEMENTS = 1000
_MOST_TENSORS = 200
_MOST_VARIABLES = 32
_MOST_CLAUSES = 100


def checked_source(source: Source) -> dict[str, Checked]:
    """All definitions by name, callees before those that call them. Raises all faults together."""
    return _Sources(source).check()


class _Sources:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.definitions: dict[str, Definition] = {}
        self.checked: dict[str, Checked | None] = {}
        self.sizes: dict[str, int] = {}
        self.faults: list[Diagnostic] = []
        self.waiting: list[str] = []

    def fault(self, fact: str, span: Span | None, hint: str = "", kind: type[TcdslError] = DslSyntaxError) -> None:
        self.faults.append(Diagnostic(kind, fact, span, (), hint))

    def check(self) -> dict[str, Checked]:
        for definition in self.source.definitions:
            name = definition.name
            if name.name in self.definitions:
                self.fault(f"`{name.name}` is defined twice", name.span, "give each definition a name of its own")
            elif name.name in BUILTINS:
                self.fault(f"`{name.name}` is a built-in function", name.span, "use another name")
            else:
                self.definitions[name.name] = definition
        for each in self.definitions:
            self.definition(each)
        raise_diagnostics(self.faults)
        return dict(self.checked)  # type: ignore[arg-type]  # None is a fault

    def definition(self, name: str) -> Checked | None:
        """The definition called ``name``; None if it has faults."""
        if name not in self.checked:
            self.waiting.append(name)
            before = len(self.faults)
            found = _Definition(self, self.definitions[name]).check()
            self.checked[name] = found if len(self.faults) == before else None
            self.waiting.pop()
        return self.checked[name]


@dataclass(slots=True)
class _Pass:
    """What a pass over the statements has found so far."""

    tensors: dict[str, TensorType]
    written: dict[str, Name] = field(default_factory=dict)
    continued: list[str] = field(default_factory=list)
    warnings: list[Statement | DefinitionCall] = field(default_factory=list)
    statements: list[CheckedStatement | CheckedCall] = field(default_factory=list)


class _Definition:
    def __init__(self, sources: _Sources, definition: Definition) -> None:
        self.sources = sources
        self.definition = definition
        self.inputs: dict[str, TensorType] = {}
        self.sizes: dict[str, Name] = {}
        self.results: dict[str, ElementType | None] = {}
        #: The types of results that a pass has found, which the next one begins with.
        self.found: dict[str, TensorType] = {}

    @property
    def faults(self) -> list[Diagnostic]:
        return self.sources.faults

    def check(self) -> Checked | None:
        before = len(self.faults)
        self.sizes_of_lists()
        if len(self.faults) == before:
            self.declarations()
        if len(self.faults) > before:
            return None
        begin = len(self.faults)
        while True:
            done = _Pass(dict(self.inputs))
            for statement in self.definition.statements:
                self.statement(statement, done)
            found = {name: done.tensors[name] for name in self.results if name in done.tensors}
            if found == self.found or len(self.faults) > begin:
                break
            self.found = found
        for name in self.results:
            if name not in done.written and len(self.faults) == begin:
                span = next(each.name.span for each in self.definition.results if each.name.name == name)
                self.sources.fault(f"no statement writes the result `{name}`", span, f"write `{name}(i) = ...`")
        tensors = {**self.inputs, **found}
        count = sum(each.callee.count if isinstance(each, CheckedCall) else 1 for each in done.statements)
        if count > _MOST_STATEMENTS:
            fact = f"`{self.definition.name.name}` has {count} statements with those of the definitions that it calls"
            self.sources.fault(fact, self.definition.name.span, f"{_MOST_STATEMENTS} are the most")
        return Checked(
            self.definition, tensors, tuple(done.statements), tuple(done.continued), tuple(done.warnings), count
        )

    def sizes_of_lists(self) -> None:
        given = self.definition
        for kind, parts, most in (
            ("parameters", given.parameters, _MOST_TENSORS),
            ("results", given.results, _MOST_TENSORS),
            ("statements", given.statements, _MOST_STATEMENTS),
        ):
            if len(parts) > most:
                fact = f"`{given.name.name}` has {len(parts)} {kind}, and {most} are the most"
                self.sources.fault(fact, parts[most].span, "define its parts one by one")

    # -- declarations ----------------------------------------------------------------------------------------

    def declarations(self) -> None:
        for parameter in self.definition.parameters:
            self.declare(parameter.name)
            self.inputs[parameter.name.name] = TensorType(parameter.type.dtype, len(parameter.type.sizes))
            self.axes(parameter.type, True)
        for result in self.definition.results:
            self.declare(result.name)
            self.results[result.name.name] = result.type
            if result.type is not None:
                self.axes(result.type, False)
        tensors = (*self.inputs, *self.results)
        for name, size in self.sizes.items():
            if name in tensors:
                self.sources.fault(f"`{name}` is a size and a tensor", size.span, "give one of them another name")
            elif name in BUILTINS:
                self.sources.fault(f"`{name}` is a built-in function", size.span, "give the size another name")

    def declare(self, name: Name) -> None:
        if name.name in self.inputs or name.name in self.results:
            self.sources.fault(f"`{name.name}` is declared twice", name.span, "give each tensor a name of its own")
        elif name.name in BUILTINS:
            self.sources.fault(f"`{name.name}` is a built-in function", name.span, "use another name")
        elif name.name == self.definition.name.name:
            self.sources.fault(f"`{name.name}` is the definition itself", name.span, "use another name")

    def axes(self, given: ElementType, binds: bool) -> None:
        if len(given.sizes) > _MOST_AXES:
            self.sources.fault(f"{len(given.sizes)} axes, and {_MOST_AXES} are the most", given.span, "", ShapeError)
        for size in given.sizes:
            if isinstance(size, Name):
                if binds:
                    self.sizes.setdefault(size.name, size)
                elif size.name not in self.sizes:
                    fact = f"the size `{size.name}` of a result is that of no parameter"
                    self.sources.fault(fact, size.span, "leave the sizes of results out: they are inferred", ShapeError)

    # -- statements ------------------------------------------------------------------------------------------

    def statement(self, statement: Statement | DefinitionCall, done: _Pass) -> None:
        if isinstance(statement, Statement):
            call = self.as_call(statement, done)
            if call is None:
                self.ordinary(statement, done)
                return
            statement = call
        self.call(statement, done)

    def as_call(self, statement: Statement, done: _Pass) -> DefinitionCall | None:
        # `t = f(a)` looks like a statement of rank 0.
        value = statement.value
        if not isinstance(value, Call) or value.name.name not in self.sources.definitions:
            return None
        known = value.name.name in done.tensors or value.name.name in self.results
        if known or not statement.target.bare:
            return None
        if statement.operator != "=" or statement.clauses or statement.annotation:
            hint = f"write `{statement.target.name.name} = {value.name.name}(...)` alone"
            self.sources.fault("a call of a definition is a statement of its own", statement.span, hint)
        arguments = [argument for argument in value.arguments if isinstance(argument, Name)]
        for argument in value.arguments:
            if not isinstance(argument, Name):
                fact = "an argument of a definition that is no tensor"
                self.sources.fault(fact, argument.span, "compute it by a statement, and pass the name of the result")
                return DefinitionCall((statement.target.name,), value.name, (), statement.span)
        return DefinitionCall((statement.target.name,), value.name, tuple(arguments), statement.span)

    def call(self, call: DefinitionCall, done: _Pass) -> None:
        name = call.function.name
        if name not in self.sources.definitions:
            self.sources.fault(f"`{name}` is no definition of this source", call.function.span)
            return
        if name in self.sources.waiting:
            circle = [*self.sources.waiting[self.sources.waiting.index(name) :], name]
            fact = f"the definition calls itself: {' calls '.join(f'`{each}`' for each in circle)}"
            self.sources.fault(fact, call.span, "definitions cannot be recursive")
            return
        callee = self.sources.definition(name)
        if callee is None:
            return
        self.call_types(call, callee, done)
        for target in call.targets:
            if self.target(target, done):
                done.written.setdefault(target.name, target)
        for target, result in zip(call.targets, callee.definition.results, strict=False):
            if target.name in self.results:
                self.result_type(target, callee.tensors[result.name.name], done)
        done.statements.append(CheckedCall(call.targets, callee, call.arguments, call.span))

    def call_types(self, call: DefinitionCall, callee: Checked, done: _Pass) -> None:
        parameters, results = callee.definition.parameters, callee.definition.results
        if len(call.arguments) != len(parameters):
            fact = f"`{callee.name}` takes {len(parameters)} arguments, not {len(call.arguments)}"
            self.sources.fault(fact, call.span)
            return
        if len(call.targets) != len(results):
            fact = f"`{callee.name}` has {len(results)} results, not {len(call.targets)}"
            self.sources.fault(fact, call.span)
            return
        if len({target.name for target in call.targets}) < len(call.targets):
            self.sources.fault("a target twice", call.span, "give each result a target of its own")
        for argument, parameter in zip(call.arguments, parameters, strict=True):
            wanted = callee.tensors[parameter.name.name]
            if argument.name not in done.tensors or argument.name not in (*self.inputs, *done.written):
                fact = f"`{argument.name}` is no tensor that has been written"
                self.sources.fault(fact, argument.span, "arguments of definitions are tensors")
            elif done.tensors[argument.name] != wanted:
                given = done.tensors[argument.name]
                fact = f"`{argument.name}` is {given}, and `{parameter.name.name}` of `{callee.name}` is {wanted}"
                kind = DtypeError if given.rank == wanted.rank else ShapeError
                self.sources.fault(
                    fact, argument.span, "types and ranks of arguments are those of the parameters", kind
                )

    def ordinary(self, statement: Statement, done: _Pass) -> None:
        target = statement.target
        begins = target.name.name not in done.written
        if not self.target(target.name, done):
            return
        known = {name: each for name, each in done.tensors.items() if name in self.inputs or name in done.written}
        unwritten = [name for name in self.results if name not in known]
        types = ExpressionTypes(self.sizes, known, unwritten, self.sources.definitions, self.faults)
        if len(statement.clauses) > _MOST_CLAUSES:
            fact = f"{len(statement.clauses)} clauses behind `where`, and {_MOST_CLAUSES} are the most"
            self.sources.fault(fact, statement.span, "write parts of the value as statements")
            return
        for index in target.indices:
            self.index(index, known, types)
        local = [clause for clause in statement.clauses if isinstance(clause, LocalDefinition)]
        for position, clause in enumerate(local):
            self.local(clause, {each.name.name for each in local[position:]}, types)
        dtype = types.of(statement.value)
        exists = tuple(clause.value for clause in statement.clauses if isinstance(clause, Exists))
        for expression in exists:
            types.of(expression)
        ranges = self.ranges(statement, known, types)
        variables = tuple(types.variables)
        if len(variables) > _MOST_VARIABLES:
            fact = f"{len(variables)} index variables, and {_MOST_VARIABLES} are the most"
            self.sources.fault(fact, statement.span, "write parts of the value as statements")
            return
        reduced = [name for name in variables if name not in {index.name for index in target.indices}]
        operator = statement.operator.rstrip("!") if statement.operator == "=" else statement.operator.rstrip("=!")
        if operator == "=" and reduced:
            listed = ", ".join(f"`{name}`" for name in reduced)
            plural = "index" if len(reduced) == 1 else "indices"
            fact = f"the {plural} {listed} of the value {_are(reduced)} not on the target"
            place = types.variables[reduced[0]].span
            self.sources.fault(fact, place, "a reduction has an operator: `+=!`, `*=!`, `min=!` or `max=!`")
        if dtype is None:
            return
        if operator in ("+", "*") and is_boolean(dtype):
            dtype = "int32"
        self.result_type(target.name, TensorType(dtype, len(target.indices)), done)
        accumulate = _ACCUMULATORS[operator]
        resets = statement.operator.endswith("!")
        if resets and not reduced:
            accumulate, resets = "assign", False  # one value for each cell
        if begins and accumulate != "assign" and not resets:
            done.continued.append(target.name.name)
            done.warnings.append(statement)
        done.written.setdefault(target.name.name, target.name)
        done.statements.append(
            CheckedStatement(statement, accumulate, resets, begins, variables, ranges, dict(types.definitions), exists)
        )

    def target(self, name: Name, done: _Pass) -> bool:
        if name.name in self.results:
            return True
        if name.name in self.inputs:
            self.sources.fault(f"`{name.name}` is an input, which nothing writes", name.span, "write to a result")
        else:
            hint = f"add `{name.name}` to the results, `-> (..., {name.name})`"
            self.sources.fault(f"`{name.name}` is no result of `{self.definition.name.name}`", name.span, hint)
        return False

    def index(self, index: Name, known: Mapping[str, TensorType], types: ExpressionTypes) -> None:
        if index.name in types.variables:
            self.sources.fault(f"the index `{index.name}` stands twice on the target", index.span, "use two indices")
        elif index.name in self.sizes or index.name in self.inputs or index.name in self.results:
            kind = "size" if index.name in self.sizes else "tensor"
            fact = f"`{index.name}` is a {kind}, and a target has index variables alone"
            self.sources.fault(fact, index.span, "use another name")
        types.variables[index.name] = index

    def local(self, clause: LocalDefinition, later: Collection[str], types: ExpressionTypes) -> None:
        name = clause.name.name
        for node in walk(clause.value):
            if isinstance(node, Name) and node.name in later and node.name not in types.definitions:
                fact = f"`{node.name}` is used before its definition"
                self.sources.fault(fact, node.span, "definitions mention those before them")
                return
        if name in types.definitions:
            self.sources.fault(f"`{name}` is defined twice in this statement", clause.name.span, "use another name")
        elif name in self.sizes or name in self.inputs or name in self.results or name in types.variables:
            kind = (
                "a size" if name in self.sizes else "an index of the target" if name in types.variables else "a tensor"
            )
            self.sources.fault(f"`{name}` is {kind} already", clause.name.span, "use another name")
        else:
            types.define(clause)

    def ranges(self, statement: Statement, known: Mapping[str, TensorType], types: ExpressionTypes) -> dict[str, Range]:
        found: dict[str, Range] = {}
        tensors = (*self.inputs, *self.results)
        for clause in statement.clauses:
            if not isinstance(clause, Range):
                continue
            name = clause.variable.name
            if name in found:
                self.sources.fault(f"`{name}` has two ranges", clause.span, "give one range for each index")
            elif name in self.sizes or name in tensors or name in types.definitions:
                kind = "size" if name in self.sizes else "tensor" if name in tensors else "local definition"
                fact = f"the range of `{name}`, which is a {kind}"
                self.sources.fault(fact, clause.variable.span, "indices have ranges")
            elif name not in types.variables:
                fact = f"`{name}` is no index of the statement"
                self.sources.fault(fact, clause.variable.span, f"use `{name}` in the value, or drop its range")
            found[name] = clause
            for end in (clause.low, clause.high):
                if size_faults(end, self.sizes, tensors, self.faults):
                    bounds = ExpressionTypes(self.sizes, known, types.unwritten, (), self.faults)
                    if bounds.of(end) == "bool":
                        self.sources.fault("a bound of a range that is a truth value", end.span)
        return found

    def result_type(self, name: Name, given: TensorType, done: _Pass) -> None:
        declared = self.results[name.name]
        known = done.tensors.get(name.name) or self.found.get(name.name)
        dtype = given.dtype
        if declared is not None:
            if not fits(dtype, declared.dtype):
                self.sources.fault(
                    f"`{name.name}` is declared as {declared.dtype}, and is given {dtype}",
                    name.span,
                    f"narrowing takes a cast: `{_written(declared.dtype)}(...)` around the value",
                    DtypeError,
                )
            dtype = declared.dtype
            if declared.sizes and len(declared.sizes) != given.rank:
                fact = f"`{name.name}` is declared with rank {len(declared.sizes)}, and written with rank {given.rank}"
                self.sources.fault(fact, name.span, "give one index per axis", ShapeError)
        elif known is not None:
            dtype = joined(known.dtype, dtype)
        if known is not None and known.rank != given.rank:
            fact = f"`{name.name}` has rank {known.rank}, and is written with rank {given.rank} here"
            self.sources.fault(fact, name.span, "a result has one rank", ShapeError)
        done.tensors[name.name] = TensorType(dtype, given.rank if known is None else known.rank)


def _are(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _written(dtype: str) -> str:
    return {"float32": "float", "float64": "double"}.get(dtype, dtype)
