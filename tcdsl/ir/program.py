"""Programs and statements: with the expressions, the whole intermediate representation.

::

    Program    inputs, sizes, tensors, statements, outputs, updates, assertions, rules, repeats
    Statement  target: Access; accumulate; start: Neutral | Keep | Fill | Unset; value: Expr; domain: Domain;
               condition: Expr | None
    Access     tensor; index expressions (affine or data)
    Domain     the integer set of the statement's index variables, parametric in sizes
    Repeat     results; count; body: Program; inputs

A program is in single-assignment form: each statement makes one new tensor, every tensor is made by one statement or is
an input. ``Y[i] += e`` on an existing ``Y`` makes ``Y_2``, which starts from the cells of ``Y`` (``Keep("Y")``). Code
that changes memory in place (`@cd`) is the same thing with ``updates``: after the last statement, the input ``p``
receives the cells of ``p_2``. Which tensors share memory is decided by lowering, never here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import is_
from typing import Any

from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import LEAVES, Apply, Constant, Expr, Read, reads, size_names, transform
from tcdsl.ir.nodes import Hashed, node_class, replace
from tcdsl.span import Span
from tcdsl.tracebacks import NamesTold

__all__ = [
    "BRANCH",
    "OF_ROUND",
    "PRINTED",
    "SEGMENT_OF",
    "Access",
    "Assertion",
    "AxisExtent",
    "DerivativeRule",
    "Fill",
    "Keep",
    "Neutral",
    "Program",
    "Repeat",
    "Size",
    "Start",
    "Statement",
    "StatementFacts",
    "Tensor",
    "Unset",
    "map_statement",
    "reads_beside_value",
    "sizes_used",
    "statement_expressions",
    "statement_reads",
    "statement_sizes",
    "tensors_read",
    "with_statements",
    "without_rules",
]


@node_class
@dataclass(frozen=True, slots=True)
class Tensor(Hashed):
    """A declaration: ``Tensor("C", "float32", (SizeValue("N"), SizeValue("M")))``.

    Extents are int64 expressions in sizes. A rank-0 tensor has the empty shape. ``label`` is what users call it, where
    that differs from the unique ``name`` (``Y`` for ``Y_2``). ``ends`` has for each axis the condition that says how
    long it is, ``j < n`` in ``y[j] = x[j], j < n``, where one does.
    """

    name: str
    dtype: str
    shape: tuple[Expr, ...]
    label: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)
    ends: tuple[Span | None, ...] = field(default=(), compare=False, repr=False)

    def end(self, axis: int) -> Span | None:
        """The condition that says how long an axis is, if one does."""
        return self.ends[axis] if self.ends else None


@dataclass(frozen=True, slots=True)
class AxisExtent(NamesTold):
    """Where a size comes from: the extent of one axis of an input."""

    tensor: str
    axis: int


@dataclass(frozen=True, slots=True)
class Size(NamesTold):
    """A named size: the extent of an input's axis, or an expression of the sizes before it (``N * M``, ``N // K``).

    Opaque to the domains, which are parametric in size names only.
    """

    name: str
    source: AxisExtent | Expr


@dataclass(frozen=True, slots=True)
class Assertion(NamesTold):
    """A condition on sizes that must hold at the call, and what to tell the user if it does not (a `ShapeError`).

    ``message`` may name sizes in braces, ``"A has {N} rows"``, to be filled in with their values; what follows its
    first line says what to write instead. Like the span it takes no part in equality. What holds for a few sizes only
    is not ``assumed`` in the statements that follow: their faults would be strange ones.
    """

    condition: Expr
    message: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False, repr=False)
    assumed: bool = field(default=True, compare=False, repr=False)


@node_class
@dataclass(frozen=True, slots=True)
class Access(Hashed):
    """A place: a tensor and one index expression per axis, as in a read."""

    tensor: str
    indices: tuple[Expr, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@node_class
@dataclass(frozen=True, slots=True)
class Neutral(Hashed):
    """Every cell starts from the accumulator's neutral element (0 for ``assign``)."""


@node_class
@dataclass(frozen=True, slots=True)
class Keep(Hashed):
    """Every cell starts from the same cell of ``tensor``, which has the same shape and type."""

    tensor: str


@dataclass(frozen=True, slots=True)
class Fill(NamesTold):
    """Every cell starts from ``value``, an expression of sizes, constants and rank-0 reads, in the compute type."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Unset(NamesTold):
    """Cells hold anything at first: whoever makes the tensor warrants that none is read before it is written."""


Start = Neutral | Keep | Fill | Unset


class StatementFacts(Hashed):
    """Holds what nearly every pass asks of a statement, once it is known; as its hash, no copy and no file has it."""

    __slots__ = ("_in_range", "_kind", "_places", "_reads", "_tensors_read")
    _in_range: bool
    _kind: Any
    _places: tuple[Span | None, ...]
    _reads: tuple[Read, ...]
    _tensors_read: frozenset[str]


PRINTED: dict[type, Callable[[Any], str]] = {}
"""How programs and statements print, which `tcdsl.ir.text.printer` says."""


@node_class
@dataclass(frozen=True, slots=True)
class Statement(StatementFacts):
    """For every point of ``domain`` where ``condition`` holds: ``target <accumulate>= value``.

    The target is a tensor that no earlier statement or input has made; it starts as ``start`` says. Values are computed
    in ``compute_dtype`` of the target's type, to which ``value`` has been cast. The domain holds every affine
    condition, in-range conditions of the accesses included; ``condition`` holds what depends on data and is evaluated
    first. ``assign`` and the ordered accumulators take points in row-major order of ``domain.variables``.

    A data index of the target out of range raises ``IndexError`` (``oob="check"``), leaves the point out (``"skip"``)
    or moves to the nearest end (``"clamp"``). ``unique`` asks for a run-time check that no two points write one cell.
    """

    target: Access
    accumulate: str
    start: Start
    value: Expr
    domain: Domain
    condition: Expr | None = None
    oob: str = "check"
    unique: bool = False
    label: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        told = PRINTED.get(Statement)
        return f"<statement {self.target.tensor if told is None else told(self)}>"


@dataclass(frozen=True, slots=True)
class DerivativeRule(NamesTold):
    """The derivative of ``outputs`` by ``arguments``, given by ``program`` instead of the statements between them.

    ``mode`` is ``pullback`` or ``pushforward``. The inputs of ``program`` are the tensors that the rule names, each of
    its own type, and then the cotangents of the floating outputs (``pullback``) or the tangents of the floating
    arguments (``pushforward``), in compute types. It returns the adjoints of the floating arguments, or the tangents of
    the floating outputs, in compute types. Of mode ``adjoint`` are outputs that are the adjoint of ``program``, by as
    many of the arguments as there are outputs: its inputs are the tensors that the rule names but outputs and the last
    arguments, which are the cotangents of what it returns. ``constants`` are what the rule and its function read
    besides: there is no derivative by them. Of the tensors ``extents`` only the extents matter. Of two rules for one
    output the later one holds: it belongs to the function around the other's, or stands ``beside`` it as one
    of the same function, in the other mode, which then has both.
    """

    mode: str
    outputs: tuple[str, ...]
    arguments: tuple[str, ...]
    constants: tuple[str, ...]
    extents: tuple[str, ...]
    program: Program
    span: Span | None = field(default=None, compare=False, repr=False)
    beside: bool = False

    @property
    def named(self) -> tuple[str, ...]:
        """The tensors that the first inputs of ``program`` stand for."""
        return (*self.extents, *self.constants, *self.arguments, *self.outputs)

    def with_tensors(self, names: Mapping[str, str]) -> DerivativeRule:
        """The rule for tensors under other names."""
        outputs, arguments, constants, extents = (
            tuple(names.get(name, name) for name in group)
            for group in (self.outputs, self.arguments, self.constants, self.extents)
        )
        return replace(self, outputs=outputs, arguments=arguments, constants=constants, extents=extents)


BRANCH = "branch_round"
"""What the only round of an arm of a branch is called, of which users know nothing."""

OF_ROUND = "_round"
"""How the name of a number of rounds ends that is not what the user counts by."""

SEGMENT_OF = "segment_of_"
"""How the name of a number of segments begins, and how many rounds of the loop inside each has."""

_ZERO = Constant(0, "int64")


@lru_cache(maxsize=4096)
def _tensors_in(end: Expr) -> frozenset[str]:
    return frozenset([read.tensor for read in reads(end)])


@dataclass(frozen=True, slots=True)
class Repeat(NamesTold):
    """A loop that runs: ``results = body(... body(inputs))``, in rounds ``begin``, ``begin + 1``, ... ``count - 1``.

    ``body`` is a program that updates some of its inputs. Its first input is the number of the round: a ``bool[k]``
    array whose extent is the number, so that ``k`` is a size of the body, or, where nothing bounds it, an int64 tensor
    of rank 0. The others are given by ``inputs``, tensors of the program around; those that the body updates hold, from
    the second round on, what the round before has made of them. ``results`` has, for each of the updates, the tensor
    that holds it after the last round, of the type and shape of the input.

    ``begin`` and ``count`` are expressions of sizes and rank-0 reads; ``begin``, which is 0 but where rounds of another
    loop are computed again, is not below 0. A body with an output, a bool of rank 0 among its updated inputs, is for
    ``while``: a round runs only if that input holds true. Reverse mode keeps of a ``checkpointed`` loop what each round
    was given, and computes the rest again; with ``checkpoints`` it keeps that of so many rounds at a time.

    The only round of a call of ``host`` code is made by a function of Python, which the first input after the number
    names (`tcdsl.ir.interpreter.host_code`): the body says what the results depend on, and nothing of their cells.
    Lowering finds that the rounds of some loops may run in any order, ``unordered``.
    """

    results: tuple[str, ...]
    count: Expr
    body: Program
    inputs: tuple[str, ...]
    span: Span | None = field(default=None, compare=False, repr=False)
    checkpointed: bool = False
    checkpoints: int = 0
    begin: Expr = _ZERO
    host: bool = False
    unordered: bool = False

    @property
    def ends(self) -> tuple[Expr, Expr]:
        """``begin`` and ``count``."""
        return self.begin, self.count

    def with_ends(self, rule: Callable[[Expr], Expr]) -> Repeat:
        """The loop with ``rule`` applied to ``begin`` and ``count``."""
        return replace(self, begin=rule(self.begin), count=rule(self.count))

    @property
    def most(self) -> Expr | None:
        """As many rounds as there may be, of sizes alone; ``None`` if data alone says how many."""
        match self.count:
            case Apply(primitive="min", arguments=arguments):
                return next((each for each in arguments if not any(reads(each))), None)
            case count:
                return None if any(reads(count)) else count

    @property
    def read_by_ends(self) -> frozenset[str]:
        """The tensors of rank 0 that ``begin`` and ``count`` read."""
        return _tensors_in(self.begin) | _tensors_in(self.count)

    @property
    def carried(self) -> tuple[tuple[str, str, str], ...]:
        """For each result: what the body calls it, what it becomes in a round, and the tensor that it is at first."""
        given = dict(zip((each.name for each in self.body.inputs[1:]), self.inputs, strict=True))
        return tuple((name, new, given[name]) for name, new in self.body.updates)

    @property
    def only_given(self) -> tuple[str, ...]:
        """The inputs that no round changes."""
        updated = {name for name, _ in self.body.updates}
        given = zip(self.body.inputs[1:], self.inputs, strict=True)
        return tuple(name for inner, name in given if inner.name not in updated)

    @property
    def condition(self) -> str | None:
        """The input of the body that says whether a round runs, if one does."""
        return self.body.outputs[0] if self.body.outputs else None

    @property
    def number(self) -> str:
        """What users call the number of a round: ``t``, or ``t_round`` where they count otherwise."""
        counter = self.body.inputs[0]
        label = counter.label or counter.name
        size = next((size.name for size in self.body.sizes if size.source == AxisExtent(counter.name, 0)), "")
        plain = label.removesuffix(OF_ROUND)
        return plain if plain == re.sub(r"_\d+$", "", size) else size or label

    def with_tensors(self, names: Mapping[str, str]) -> Repeat:
        """The loop on tensors under other names: the same one, about which much is known, if it has none of them."""
        if names.keys().isdisjoint((*self.results, *self.inputs, *self.read_by_ends)):
            return self
        results, inputs = (tuple(names.get(each, each) for each in group) for group in (self.results, self.inputs))

        def rule(node: Expr) -> Expr:
            return replace(node, tensor=names[node.tensor]) if isinstance(node, Read) and node.tensor in names else node

        return replace(self, results=results, inputs=inputs).with_ends(lambda end: transform(end, rule))


@node_class
@dataclass(frozen=True, slots=True)
class Program(Hashed):
    """A staged function, a derivative, or any other sequence of statements.

    ``tensors`` declares every tensor that a statement or a loop makes, ``outputs`` are returned, in this order, and
    ``updates`` pairs inputs that change with the tensor whose cells they receive. ``assertions`` hold at every call.
    ``rules`` say how to differentiate; running the program does not need them. ``repeats`` are its loops that run: what
    they read says where they stand among the statements (`tcdsl.ir.stages`).
    """

    name: str
    inputs: tuple[Tensor, ...]
    sizes: tuple[Size, ...]
    tensors: tuple[Tensor, ...]
    statements: tuple[Statement, ...]
    outputs: tuple[str, ...]
    updates: tuple[tuple[str, str], ...] = ()
    assertions: tuple[Assertion, ...] = ()
    rules: tuple[DerivativeRule, ...] = ()
    repeats: tuple[Repeat, ...] = ()
    # Programs of a thousand statements look up each of a thousand tensors.
    _declared: dict[str, Tensor] = field(default_factory=dict, init=False, compare=False, repr=False)

    def tensor(self, name: str) -> Tensor:
        """The declaration of an input or a statement's tensor. ``KeyError`` if there is none."""
        if not self._declared:
            self._declared.update((tensor.name, tensor) for tensor in reversed((*self.inputs, *self.tensors)))
        return self._declared[name]

    def __repr__(self) -> str:
        def named(names: Sequence[str]) -> str:
            return ", ".join(names if len(names) <= 6 else (*names[:5], "..."))

        count = len(self.statements)
        into = f", writes {named([name for name, _ in self.updates])}" if self.updates else ""
        what = f"{count} statement{'s' if count != 1 else ''}" + f", {len(self.repeats)} loops" * bool(self.repeats)
        inputs, outputs = named([each.name for each in self.inputs]), named(self.outputs) or "nothing"
        return f"<program {self.name}: {inputs} -> {outputs}{into}; {what}>"

    def __str__(self) -> str:
        told = PRINTED.get(Program)
        return repr(self) if told is None else told(self).rstrip("\n")

    @property
    def ruled(self) -> dict[str, DerivativeRule]:
        """The tensors with a derivative rule, and that rule: of several the last, of the function furthest out."""
        return {output: rule for rule in self.rules for output in rule.outputs}


def with_statements(program: Program, statements: Iterable[Statement]) -> Program:
    """``program`` with these statements instead of its own; it declares those of its tensors that they make."""
    kept = tuple(statements)
    made = {statement.target.tensor for statement in kept}
    made.update(name for repeat in program.repeats for name in repeat.results)
    return replace(program, statements=kept, tensors=tuple(each for each in program.tensors if each.name in made))


def without_rules(program: Program) -> Program:
    """``program`` without what it, and the bodies of its loops, say of derivatives, which keeps values alive."""
    repeats = tuple(replace(each, body=without_rules(each.body)) for each in program.repeats)
    return replace(program, rules=(), repeats=repeats)


def map_statement(statement: Statement, rule: Callable[[Expr], Expr]) -> Statement:
    """``statement`` with ``rule`` applied to each of its expressions; the domain stays."""
    target, start, condition = statement.target, statement.start, statement.condition
    indices = tuple([rule(axis) for axis in target.indices])
    if isinstance(start, Fill):
        filled = rule(start.value)
        start = start if filled is start.value else Fill(filled)
    value = rule(statement.value)
    condition = None if condition is None else rule(condition)
    target = target if all(map(is_, indices, target.indices)) else replace(target, indices=indices)
    if target is statement.target and start is statement.start and value is statement.value:
        # The same object where nothing changes: what is known of it stays known.
        return statement if condition is statement.condition else replace(statement, condition=condition)
    return replace(statement, target=target, start=start, value=value, condition=condition)


def statement_expressions(statement: Statement) -> Iterator[Expr]:
    """Every expression of ``statement``."""
    yield from statement.target.indices
    yield statement.value
    if statement.condition is not None:
        yield statement.condition
    if isinstance(statement.start, Fill):
        yield statement.start.value


_KEEP_READS: Any = StatementFacts.__dict__["_reads"].__set__
_KEEP_TENSORS_READ: Any = StatementFacts.__dict__["_tensors_read"].__set__


def statement_reads(statement: Statement) -> tuple[Read, ...]:
    """Every read of ``statement``, except of the version that it starts from."""
    try:
        return statement._reads
    except AttributeError:
        found = tuple([read for expr in statement_expressions(statement) for read in reads(expr)])
        _KEEP_READS(statement, found)
        return found


def reads_beside_value(statement: Statement) -> Iterator[Read]:
    """Every read of ``statement`` but those in its value, and that of the version that it starts from."""
    for axis in statement.target.indices:
        if type(axis) not in LEAVES:
            yield from reads(axis)
    if statement.condition is not None:
        yield from reads(statement.condition)
    if isinstance(statement.start, Fill):
        yield from reads(statement.start.value)


def statement_sizes(statement: Statement) -> set[str]:
    """The names of the sizes in the expressions and the domain of ``statement``."""
    return set(statement.domain.parameters).union(*map(size_names, statement_expressions(statement)))


def sizes_used(statements: Iterable[Statement], tensors: Iterable[Tensor]) -> set[str]:
    """The names of the sizes in the expressions and domains of ``statements`` and in the shapes of ``tensors``."""
    found = {name for tensor in tensors for extent in tensor.shape for name in size_names(extent)}
    return found.union(*map(statement_sizes, statements))


def tensors_read(statement: Statement) -> frozenset[str]:
    """The tensors that a statement reads, the one that it starts from included."""
    try:
        return statement._tensors_read
    except AttributeError:
        names = [read.tensor for read in statement_reads(statement)]
        if isinstance(statement.start, Keep):
            names.append(statement.start.tensor)
        found = frozenset(names)
        _KEEP_TENSORS_READ(statement, found)
        return found
