"""The program under construction: inputs, sizes, statements and assertions as staging records them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeGuard

from tcdsl.errors import ShapeError, without_values
from tcdsl.frontend.staging.open_extents import circular_extent, larger_extent, needed_extents
from tcdsl.frontend.symbols.divided_sizes import DividedSizes
from tcdsl.frontend.symbols.opaque_sizes import learn_quotients, mentioned, opaque_facts, with_declared_extents
from tcdsl.frontend.symbols.operators import Algebra
from tcdsl.frontend.symbols.recordings import Learned, Recording
from tcdsl.frontend.symbols.retired_values import DIFFERENTIATED, RetiredNames
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.frontend.symbols.written_cells import WrittenCells
from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Apply, Constant, Expr, SizeValue, size_names
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import (
    Assertion,
    AxisExtent,
    DerivativeRule,
    Program,
    Repeat,
    Size,
    Statement,
    Tensor,
)
from tcdsl.ir.sizes.known_sizes import never_negative
from tcdsl.ir.sizes.spoken_sizes import assertions_in_words, made_up_name
from tcdsl.ir.stages import in_order
from tcdsl.ir.text.domain_text import domain_name
from tcdsl.polyhedra.size_facts import SizeFacts
from tcdsl.ranges.checks.recurrences import recurrence_assertions
from tcdsl.ranges.equal_sketches import resolve_equal
from tcdsl.ranges.range_inference import resolve
from tcdsl.ranges.sketches.sketch import Sketch
from tcdsl.rewrite.unified_sizes import with_equal_sizes
from tcdsl.rows.ranks import RowRanks
from tcdsl.span import Span

__all__ = ["ProgramBuilder"]

# The definition of an open size before any statement: no extent is negative.
_UNDETERMINED = -1


class ProgramBuilder:
    """Collects what staging records, names it, and makes the `Program`.

    It is the `tcdsl.polyhedra.program_scope.ProgramScope` of range inference: it knows what holds between the sizes.
    """

    def __init__(self, name: str, algebra: Algebra) -> None:
        self.name = name
        self.algebra = algebra
        self._inputs: list[Tensor] = []
        self._sizes: dict[str, Size] = {}
        #: What is recorded now: the program itself, or a part of it (`nested`).
        self.recording = Recording()
        self._assertions: dict[Assertion, frozenset[str]] = {}
        self._declared: dict[str, Tensor] = {}
        self._known: SizeFacts | None = None
        self._open: set[str] = set()
        # The numbers of rounds, those of them around what data decides, and what branches there say of sizes.
        self._counters: set[str] = set()
        self._undecided: frozenset[str] = frozenset()
        self._said: tuple[Expr, ...] = ()
        #: The open sizes that a fault has left undetermined.
        self._faulty: set[str] = set()
        self._numbers: dict[str, Expr] = {}
        self._retired = RetiredNames()
        self._names = FreshNames(elsewhere=lambda name: name in self._declared or name in self._retired)
        # The names of recordings that are over, which are free unless they are retired.
        self._ended: list[str] = []
        self._rows: dict[str, RowRanks] = {}
        #: Which cells statements have written.
        self.written = WrittenCells()
        self._comment = ""
        self.divided = DividedSizes()
        self.words = self._retired.words

    # -- inputs and sizes ------------------------------------------------------------------------------------

    def input(
        self, label: str, dtype: str, rank: int, size_names: Sequence[str | None] = (), span: Span | None = None
    ) -> SymbolicTensor:
        """A new input; its extents become sizes, called ``size_names`` where those are given and free."""
        name = self.fresh_name(label)
        shape = []
        for axis in range(rank):
            wanted = size_names[axis] if axis < len(size_names) else None
            free = wanted and domain_name(wanted) not in self._sizes
            size = domain_name(wanted) if wanted and free else domain_name(f"{name}_{axis}")
            while size in self._sizes:
                size += "_"
            self._sizes[size] = Size(size, AxisExtent(name, axis))
            shape.append(SizeValue(size))
        self._known = None
        tensor = Tensor(name, dtype, tuple(shape), "" if label == name else label, span)
        self._inputs.append(tensor)
        self._declared[name] = tensor
        return SymbolicTensor(self, name, dtype, tuple(shape), label)

    def fixed_input(self, label: str, dtype: str, extents: Sequence[int]) -> Tensor:
        """A new input whose extents are constants of the program."""
        name = self.fresh_name(label)
        made = self._declared[name] = Tensor(name, dtype, tuple(map(integer, extents)), "" if label == name else label)
        self._inputs.append(made)
        return made

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The inputs so far."""
        return tuple(self._inputs)

    def opaque_size(self, expr: Expr) -> Expr:
        """A name for an expression of sizes that domains cannot hold; ``N * M`` is called ``N_times_M``."""
        expr, asked = self.divided.safe(expr, self.never_negative)
        for each in asked:
            self._require(each)
        if isinstance(expr, Constant | SizeValue):
            return expr
        for size in self._sizes.values():
            if size.source == expr:
                return SizeValue(size.name)
        name = FreshNames(self._sizes).fresh(made_up_name(self.divided.as_written(expr)))
        self._sizes[name] = Size(name, expr)
        self._known = None
        return SizeValue(name)

    def open_size(self, name: str) -> Expr:
        """A size that the statements on the targets declared with it determine: the smallest that satisfies all."""
        name = FreshNames(self._sizes).fresh(domain_name(name))
        self._sizes[name] = Size(name, integer(_UNDETERMINED))
        self._open.add(name)
        self._known = None
        return SizeValue(name)

    def is_open(self, name: str) -> bool:
        """Whether statements to come may still make the size ``name`` larger."""
        return name in self._open

    def _is_open_extent(self, extent: Expr | None) -> TypeGuard[SizeValue]:
        return isinstance(extent, SizeValue) and extent.name in self._open

    def _open_extents(self, sketch: Sketch) -> None:
        # What the statement would need if its target were fresh; it is recorded with the size itself.
        named = {k: extent.name for k, extent in enumerate(sketch.extents) if self._is_open_extent(extent)}
        known = [k for k, name in named.items() if not self._is_undetermined(name)]
        try:
            needed, assertions = needed_extents(sketch, self, named, known)
        except ShapeError:
            self._faulty.update(named.values())
            raise
        for assertion in assertions:
            self._require(assertion)
        for axis, extent in needed.items():
            self.enlarge(named[axis], extent, sketch.label, sketch.span)

    def _is_undetermined(self, name: str) -> bool:
        return self._sizes[name].source == integer(_UNDETERMINED)

    def enlarge(self, name: str, needed: Expr, label: str, span: Span | None) -> None:
        """Make the open size ``name``, which `label` is declared with, as large as is needed."""
        if needed == SizeValue(name):
            return
        if name in mentioned(needed, self._sizes):
            raise circular_extent(name, label, span)
        known = self._sizes[name].source
        if not isinstance(known, AxisExtent) and not self._is_undetermined(name):
            needed = larger_extent(known, needed, self.known())
        self._sizes[name] = Size(name, needed)
        self._known = None

    def sizes(self, names: Collection[str], given: Collection[str] = ()) -> tuple[Size, ...]:
        """The definitions of ``names`` and of all that they mention, in an order in which they can be evaluated.

        What the sizes in ``given`` mention is not wanted. `ShapeError` for an open size that nothing has determined.
        """
        done: dict[str, Size] = {}

        def add(size: Size) -> None:
            if size.name in done:
                return
            if self._is_undetermined(size.name) and size.name not in given and size.name not in self._faulty:
                raise ShapeError.at(
                    f"the extent `{size.name}` is open, but no statement writes to a target that is declared with it",
                    hint=f"write to it, or bind the size: `{size.name} = A.shape[0]`",
                )
            # Open sizes may speak of sizes that were named after them.
            if not isinstance(size.source, AxisExtent) and size.name not in given:
                for name in sorted(size_names(size.source)):
                    add(self._sizes[name])
            done[size.name] = size

        for size in self._sizes.values():
            if size.name in names:
                add(size)
        return tuple(done.values())

    def size(self, name: str) -> Size:
        """The definition of the size ``name``."""
        return self._sizes[name]

    def spoken(self) -> dict[str, str]:
        """What messages call the sizes whose names are made up, those of rounds too."""
        return self._retired.spoken(self._sizes, {each.name: each.label for each in self._inputs})

    def size_names(self) -> tuple[str, ...]:
        """The names of all sizes so far."""
        return tuple(self._sizes)

    def require(self, condition: Expr, message: str, span: Span | None = None) -> None:
        """State that ``condition`` holds at every call; a `ShapeError` now if it never can, in what runs at all."""
        if isinstance(condition, Constant) and (condition.value or not self.may_not_run):
            if not condition.value:
                fact, hint = without_values(message)
                raise ShapeError.at(fact, span, hint)
            return
        self._require(Assertion(condition, message, span, assumed=not isinstance(condition, Constant)))

    def _require(self, assertion: Assertion) -> None:
        if assertion not in self._assertions:
            self._assertions[assertion] = size_names(assertion.condition)
            if assertion.assumed and self._known is not None:
                self._known.add(assertion.condition)

    def require_equal(self, left: Expr, right: Expr, message: str, span: Span | None = None) -> None:
        """State that two extents agree."""
        if left != right:
            self.require(apply("eq", left, right), message, span)

    def known(self) -> SizeFacts:
        """What is known about sizes."""
        if self._known is None:
            self._known = SizeFacts(self._facts())
            learn_quotients(self._known, self._sizes.values(), self.never_negative)
        return self._known

    def _facts(self) -> list[Expr]:
        # Every extent of an input is a size; products and quotients of sizes are non-negative like their parts.
        facts = [apply("ge", SizeValue(name), integer(0)) for name in self._sizes if self._is_extent(name)]
        for size in self._sizes.values():
            facts.extend(opaque_facts(size, self.never_negative))
        facts.extend(assertion.condition for assertion in self._assertions if assertion.assumed)
        return facts

    def _is_extent(self, name: str) -> bool:
        source = self._sizes[name].source
        if isinstance(source, AxisExtent) or name in self._open:
            return True
        form = isinstance(source, Apply) and source.primitive in ("mul", "floor_div", "mod")
        return form and self.never_negative(name)

    def never_negative(self, name: str) -> bool:
        """Whether a size is non-negative by its form."""
        source = self._sizes[name].source
        if isinstance(source, AxisExtent) or name in self._open:
            return True
        return never_negative(source, self.never_negative)

    @property
    def may_not_run(self) -> bool:
        """Whether what is staged is a round of a loop, or an arm of a branch."""
        return self.divided.in_rounds

    @property
    def undecided_rounds(self) -> tuple[frozenset[str], tuple[Expr, ...]]:
        """The numbers of rounds in which data decides whether what is staged runs, and what then holds of sizes."""
        return self._undecided, self._said

    @contextmanager
    def in_a_round(self, by_data: bool, where: Expr | None) -> Iterator[None]:
        """A block of what runs in some rounds alone, where data decides it, and where a condition on sizes holds."""
        outer = self._undecided, self._said
        if by_data:
            self._undecided = frozenset(self._counters & self._sizes.keys())
        if where is not None:
            self._said = *self._said, where
        try:
            with self.divided.in_a_round():
                yield
        finally:
            self._undecided, self._said = outer

    # -- statements ------------------------------------------------------------------------------------------

    def tensor(self, name: str) -> Tensor:
        """The declaration of an input or a tensor made so far."""
        return self._declared[name]

    def knows(self, name: str) -> bool:
        """Whether an input or a statement makes a tensor of that name."""
        return name in self._declared

    def number(self, name: str) -> Expr | None:
        """The size that the only cell of an input is, if that is an integer which indices are made of."""
        return self._numbers.get(name)

    def set_number(self, name: str, size: Expr) -> None:
        """Say that the input ``name`` holds the integer ``size``."""
        self._numbers[name] = size

    def writer(self, name: str) -> Statement | None:
        """The statement that has made a tensor, where it may have left cells unwritten; ``None`` for all others."""
        return self.written.writer(name)

    def all_written(self, name: str) -> None:
        """Say that all cells of a tensor have been found to be written."""
        self.written.all_written(name)

    def rows(self, name: str) -> RowRanks | None:
        """The rows of a tensor, if it has others than output axes."""
        return self._rows.get(name)

    def set_rows(self, name: str, rows: RowRanks) -> None:
        """Say which axes of a tensor are batch and input axes."""
        if rows.plain:
            self._rows.pop(name, None)
        else:
            self._rows[name] = rows

    def fresh_name(self, hint: str) -> str:
        """``hint`` if no tensor has that name, else ``hint_2``, ``hint_3``, ..."""
        self._names.given_up(name for name in self._ended if name not in self._retired)
        self._ended.clear()
        return self._names.free(hint)

    def record(self, sketch: Sketch, label: str) -> SymbolicTensor:
        """Infer the ranges of ``sketch``, add its statements, and return the tensor that it makes."""
        self._open_extents(sketch)
        resolved = resolve(sketch, self) if self._sizes else resolve_equal(sketch, self)
        for assertion in resolved.assertions:
            self._require(assertion)
        # Statements are known by what they write; labels are for comments in the source.
        *parts, made = resolved.tensors
        made = with_declared_extents(made, sketch.extents, self._open, existing=bool(sketch.previous))
        self.append([replace(statement, label="") for statement in resolved.statements], (*parts, made))
        last = resolved.statements[-1]
        self.written.recorded(last, sketch.conditions, sketch.resets, sketch.weak)
        return SymbolicTensor(self, made.name, made.dtype, made.shape, label)

    def check_recurrence(self, statement: Statement, previous: str, parts: Sequence[Statement] = ()) -> None:
        """Require that a statement on the tensor ``previous`` reads nothing that it is itself to write first.

        Neither do ``parts``, the statements that compute parts of its value.
        """
        if self.written.writer(previous) is not None:
            for assertion in recurrence_assertions(statement, self._declared[previous], parts, self):
                self._require(assertion)

    def append(self, statements: Sequence[Statement], tensors: Sequence[Tensor]) -> None:
        """Add statements whose domains are known, with the declarations of what they make."""
        self._retired.check(statements, self._sizes)
        if self._comment and statements:
            statements = [replace(statements[0], label=self._comment), *statements[1:]]
            self._comment = ""
        for tensor in tensors:
            self._declared[tensor.name] = tensor
        for statement in statements:
            self.written.appended(statement)
        self.recording.tensors.extend(tensors)
        self.recording.statements.extend(statements)

    def add_repeat(self, repeat: Repeat, tensors: Sequence[Tensor]) -> None:
        """Add a loop that runs, with the declarations of its results."""
        for tensor in tensors:
            self.declare(tensor)
        self.recording.tensors.extend(tensors)
        self.recording.repeats.append(repeat)

    def declare(self, tensor: Tensor) -> None:
        """Know a tensor, which something is about to make."""
        self._declared[tensor.name] = tensor

    def stores(self, memory: SymbolicTensor) -> None:
        """Something is about to be stored into ``memory``."""
        self.recording.stored.setdefault(id(memory), (memory, memory.name, memory.element_type))

    def copies(self, memory: SymbolicTensor) -> None:
        """``memory`` has been made, of what other memory holds."""
        self.recording.copies.append(memory)

    def comment(self, text: str) -> None:
        """A comment on the statements that are added next."""
        self._comment = f"{self._comment}; {text}" if self._comment else text

    def add_statement(self, statement: Statement, tensor: Tensor) -> None:
        """Add one statement whose domain is known, with the declaration of what it makes."""
        self.append((statement,), (tensor,))

    def add_rule(self, rule: DerivativeRule) -> None:
        """Say how tensors that have been made are to be differentiated."""
        self.recording.rules.append(rule)

    @property
    def assertions(self) -> tuple[Assertion, ...]:
        """What holds at every call."""
        return tuple(self._assertions)

    @property
    def sizes_of_assertions(self) -> Mapping[Assertion, frozenset[str]]:
        """What holds at every call, and the names of the sizes in it: each body asks about all of them."""
        return self._assertions

    # -- nested recordings (`tcdsl.frontend.staging.subprograms`) -----------------------------------------------

    @contextmanager
    def nested(self) -> Iterator[Recording]:
        """A block whose statements make a recording of their own, which is no part of this program.

        They may read all tensors that are known here; what they make is known in the block alone. Inputs, sizes and
        assertions are this program's.
        """
        outer = self.recording
        inner = self.recording = Recording(frozenset(self._open))
        try:
            yield inner
        finally:
            self.recording = outer
            for tensor in (*inner.tensors, *inner.placeholders):
                del self._declared[tensor.name]
                self.written.forget(tensor.name)
                self._ended.append(tensor.name)

    def counter(self, label: str, size: str) -> Tensor:
        """A placeholder whose extent is a size of its own: the number of a round of a loop."""
        size = FreshNames(self._sizes).fresh(domain_name(size))
        made = self.placeholder(label, "bool", (SizeValue(size),))
        self.learn((Size(size, AxisExtent(made.name, 0)),), ())
        self._counters.add(size)
        return self.tensor(made.name)

    def learned(self) -> Learned:
        """What is known of sizes now, to be forgotten later."""
        return Learned(dict(self._sizes), dict(self._assertions), frozenset(self._open))

    def forget_since(self, learned: Learned) -> Learned:
        """Forget all sizes and assertions that are not in ``learned``; those that were."""
        since = self.learned().since(learned, self._inputs)
        self._retired.sizes |= since.sizes
        for name in since.sizes:
            del self._sizes[name]
        self._sizes.update(learned.sizes)
        self._assertions = dict(learned.assertions)
        self._open = set(learned.open_sizes)
        self._known = None
        return since

    def learn(self, sizes: Iterable[Size], assertions: Iterable[Assertion]) -> None:
        """Know these sizes and assertions (again)."""
        self._sizes.update((size.name, size) for size in sizes)
        self._known = None
        for assertion in assertions:
            self._require(assertion)

    def placeholder(self, label: str, dtype: str, extents: Sequence[Expr]) -> SymbolicTensor:
        """A tensor without cells, which the statements of a nested recording may read."""
        tensor = Tensor(self.fresh_name(label), dtype, tuple(extents), label)
        self._declared[tensor.name] = tensor
        self.recording.placeholders.append(tensor)
        return SymbolicTensor(self, tensor.name, dtype, tensor.shape, label)

    def retire(self, labels: Mapping[str, str], owner: str = DIFFERENTIATED) -> None:
        """Never use these names again, unless they are those of tensors now: something may still hold the old ones."""
        self._retired.add({name: label for name, label in labels.items() if name not in self._declared}, owner)

    def program(self, outputs: Sequence[str], updates: Sequence[tuple[str, str]] = ()) -> Program:
        """The program so far, returning ``outputs`` and writing ``updates``."""
        program = Program(
            self.name,
            tuple(self._inputs),
            self.sizes(self._sizes),
            tuple(self.recording.tensors),
            tuple(self.recording.statements),
            tuple(outputs),
            tuple(updates),
            assertions_in_words(self._assertions, self.spoken()),
            tuple(self.recording.rules),
            tuple(self.recording.repeats),
        )
        return with_equal_sizes(in_order(program), inputs=False)
