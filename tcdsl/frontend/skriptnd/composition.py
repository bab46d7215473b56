"""Graphs and composed operators: invocations become bindings, formulas and other compositions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any

from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError
from tcdsl.frontend.skriptnd.binding import Binding, taken_apart
from tcdsl.frontend.skriptnd.evaluation import ExpressionEvaluator, Scope
from tcdsl.frontend.skriptnd.formulas import FormulaRecording, declared_constant
from tcdsl.frontend.skriptnd.loops import BranchArms, LoopRounds
from tcdsl.frontend.skriptnd.quantization import QUANTIZING, Quantizer, StraightArithmetic, straight_through
from tcdsl.frontend.skriptnd.random_numbers import UNIFORM, drawn
from tcdsl.frontend.skriptnd.tensor_recording import TOO_MANY_ROUNDS, TensorRecording, declared_tensors
from tcdsl.frontend.skriptnd.text import syntax
from tcdsl.frontend.skriptnd.values import (
    CONCRETE,
    UNKNOWN,
    Pack,
    ScalarValue,
    TensorValue,
    Unknown,
    content_of,
    copied,
    flat,
    is_pack,
    shown,
    type_of,
)
from tcdsl.ir.expressions import Read
from tcdsl.span import Span

__all__ = ["ComposedBlock", "Composer", "Library", "Variables", "looked_at_variable"]

MOST_OPERATIONS = 100_000

#: ``find(module, name, span)`` gives the operator that ``name`` is in a module, and the module where it stands; None if
#: there is none. ``span`` is where it is called.
Library = Callable[[str, str, "Span | None"], "tuple[syntax.Operator, str] | None"]
#: ``variables(label, type, shape, span)`` gives the tensor of a variable.
Variables = Callable[[str, str, Pack, "Span | None"], TensorValue]


def looked_at_variable(label: str, kind: str, shape: Pack, span: Span | None) -> TensorValue:
    """A variable as one that is only looked at."""
    return TensorValue(label, kind, shape)


@dataclass(slots=True)
class Composer(TensorRecording):
    """What a graph is composed with: ``Composer(arithmetic, session, find, variables)``.

    Without a session nothing is recorded: shapes and types are found, and all faults.
    """

    find: Library
    variables: Variables
    operations: int = 0
    #: Whether tensors are quantized as `@quantize` says; without a session that is looked at anyway.
    quantized: bool = False
    #: What variables hold after a call, by label.
    updates: dict[str, Any] = field(default_factory=dict)
    #: What quantizes tensors, by their labels, and the labels of tensors that may be quantized.
    _quantizers: dict[str, Quantizer] = field(default_factory=dict)
    _labels: set[str] = field(default_factory=set)
    #: What calls gave that were looked at, and how many operators they called: equal ones are looked at once.
    _seen: dict[Any, tuple[list[Any], int]] = field(default_factory=dict)
    #: The calls without a label around what is composed, behind the graph that is called, if that is one of them.
    unlabelled: tuple[syntax.Invocation | syntax.Operator, ...] = ()
    #: How many variables there were, and the calls without a label around each, by its label.
    _variables: int = 0
    _owners: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def evaluator(self) -> ExpressionEvaluator:
        """One with an empty scope."""
        return ExpressionEvaluator(self.arithmetic, Scope(), position=lambda *at: self.checked_position(*at[:3]))

    def operator(
        self,
        operator: syntax.Operator,
        module: str,
        types: Sequence[str],
        attributes: Mapping[str, Any],
        inputs: Sequence[Any],
        label: str,
        span: Span | None,
        name: str = "",
    ) -> list[Any]:
        """The outputs of an operator: tensors, packs of them."""
        key = None
        if self.session is None:  # what a call that is only looked at depends on
            key = (id(operator), module, tuple(types), *map(content_of, (*attributes.items(), *inputs)))
        found, calls = self._seen.get(key, (None, 1))
        self.operations += calls
        name = name or operator.name
        if self.operations > MOST_OPERATIONS:
            raise ShapeError.at(f"the graph has more than {MOST_OPERATIONS} operations", span)
        if found is not None:
            return [*map(copied, found)]
        operations, variables = self.operations - 1, self._variables
        evaluator = self.evaluator()
        Binding(operator, evaluator, name, span, self).run(types, attributes, inputs)
        names = evaluator.scope.names
        # The only component of an operator has its label.
        own = operator.graph or operator.variables or operator.constants or len(operator.composition or ()) != 1
        is_open = operator.graph or operator.public or bool(operator.quantizations)
        region = ComposedBlock(self, module, evaluator, label, not own, is_open)
        quantizers = self._quantizers_of(operator, region)
        for each in operator.inputs:
            given = self.recorded(names[each.name], each.name)
            names[each.name] = self.named(label, each.name, given, region.open)
        for each in operator.constants:
            names[each.name] = self.named(label, each.name, declared_constant(self, each, evaluator))
        for each in operator.variables:
            names[each.name] = self.named(label, each.name, self._variable(each, evaluator, label))
        found = self._outputs(operator, region, name)
        for quantizer in quantizers:
            quantizer.require_use(self._labels)
        if key is not None and self._variables == variables and not self._quantizers:
            self._seen[key] = found, self.operations - operations
        if module != QUANTIZING or self.session is None or isinstance(self.arithmetic, StraightArithmetic):
            return found
        smooth = self.straight().operator(operator, module, types, attributes, inputs, label, span, name)
        return [straight_through(self, *pair) for pair in zip(found, smooth, strict=True)]

    @property
    def quantizations(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """What quantizes tensors, by their labels: the operator, and its attributes."""
        return {label: (each.node.call.operator, each.attributes) for label, each in self._quantizers.items()}

    def _quantizers_of(self, operator: syntax.Operator, region: ComposedBlock) -> list[Quantizer]:
        if not self.quantized and self.session is not None:
            return []
        found = []
        for each in operator.quantizations:
            # Files of Khronos' tools begin with the module and the graph.
            own = each.tensor.removeprefix(f"main.{operator.name}.") if operator.graph else each.tensor
            label = _labelled(region.label, own)
            if label in self._quantizers and self._quantizers[label].node is not each:
                raise DslSyntaxError.at(f"`{each.tensor}` is quantized twice", each.span)
            attributes = {given.name: region.value(given.value) for given in each.call.attributes}
            self._quantizers[label] = Quantizer(label, each, attributes, region)
            found.append(self._quantizers[label])
        return found

    def named(self, label: str, name: str, value: Any, visible: bool = True) -> Any:
        """A tensor that gets a name: quantized, where `@quantize` says so."""
        if not self._quantizers or not visible:
            return value
        full = _labelled(label, name)
        self._labels.add(full)
        quantizer = self._quantizers.get(full)
        return value if quantizer is None else quantizer.applied(value, self)

    def _outputs(self, operator: syntax.Operator, region: ComposedBlock, name: str) -> list[Any]:
        evaluator, label = region.evaluator, region.label
        for each in operator.outputs:
            self._data_extents(each, evaluator, "" if operator.composition is None else UNKNOWN)
        declared = [declared_tensors(each, evaluator, f"the output `{each.name}`") for each in operator.outputs]
        if operator.composition is not None:
            region.run(operator.composition)
            found = []
            for each, wanted in zip(operator.outputs, declared, strict=True):
                made = self.recorded(evaluator.scope.names[each.name], each.name)
                found.append(self._output(each, made, wanted, evaluator))
            region.run(operator.updates, [each.name for each in operator.variables])
            return found
        names = evaluator.scope.names
        if operator.formulas is None:
            if f"{region.module}.{operator.name}" != UNIFORM:
                raise DslSyntaxError.at(f"`{name}` has no formula, and is not known here", operator.name_span)
            return declared if self.session is None else [drawn(self, declared[0], names["min"], names["max"])]
        for each, wanted in zip(operator.outputs, declared, strict=True):
            if wanted is None:
                raise ShapeError.at(f"the shape of the output `{each.name}` is open", each.span)
            names[each.name] = wanted
        recording = FormulaRecording(evaluator, self, label.rpartition(".")[2])
        for formula in operator.formulas:
            with nullcontext() if self.session is None else self.session.located(formula.span):
                recording.run(formula)
        outputs = ((each.name, self.written(names[each.name])) for each in operator.outputs)
        return [self.named(label, own, made, region.open) for own, made in outputs]

    def _data_extents(self, declaration: syntax.Declaration, evaluator: ExpressionEvaluator, before: str) -> None:
        # `k|10`: an extent that only data says, at most 10. A formula counts it, or what is assigned says it.
        for extent in declaration.type.shape or ():
            node, bound = extent.value, extent.bound
            if isinstance(node, syntax.Identifier) and bound is not None and not evaluator.scope.knows(node.name):
                unknown = Read(f"{before}{node.name}", (), (), self.arithmetic.integer)
                evaluator.scope.names[node.name] = ScalarValue(unknown, "int", bound=evaluator.value(bound))

    def _output(self, declaration: syntax.Declaration, made: Any, wanted: Any, evaluator: ExpressionEvaluator) -> Any:
        what, given, place = f"the output `{declaration.name}`", declaration.type, declaration.span
        if isinstance(made, Pack) != (given.pack is not None):
            raise ShapeError.at(f"{what} is {'a pack' if isinstance(made, Pack) else 'no pack'}", place)
        if isinstance(made, Pack) and wanted is not None and len(made) != len(wanted):
            raise ShapeError.at(f"{what} has {len(wanted)} tensors, and {len(made)} are assigned", place)
        shapes = repeat(None) if wanted is None else (each.shape for each in flat((wanted,)))
        pairs = enumerate(zip(flat((made,)), shapes, strict=False))
        found = [self.fitted(what, given, *pair, evaluator, place, k) for k, pair in pairs]
        if given.pack is None:
            return found[0]
        # What is declared without a bound has all tensors, also those behind the last round.
        return Pack.of(found, None, made.length if wanted is None or given.pack.bound is not None else None)

    def quiet(self, variables: Callable[..., Any] = looked_at_variable) -> Composer:
        """The same without a program; ``variables`` gives the variables."""
        own: dict[str, Any] = {"updates": {}, "_owners": {}}
        return replace(self, session=None, variables=variables, unlabelled=(), _variables=0, **own)

    def straight(self) -> Composer:
        """The same in the arithmetic through which derivatives pass straight."""
        real, known = self.arithmetic.real, self.arithmetic
        arithmetic = StraightArithmetic(real, real, known.decisions, known.rounds)
        return Composer(arithmetic, self.session, self.find, self.variables)

    def _variable(self, declaration: syntax.Declaration, evaluator: ExpressionEvaluator, label: str) -> Any:
        what, full, span = f"the variable `{declaration.name}`", _labelled(label, declaration.name), declaration.span
        packed, found = declaration.type.pack is not None, []
        self._variables += 1
        calls = tuple(map(id, self.unlabelled))
        if self._owners.setdefault(full, calls) != calls:
            call = self.unlabelled[-1] if calls else declaration
            hint = "give the calls labels: `a, b = first: f(x)`"
            raise DslSyntaxError.at(f"two calls have the variable `{full}`", call.span, hint)
        for k, each in enumerate(flat((declared_tensors(declaration, evaluator, what),)), 1):
            if each is None or not all(type(extent) is int for extent in each.shape):
                hint = "its extents have to be known while the graph is composed: declare them as `static`"
                raise ShapeError.at(f"the shape of {what} depends on the call", span, hint)
            found.append(self.variables(f"{full}.{k}" if packed else full, each.type, each.shape, span))
            found[-1].used = packed  # others are where something asks for them
        return Pack.of(found) if packed else found[0]


def _labelled(label: str, name: str) -> str:
    # The label of what has a name in a part with a label.
    return f"{label}.{name}" if label and name else label or name


@dataclass(slots=True)
class ComposedBlock:
    """The assignments of a composition, in a scope; ``label`` is the prefix of labels in it.

    ``passes`` says that the only component has the label of the whole, ``open`` that results have labels, too.
    """

    composition: Composer
    module: str
    evaluator: ExpressionEvaluator
    label: str
    passes: bool = False
    open: bool = False

    def run(self, assignments: Sequence[syntax.Assignment], variables: Collection[str] = ()) -> None:
        """Compose all assignments, in order; results that have the names of ``variables`` are what these become."""
        for each in assignments:
            targets, results = each.targets, self.operation(each.operation, each.targets[0].label(len(each.targets)))
            if len(results) != len(targets):
                fact = f"{len(results)} results are assigned to {len(targets)}"
                raise DslSyntaxError.at(fact, each.span, "`~` stands for a result that is not wanted")
            for target, result in zip(targets, results, strict=True):
                if target.name in variables:
                    self.changed(target, result)
                else:
                    self.assign_one(target, result)

    def changed(self, target: syntax.Target, result: Any) -> None:
        """Note what a variable becomes; until the end of the call it is what it was."""
        name = target.name or ""
        variable = self.evaluator.scope.names[name]
        if result is variable:
            return
        made, label = self.composition.recorded(result, name), _labelled(self.label, name)
        self.agreed([made], [variable], target.span)
        if label in self.composition.updates:
            raise DslSyntaxError.at(f"the variable `{label}` is updated twice", target.span)
        self.composition.updates[label] = made

    def _full_label(self, given: str, own: str) -> str:
        return _labelled(self.label, given or ("" if self.passes else own))

    def operation(self, node: syntax.Operation, own: str) -> list[Any]:
        """The results of what stands on the right of an assignment."""
        match node:
            case syntax.Invocation():
                return self._invocation(node, own)
            case syntax.Block():
                inner = self.inner({}, self._full_label(node.label, own))
                inner.run(node.assignments)
                return [inner.value(each) for each in node.results]
            case syntax.Branch():
                return BranchArms(self, node, own).results()
            case syntax.Loop():
                return self._loop(node, own)
        return [self.value(node)]

    def value(self, node: Any) -> Any:
        """An expression of tensors and of what is known while the graph is composed."""
        return self.evaluator.value(node)

    def _invocation(self, node: syntax.Invocation, own: str) -> list[Any]:
        name = node.operator
        found = self.composition.find(self.module, name, node.name_span)
        if found is None:
            # A function of numbers, `real(n)`; other names are no operators, which is looked for before.
            return [self.value(syntax.Call(name, node.arguments[0], span=node.span))]
        operator, home = found
        attributes = {each.name: self.value(each.value) for each in node.attributes}
        inputs = [None if each is None else self._argument(each) for each in node.arguments]
        inputs += [None] * (len(operator.inputs) - len(inputs))
        generics = tuple(self.evaluator.scope.generic(each) or each for each in node.types)
        label, around = self._full_label(node.label, own), self.composition.unlabelled
        if operator.graph and not node.label:
            # A graph has names of its own, which all of its calls share.
            label, self.composition.unlabelled = operator.name, (operator,)
        elif not (node.label or own or self.passes):
            self.composition.unlabelled = (*around, node)
        try:
            return self.composition.operator(operator, home, generics, attributes, inputs, label, node.span, name)
        finally:
            self.composition.unlabelled = around

    def _argument(self, node: Any) -> Any:
        value = self.value(node)
        if isinstance(value, str):
            raise DtypeError.at("a text as an input", node.span, "texts are attributes")
        return self.composition.recorded(value, "constant")

    def test(self, condition: syntax.Operation) -> Any:
        """A condition: a bool where it is known, else a tensor of rank 0."""
        results = self.operation(condition, "")
        if len(results) != 1:
            raise DslSyntaxError.at(f"a condition has {len(results)} results", condition.span)
        test = results[0]
        known = getattr(test, "constant", test)
        if isinstance(known, bool):
            return known
        unknown = isinstance(test, Unknown) and test.type not in CONCRETE
        if (type_of(test) != "bool" and not unknown) or is_pack(test):
            raise DtypeError.at(f"a condition of type {type_of(test) or 'null'}", condition.span, "it is one bool")
        if isinstance(test, Unknown):
            return test
        made = self.composition.recorded(test, "condition")
        if not all(self.composition.arithmetic.binary("==", each, 1, condition.span) for each in made.shape):
            raise ShapeError.at(f"a condition of shape {shown(made.shape)}", condition.span, "a condition is one cell")
        return self.composition.scalar(made)

    def agreed(self, left: Sequence[Any], right: Sequence[Any], span: Span | None) -> list[Any]:
        """What both arms, or a loop and its start, have in common."""
        if len(left) != len(right):
            raise DslSyntaxError.at(f"{len(left)} results in one place, and {len(right)} in another", span)
        for first, second in zip(left, right, strict=True):
            packs = isinstance(first, Pack) and isinstance(second, Pack) and len(first) == len(second)
            for a, b in zip(first, second, strict=True) if packs else ((first, second),):
                unknown = isinstance(a, Unknown) or isinstance(b, Unknown)
                if not unknown and (isinstance(a, Pack) or isinstance(b, Pack)):
                    raise ShapeError.at("packs of several lengths", span, "both have the same number of tensors")
                if a is None or b is None:
                    raise DtypeError.at("a result that is null", span)
                kinds = type_of(a), type_of(b)
                if kinds[0] != kinds[1] and (not unknown or all(kinds)):
                    raise DtypeError.at(f"results of type {kinds[0]} and {kinds[1]}", span, "both have one type")
                if not unknown and not self.composition.same_shape(a.shape, b.shape, span):
                    fact = f"results of shape {shown(a.shape)} and {shown(b.shape)}"
                    raise ShapeError.at(fact, span, "both have one shape")
        return list(left)

    def _loop(self, node: syntax.Loop, own: str) -> list[Any]:
        packs = [(name, self.value(pack)) for name, pack in node.scanned]
        for name, pack in packs:
            if not isinstance(pack, Pack):
                raise DtypeError.at(f"`{name.name}` scans what is no pack", name.span)
        lengths = {len(pack) for _, pack in packs}
        if len(lengths) > 1:
            raise ShapeError.at(f"packs of {' and '.join(map(str, sorted(lengths)))} tensors are scanned", node.span)
        length = lengths.pop() if lengths else None
        given = None if node.count is None else self.value(node.count)
        count: Any = next((pack.length for _, pack in packs if pack.length is not None), length)
        count = count if given is None else given
        if isinstance(count, TensorValue) and type(count.constant) is int:
            count = count.constant
        if isinstance(count, ScalarValue) and not self.composition.arithmetic.is_size(count):
            count = self.composition.recorded(count, "count")  # which another loop's rounds say
        if count is not None and type_of(count) != "int":
            raise DtypeError.at(f"the number of rounds is of type {type_of(count)}", node.span)
        if isinstance(count, int) and count < 0:
            raise ShapeError.at(f"a loop of {count} rounds", node.span)
        refutes = not isinstance(count, TensorValue | Unknown) and self.composition.arithmetic.refutes
        if length is not None and refutes and refutes("<=", count, length, node.span):
            raise ShapeError.at(TOO_MANY_ROUNDS.format(length), node.span)
        known = isinstance(count, int) and node.condition is None
        if node.unrolled:
            self.require_unrollable(node, known)
        state = []
        for each in node.carried:
            value = self.composition.recorded(self.value(each.default), each.name)
            state.append(self.composition.declared(each.name, each.type, value, self.evaluator, each.span))
        rounds = LoopRounds(self, node, own, packs, state)
        if known and (node.unrolled or not rounds.are_alike(count)):
            return rounds.unrolled(count)
        return rounds.running(count, length)

    def require_unrollable(self, node: syntax.Loop, known: bool) -> None:
        """Raise if the number of rounds is not known."""
        if not known:
            hint = "write `do`"
            raise DslSyntaxError.at("`unroll` of a loop whose number of rounds only a call knows", node.span, hint)

    def inner(self, names: Mapping[str, Any], label: str | None = None) -> ComposedBlock:
        """A region in this one, with names of its own."""
        scope = Scope(dict(names), outer=self.evaluator.scope)
        own = self.label if label is None else label
        return replace(self, evaluator=self.evaluator.within(scope), label=own, passes=False)

    def assign_one(self, target: syntax.Target, result: Any) -> None:
        """Give a result its name, or its parts theirs."""
        names = self.evaluator.scope.names
        if target.items is not None:
            if is_pack(result) is False:
                raise DtypeError.at("what is no pack is taken apart", target.span)
            for each, part in taken_apart(target, result, self.evaluator):
                self.assign_one(replace(each, pack=None), part)
            return
        if target.name is None:
            return
        if result is None:
            raise DtypeError.at(f"`{target.name}` is null", target.span, "give it another value: `x ?? y`")
        if target.pack is not None and target.pack.length is not None:
            length = self.evaluator.count(target.pack.length, "the length of a pack")
            given = f"a pack of {len(result)}" if isinstance(result, Pack) else "one tensor"
            if given != f"a pack of {length}":
                raise ShapeError.at(f"`{target.name}` has {length} tensors, and {given} is assigned", target.span)
            result = Pack.of(result)
        made = self.composition.recorded(result, target.name)
        if target.type is not None:
            made = self.composition.declared(target.name, target.type, made, self.evaluator, target.span)
        names[target.name] = self.composition.named(self.label, target.name, made, self.open)
