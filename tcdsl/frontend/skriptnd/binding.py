"""What the names of an operator stand for in one invocation.

In this order, which the document prescribes: attributes that are given and constant defaults, inputs in the order in
which their shapes can be bound, the other defaults, lengths of packed attributes, helper symbols, with each assertion
as soon as its names are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

from tcdsl.errors import ConfigurationError, DslSyntaxError, DtypeError, ShapeError, TcdslError
from tcdsl.frontend.skriptnd.evaluation import MOST_ITEMS, ExpressionEvaluator, Scope
from tcdsl.frontend.skriptnd.tensor_recording import TensorRecording, declared_shape
from tcdsl.frontend.skriptnd.text import syntax
from tcdsl.frontend.skriptnd.text.syntax import names_in
from tcdsl.frontend.skriptnd.values import MEMBERS, Pack, ScalarValue, TensorValue, Unknown, flat, shown, type_of
from tcdsl.frontend.words.nodes import walk
from tcdsl.span import Span

__all__ = ["Binding", "binding_order", "taken_apart"]


@lru_cache(maxsize=1024)
def binding_order(operator: syntax.Operator) -> tuple[int, ...]:
    """The positions of an operator's inputs in the order in which their shapes are bound.

    `DslSyntaxError` where a shape leaves open which of two packs an axis belongs to.
    """
    known = {
        each.name
        for each in operator.attributes
        if each.type.pack is None and not each.type.optional and (each.default is None or not names_in(each.default))
    }
    known |= {name for using in _early(operator, known) for name in using.target.names}
    order: list[int] = []
    for optional in (False, True):
        group = [k for k, each in enumerate(operator.inputs) if each.type.optional == optional]
        while group:
            bound = next((k for k in group if _is_clear(operator.inputs[k], known)), None)
            if bound is None:
                unclear = operator.inputs[group[0]]
                fact = f"the shape of `{unclear.name}` can be bound in several ways"
                hint = "one entry of a shape may have an open length; give others one by an attribute: `s..(r), t..`"
                raise DslSyntaxError.at(fact, unclear.span, hint)
            group.remove(bound)
            order.append(bound)
            known |= operator.inputs[bound].type.names
    return tuple(order)


@lru_cache(maxsize=1024)
def _assertions_behind(operator: syntax.Operator) -> Mapping[int, Sequence[syntax.Assertion]]:
    # The assertions by the number of helper symbols behind which all of their names are known.
    known = {name: k for k, using in enumerate(operator.usings, 1) for name in using.target.names}
    found: dict[int, list[syntax.Assertion]] = {}
    for each in operator.assertions:
        found.setdefault(max((known.get(name, 0) for name in names_in(each.condition)), default=0), []).append(each)
    return found


def _early(operator: syntax.Operator, known: set[str]) -> list[syntax.Using]:
    # Helper symbols that shapes of inputs use, and those that these are made of: they are made of attributes.
    wanted = {name for each in operator.inputs for name in each.type.names} - known
    for using in reversed(operator.usings):
        if {*using.target.names} & wanted:
            wanted |= names_in(using.value)
    found, names = list[syntax.Using](), set(known)
    for using in operator.usings:
        if {*using.target.names} & wanted and names_in(using.value) <= names:
            found.append(using)
            names |= {*using.target.names}
    return found


def _is_clear(declaration: syntax.Declaration, known: set[str]) -> bool:
    shape = declaration.type.shape or ()
    if declaration.type.rank is not None:
        known = known | names_in(declaration.type.rank)
    entries = [frozenset[str]() if each.value is None else names_in(each.value) for each in shape]
    open_lengths = 0
    for extent, names in zip(shape, entries, strict=True):
        if extent.repeats is not None:  # known by its length, or by the pack that it is
            length = extent.repeats.length
            open_lengths += not ((length is not None and names_in(length) <= known) or (names and names <= known))
    return open_lengths <= 1 and all(len(names - known) <= 1 for names in entries)


def taken_apart(
    target: syntax.Target, value: Any, evaluator: ExpressionEvaluator
) -> Iterator[tuple[syntax.Target, Any]]:
    """The parts of a list that is assigned, with what they stand for."""
    items = target.items or ()
    if isinstance(value, Unknown):
        for each in items:
            yield from ((name, Unknown(value.type, each.pack is not None, True)) for name in each.items or (each,))
        return
    lengths: list[int | None] = [None if each.pack is not None else 1 for each in items]
    for k, each in enumerate(items):
        if each.pack is not None and each.pack.length is not None:
            lengths[k] = len(each.items or (each,)) * evaluator.count(each.pack.length, "the length of a part")
    rest = len(value) - sum(length or 0 for length in lengths)
    if lengths.count(None) > 1:
        raise DslSyntaxError.at("two parts of open length", target.span, "give one a length: `a..(n)`")
    if rest < 0 or (rest and None not in lengths):
        raise ShapeError.at(f"a pack of {len(value)} is taken apart into {len(value) - rest}", target.span)
    at = 0
    for each, length in zip(items, lengths, strict=True):
        end = at + (rest if length is None else length)
        part, at = value[at:end], end
        names = each.items or (each,)
        if len(part) % len(names):
            raise ShapeError.at(f"{len(part)} items are taken apart into {len(names)} packs", each.span)
        for k, name in enumerate(names):
            yield name, part[0] if each.pack is None else Pack.of(part[k :: len(names)])


@dataclass(slots=True)
class Binding:
    """One invocation: ``Binding(operator, evaluator, "nn.conv", span).run(types, attributes, inputs)``.

    The evaluator's scope is filled. ``span`` is the place of the invocation, which errors of its arguments show.
    """

    operator: syntax.Operator
    evaluator: ExpressionEvaluator
    name: str
    span: Span | None
    recording: TensorRecording
    #: What is bound so far.
    names: dict[str, Any] = field(init=False)
    _generics: dict[str, syntax.Generic] = field(init=False)

    def __post_init__(self) -> None:
        self.names = self.evaluator.scope.names
        self._generics = {each.name: each for each in self.operator.generics}

    def fault(
        self, fact: str, kind: type[TcdslError] = ShapeError, hint: str = "", span: Span | None = None
    ) -> TcdslError:
        """The error of an argument."""
        return kind.at(f"{self.name}: {fact}", span or self.span, hint)

    def run(self, types: Sequence[str], attributes: Mapping[str, Any], inputs: Sequence[Any]) -> None:
        """Bind everything, and check all assertions."""
        operator = self.operator
        if len(types) > len(operator.generics):
            fact = f"types are given for {len(types)} of {len(operator.generics)} type parameters"
            raise self.fault(fact, ConfigurationError)
        for generic, given in zip(operator.generics, types, strict=False):
            self._bind_type(generic.name, given)
        for each in operator.attributes:
            if each.name in attributes:
                self.names[each.name] = self._attribute(each, attributes[each.name])
            elif each.default is not None and not names_in(each.default) and not self._converts(each.default):
                self.names[each.name] = self._attribute(each, self.evaluator.value(each.default), each.span)
            elif each.default is None and not each.type.optional:
                hint = f"write `{self.name}{{{each.name}=...}}`"
                raise self.fault(f"the attribute `{each.name}` is missing", ConfigurationError, hint)
        early = {id(each) for each in self.early()}
        # What is left out is as large as the others say.
        left_out = [
            given is None and each.default is not None for each, given in zip(operator.inputs, inputs, strict=True)
        ]
        for k in sorted(binding_order(operator), key=left_out.__getitem__):
            self._input(operator.inputs[k], inputs[k])
        self._bind_types_of_defaults()
        for each in operator.attributes:
            if each.name not in self.names:
                value = None if each.default is None else self.evaluator.value(each.default)
                self.names[each.name] = self._attribute(each, value, each.span)
        for each in operator.attributes:
            self.length(each)
        ready = _assertions_behind(operator)
        for k, using in enumerate((None, *operator.usings)):
            if using is not None and id(using) not in early:
                self._using(using)
            for assertion in ready.get(k, ()):
                self._check(assertion)

    def early(self) -> list[syntax.Using]:
        """Bind the helper symbols that shapes of inputs are made of."""
        found = _early(self.operator, {*self.names})
        for using in found:
            self._using(using)
        return found

    def _bind_type(self, name: str, given: str, span: Span | None = None) -> None:
        generic = self._generics[name]
        if given not in MEMBERS.get(generic.base, (generic.base,)):
            raise self.fault(f"`{name}` is {generic.base}, which {given} is not", DtypeError, span=span)
        bound = self.evaluator.scope.generics.setdefault(name, given)
        if bound != given:
            raise self.fault(f"`{name}` is both {bound} and {given}", DtypeError, "convert with `layout.cast`", span)

    def _bind_types_of_defaults(self) -> None:
        generics = self.evaluator.scope.generics
        for each in self.operator.generics:
            if each.name not in generics and each.default is not None:
                generics[each.name] = each.default
        for attribute in self.operator.attributes:
            is_open = attribute.type.name in self._generics and attribute.type.name not in generics
            if is_open and attribute.name not in self.names and attribute.default is not None:
                self._bind_type(attribute.type.name, type_of(self.evaluator.value(attribute.default)))
        for each in self.operator.generics:
            if each.name not in generics:
                hint = f"give it: `{self.name}<real>(...)`"
                raise self.fault(f"nothing says what type `{each.name}` is", DtypeError, hint)

    def _converts(self, default: syntax.Expression) -> bool:
        # To a type that the inputs or other attributes may bind: `T(0)`.
        return any(isinstance(node, syntax.Call) and node.function in self._generics for node in walk(default))

    def _check_type(self, declared: syntax.TypeNode, given: str, what: str, span: Span | None = None) -> None:
        if not given:
            return
        if declared.name in self._generics:
            self._bind_type(declared.name, given, span)
            return
        allowed = MEMBERS.get(declared.name, (declared.name,))
        if given not in allowed:
            hint = "a real has a point: `1.0`" if given == "int" and "real" in allowed else ""
            raise self.fault(f"{what} is {declared.name}, not {given}", DtypeError, hint, span)

    def _attribute(self, declaration: syntax.Declaration, value: Any, span: Span | None = None) -> Any:
        what = f"the attribute `{declaration.name}`"
        given = declaration.type
        if value is None:
            if given.optional:
                return None
            raise self.fault(f"{what} is null", ConfigurationError, "only optional attributes may be", span)
        items, known = flat((value,)), "attributes are known while a graph is composed"
        if any(isinstance(each, TensorValue) for each in items):
            raise self.fault(f"{what} is a tensor", DtypeError, known, span)
        if isinstance(value, Pack) and given.pack is None:
            raise self.fault(f"{what} is one {given.name}, not a pack", DtypeError, span=span)
        if len({*map(type_of, items)}) > 1:
            raise self.fault(f"{what} has items of several types", DtypeError, span=span)
        if any(isinstance(each, ScalarValue) and not self.evaluator.arithmetic.is_size(each) for each in items):
            raise self.fault(f"{what} depends on data, or on the number of a round", DtypeError, known, span)
        self._check_type(given, type_of(value), what, span)
        return value

    def length(self, declaration: syntax.Declaration) -> None:
        """Bind the length of a packed attribute, or compare."""
        pack, value = declaration.type.pack, self.names[declaration.name]
        if pack is None:
            return
        if value is None:
            self._leave_out(pack.length)
            return
        what = f"the attribute `{declaration.name}`"
        if isinstance(value, Pack):
            if pack.length is not None:
                self._match(pack.length, len(value), f"{what} has {{given}} items, and {{wanted}} are expected")
            return
        if pack.length is None or self._unbound(pack.length) is not None:
            raise self.fault(f"{what} is one value, and nothing says how many it stands for", ShapeError, "give a list")
        length = self.evaluator.value(pack.length)
        # A value for all cells of a large tensor is never taken apart.
        items = (value,) * length if type(length) is int and length <= MOST_ITEMS else ()
        self.names[declaration.name] = Pack.of(items, value)

    def _input(self, declaration: syntax.Declaration, given: Any) -> None:
        what, wanted = f"the input `{declaration.name}`", declaration.type
        if given is None and declaration.default is not None:
            given = self.recording.recorded(self.evaluator.value(declaration.default), declaration.name)
            if all(map(self.evaluator.scope.knows, wanted.names)) and not isinstance(given, Pack):
                # A number stands for a tensor of the declared shape, whose extents other inputs have said.
                shape = declared_shape(wanted.shape or (), self.evaluator, what)
                given = given if shape is None else replace(given, shape=shape)
        if given is None:
            if not wanted.optional:
                raise self.fault(f"{what} is missing", ConfigurationError)
            self._left_out(wanted)
            self.names[declaration.name] = None
            return
        tensors = given if isinstance(given, Pack) else Pack.of((given,))
        if (wanted.pack is not None) != isinstance(given, Pack):
            kinds = ("a pack", "one tensor") if wanted.pack is not None else ("one tensor", "a pack")
            raise self.fault(f"{what} is {kinds[0]}, and {kinds[1]} is given")
        for each in tensors:
            self._check_type(wanted, each.type, what)
        if wanted.pack is not None and wanted.pack.length is not None:
            self._match(wanted.pack.length, tensors.size, f"{what} has {{given}} tensors, and {{wanted}} are expected")
        if wanted.shape is not None:
            self._shapes(wanted, tensors, what)
        self.names[declaration.name] = given

    def _left_out(self, wanted: syntax.TypeNode) -> None:
        # The names that nothing else has said are null.
        unknown = [name for name in wanted.names if not self.evaluator.scope.knows(name)]
        self.names.update(dict.fromkeys(unknown))

    def _shapes(self, wanted: syntax.TypeNode, tensors: Pack, what: str) -> None:
        ranks = {len(each.shape) for each in tensors}
        if len(ranks) > 1:
            raise self.fault(f"the tensors of {what} have the ranks {', '.join(map(str, sorted(ranks)))}")
        if not tensors:
            self._left_out(wanted)
            return
        rank = ranks.pop()
        if wanted.rank is not None:
            self._match(wanted.rank, rank, f"{what} has rank {{given}}, not {{wanted}}")
        spans = self._axes(wanted.shape or (), rank, what, tensors[0])
        for extent, (begin, end) in zip(wanted.shape or (), spans, strict=True):
            columns = [each.shape[begin:end] for each in tensors]
            if extent.spread:
                self._extent(extent, Pack.of(column[0] for column in columns), what, tensors[0])
                continue
            for column, tensor in zip(columns, tensors, strict=True):
                self._extent(extent, column[0] if extent.repeats is None else Pack.of(column), what, tensor)

    def _axes(self, shape: Sequence[syntax.Extent], rank: int, what: str, tensor: TensorValue) -> list[tuple[int, int]]:
        # Which axes each entry of a shape stands for.
        lengths = [1 if extent.repeats is None else self._known_length(extent) for extent in shape]
        open_entries = [k for k, length in enumerate(lengths) if length is None]
        rest = rank - sum(length or 0 for length in lengths)
        if rest < 0 or (rest and not open_entries):
            wanted = f"{'at least ' if open_entries else ''}{rank - rest}"
            fact = f"{what} has rank {wanted}, and `{tensor.name}` has rank {rank}, shape {shown(tensor.shape)}"
            raise self.fault(fact)
        counts = [length if length is not None else rest * (k == open_entries[0]) for k, length in enumerate(lengths)]
        for extent, count in zip(shape, counts, strict=True):
            if extent.repeats is not None and extent.repeats.length is not None:
                self._match(extent.repeats.length, count, f"{what} has {{given}} axes there, not {{wanted}}")
        return [*pairwise(accumulate(counts, initial=0))]

    def _known_length(self, extent: syntax.Extent) -> int | None:
        length = None if extent.repeats is None else extent.repeats.length
        if length is not None and self._unbound(length) is None:
            return 0 if self.evaluator.value(length) is None else self.evaluator.count(length, "the length of a shape")
        if extent.value is not None and self._unbound(extent.value) is None and names_in(extent.value):
            value = self.evaluator.value(extent.value)
            return len(value) if isinstance(value, Pack) else None
        return None

    def _extent(self, extent: syntax.Extent, given: Any, what: str, tensor: TensorValue) -> None:
        if extent.value is None:
            return
        length = extent.repeats.length if extent.repeats is not None and not extent.spread else None
        if isinstance(given, Pack) and length is not None and type_of(self.evaluator.value(length)) == "bool":
            # `c..(flag)`: an entry that is there or not.
            if not given:
                self._leave_out(extent.value)
                return
            given = given[0]
        place = f"{what}, `{tensor.name}` of shape {shown(tensor.shape)}"
        self._match(extent.value, given, f"{place}: `{extent.value.written}` is {{wanted}}, not {{given}}")

    def _leave_out(self, node: syntax.Expression | None) -> None:
        # The name in it that is not bound yet is null.
        name = None if node is None else self._unbound(node)
        if name is not None:
            self.names[name] = None

    def _unbound(self, node: syntax.Expression) -> str | None:
        """The name in ``node`` that is not bound yet, if there is one."""
        found = [name for name in names_in(node) if not self.evaluator.scope.knows(name)]
        return found[0] if found else None

    def _match(self, node: syntax.Expression, given: Any, message: str) -> None:
        """Bind the open name in ``node`` so that it gives ``given``, or compare."""
        name = self._unbound(node)
        if name is None:
            wanted = self.evaluator.value(node)
            if wanted is None:
                # A null name takes the value: an optional input that is there.
                if isinstance(node, syntax.Identifier):
                    self.names[node.name] = given
                return
            text = message.format(given=shown(given), wanted=shown(wanted))
            if self._differ(wanted, given, f"{self.name}: {text}"):
                raise self.fault(text)
            return
        if isinstance(node, syntax.Identifier):
            self.names[name] = given
            return
        fact = message.format(given=shown(given), wanted=f"of the form {node.written}")
        solved = [self._solution(node, name, each, f"{self.name}: {fact}") for each in flat((given,))]
        if None in solved:
            raise self.fault(fact)
        self.names[name] = Pack.of(solved) if isinstance(given, Pack) else solved[0]

    def _differ(self, wanted: Any, given: Any, fact: str) -> bool:
        if isinstance(wanted, Pack) or isinstance(given, Pack):
            if isinstance(wanted, Pack) and isinstance(given, Pack) and len(wanted) != len(given):
                return True
            rows = self.evaluator.each(lambda a, b, _: self._differ(a, b, fact), (wanted, given), self.span)
            return any(rows)
        if isinstance(wanted, bool):
            wanted = int(wanted)
        return self.recording.differ("==", wanted, given, fact, self.span)

    def _solution(self, node: syntax.Expression, name: str, given: Any, fact: str) -> Any:
        # `a * x + b` for x.
        line = self._line(node, name)
        if line is None:
            hint = "entries of a shape are names, or `a * x + b` with numbers"
            raise self.fault(f"`{node.written}` does not say what `{name}` is", DslSyntaxError, hint, node.span)
        factor, start = line
        arithmetic = self.evaluator.arithmetic
        if factor == 0:
            return None
        moved = arithmetic.binary("-", given, start, self.span)
        if self.recording.differ("==", arithmetic.binary("%", moved, factor, self.span), 0, fact, self.span):
            return None
        return arithmetic.binary("/", moved, factor, self.span)

    def _line(self, node: syntax.Expression, name: str) -> tuple[int, int] | None:
        # The numbers `a` and `b` of `a * x + b`, which three values of x tell.
        values = []
        for number in range(3):
            scope = Scope({name: number}, outer=self.evaluator.scope)
            values.append(self.evaluator.within(scope).value(node))
        if any(type(each) is not int for each in values) or values[0] + values[2] != 2 * values[1]:
            return None
        return values[1] - values[0], values[0]

    def _using(self, using: syntax.Using) -> None:
        value, target = self.evaluator.value(using.value), using.target
        if target.name is not None:
            self.names[target.name] = value
            if target.pack is not None and target.pack.length is not None and isinstance(value, Pack):
                self._match(target.pack.length, len(value), f"`{target.name}` has {{given}} items, not {{wanted}}")
        elif value is None:
            self.names.update(dict.fromkeys(target.names))
        elif not isinstance(value, Pack):
            raise self.fault("what is no pack is taken apart", DtypeError, span=using.span)
        else:
            self.names.update(
                {each.name: part for each, part in taken_apart(target, value, self.evaluator) if each.name}
            )

    def _check(self, assertion: syntax.Assertion) -> None:
        arithmetic = self.evaluator.arithmetic
        guesses = arithmetic.decisions.guesses
        value = self.evaluator.value(assertion.condition)
        if arithmetic.decisions.guesses != guesses:
            if self.recording.session is None:
                return  # the call tells
            arithmetic.compares_data = True
            value = self.evaluator.value(assertion.condition)
            arithmetic.compares_data = False
        for test in flat((value,)):
            if test is None or test is True:
                continue
            if type_of(test) != "bool":
                raise self.fault("an assertion that is no bool", DtypeError, span=assertion.span)
            message = f"`{assertion.condition.written}` does not hold"
            if assertion.message is not None:
                message = self.evaluator.value(assertion.message)
            notes = [f"{label} = {shown(self.evaluator.value(node))}" for label, node in assertion.shown]
            if test is False:
                raise ShapeError.at(f"{self.name}: {message}", self.span, ", ".join(notes))
            self.recording.require(test, f"{self.name}: {message}", self.span)
