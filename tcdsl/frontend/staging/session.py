"""One staging run: the program under construction and everything that the run has learned or assumed.

A session belongs to one call of a decorated function (or of `tcdsl.grad` and the like) that found no program for its
arguments. What it assumed beyond ranks and types, such as that an axis has extent 1 and broadcasts, is kept as guards,
and the program serves every later call for which they hold.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import CodeType, FrameType
from typing import Any

from tcdsl.errors import Diagnostic, DslSyntaxError, DtypeError, ShapeError, TcdslError, raise_diagnostics
from tcdsl.frontend.staging.active_session import ACTIVE_SESSION
from tcdsl.frontend.staging.builder import ProgramBuilder
from tcdsl.frontend.staging.given_arrays import element_type, given_array, instead_of
from tcdsl.frontend.staging.loop_choices import LoopChoices, asked_for
from tcdsl.frontend.staging.program_inputs import CapturedArray, DrawnKey, ViewOf
from tcdsl.frontend.staging.run_time_integers import RunTimeIntegers
from tcdsl.frontend.surroundings.array_changes import ArrayChanges
from tcdsl.frontend.surroundings.array_uses import ArrayUses, owner_of
from tcdsl.frontend.surroundings.draws import KEY_TYPE
from tcdsl.frontend.surroundings.readings import Reading
from tcdsl.frontend.symbols.graph_tensors import GraphRecording, GraphShapes, GraphTensor, KeptTensors
from tcdsl.frontend.symbols.operators import Algebra
from tcdsl.frontend.symbols.point_calls import AtEachPoint, PointCalls
from tcdsl.frontend.symbols.retired_values import changed_in_place
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicTensor
from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Expr
from tcdsl.ir.program import AxisExtent
from tcdsl.ir.sizes.size_binding import evaluate_size
from tcdsl.ir.sizes.spoken_sizes import error_in_words
from tcdsl.ir.text.expression_printer import format_expr
from tcdsl.polyhedra.affine import NotAffine
from tcdsl.span import Span

__all__ = [
    "ACTIVE_SESSION",
    "BroadcastGuard",
    "Poison",
    "Session",
    "StagingContext",
    "StagingStopped",
    "broadcast_relation",
    "current_session",
]


class StagingStopped(BaseException):
    """Something used a tensor whose statement has a fault; the fault itself is already recorded."""


class Poison:
    """Stands for a tensor whose statement has a fault, so that one fault does not cause others."""

    def __getattr__(self, name: str) -> Any:
        raise StagingStopped

    def _stop(self, *_: object) -> Any:
        raise StagingStopped

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __matmul__ = _stop
    __rmatmul__ = __neg__ = __pos__ = __getitem__ = __iter__ = __bool__ = __pow__ = __rpow__ = __call__ = _stop
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __lt__ = __le__ = __gt__ = __ge__ = __index__ = __len__ = _stop
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = _stop
    __rxor__ = __invert__ = __abs__ = __divmod__ = __rdivmod__ = __round__ = __trunc__ = __format__ = _stop
    __setitem__ = __delitem__ = __enter__ = __exit__ = _stop


@dataclass(frozen=True, slots=True)
class BroadcastGuard:
    """What staging found about two extents that meet in whole-array arithmetic.

    ``relation`` is ``equal``, ``left`` (the left one is 1 and broadcasts) or ``right``; ``same`` where the program
    serves no call in which they differ, ``most`` where it serves none in which the left one is larger.
    """

    left: Expr
    right: Expr
    relation: str


def broadcast_relation(left: int, right: int) -> str:
    """The ``relation`` of two extents, as in a `BroadcastGuard`."""
    if left == right:
        return "equal"
    if left == 1:
        return "left"
    return "right" if right == 1 else "equal"


# A function that waits for itself so often has no end, as Python says of its own.
_MOST_CALLS = 1000


def _nowhere() -> Span | None:
    return None


@dataclass(frozen=True, slots=True)
class StagingContext:
    """What holds around the statements that are being staged; ``with session.within(oob="skip"): ...`` changes it.

    ``oob`` is what happens where a data index is out of range. ``tracing_rules`` are the derivative rules that are
    being traced: in its own rule an operation is what its statements say. ``slots`` says what the slot names of a
    function with projections stand for. ``graph`` is how tensors of graphs get into the program; without one they are
    arrays like any other. ``states`` are the tensors that code on tensors of graphs keeps from run to run.
    ``outer_location`` is the place of what is staged outside of decorated functions. ``point_calls`` are the calls in
    the statement that is being evaluated, ``at_points`` says that one is being made on scalars at a point, and
    ``letters`` are the index variables in what functions that are being called so are given.
    """

    oob: str = "check"
    tracing_rules: tuple[object, ...] = ()
    slots: Mapping[str, Any] = field(default_factory=dict)
    graph: GraphRecording | None = None
    states: KeptTensors | None = None
    outer_location: Callable[[], Span | None] = _nowhere
    point_calls: PointCalls | None = None
    at_points: bool = False
    letters: frozenset[str] = frozenset()

    def traces(self, rules: object) -> bool:
        """Whether ``rules`` are being traced."""
        return any(rules is each for each in self.tracing_rules)


def current_session() -> Session | None:
    """The staging run in progress in this thread, if any."""
    session: Session | None = ACTIVE_SESSION.get()
    return session


class Session:
    """The state of one staging run."""

    def __init__(self, name: str, algebra: Algebra) -> None:
        self.builder = ProgramBuilder(name, algebra)
        self.builder.divided.location = self.location
        self.extents: dict[str, int] = _Extents(self.builder)
        self.guards: dict[BroadcastGuard, None] = {}
        #: How many states of a loop a derivative of what is staged keeps; 0 for all.
        self.checkpoints = 0
        #: Whether what is staged has the tapes of a gradient.
        self.tapes = False
        self.captured: list[CapturedArray] = []
        self.integers = RunTimeIntegers(self)
        self.faults: list[Diagnostic] = []
        self.uses = ArrayUses()
        self.changes = ArrayChanges()
        #: How often each function is being called, one call within another.
        self._waiting: Counter[CodeType] = Counter()
        self.filenames = self.uses.runs.filenames
        #: Where decorated functions bind a name in front of a line, by their code.
        self.binders: dict[CodeType, Callable[[str, int], Span | None]] = {}
        self.readings: list[Reading] = []
        self.context = StagingContext()
        #: The loops that run, innermost last, while their bodies are staged.
        self.running: list[Any] = []
        self._located: Span | None = None
        #: Whether all checks of the user's that have been recorded have passed, if there are any.
        self.checked: SymbolicTensor | None = None
        #: What staging loops and branches has found, by what they are and the states in which they began.
        self.settled: dict[Any, Any] = {}
        #: Whether a loop over what tensors of a graph hold may ask for the function to be staged as a whole.
        self.may_be_whole = False
        #: What notes shapes of tensors of a graph, where it is these alone that the function is staged for.
        self.shapes: GraphShapes | None = None
        #: Which loops over integers of Python's run.
        self.loops = LoopChoices(fixed=True)
        #: Whether the rounds of these loops of Python's were left, where that is data.
        self.left: dict[Any, Any] = {}
        #: The names that each round of these loops of Python's, in these frames, makes anew, and how many loops run.
        self.renewed: dict[tuple[Any, Any], tuple[frozenset[str], int]] = {}
        #: The lists that Python has joined or repeated, by id.
        self.python_lists: dict[int, Any] = {}
        #: How many tensors of random numbers have been drawn.
        self.draws = 0
        #: The values that plain Python would have changed in place, in turn, and where.
        self.replacements: list[tuple[Any, Span]] = []
        #: The tensors of graphs that plain Python would have changed in place, by id, and where.
        self.replaced: dict[int, tuple[Any, Span]] = {}

    def replace_tensor(self, tensor: GraphTensor) -> None:
        """An operator in place of plain Python is making another tensor of this one."""
        where = self.location()
        while tensor is not None and where is not None:
            self.replaced[id(tensor)] = tensor, where
            tensor = tensor.base

    def refuse_replaced(self, tensor: Any) -> None:
        """An error if a tensor of a graph is read after plain Python would have changed it in place."""
        label = getattr(tensor, "label", "")
        while self.replaced and isinstance(tensor, GraphTensor):
            if id(tensor) in self.replaced:
                raise changed_in_place(self.replaced[id(tensor)][1], label)
            tensor = tensor.base

    @contextmanager
    def checking_anew(self) -> Iterator[None]:
        """A block whose checks are its own."""
        outer, self.checked = self.checked, None
        try:
            yield
        finally:
            self.checked = outer

    @contextmanager
    def active(self) -> Iterator[Session]:
        """Make this the current session; faults of statements are raised together at the end."""
        try:
            with self._active():
                yield self
        except TcdslError as error:
            error_in_words(error, self.builder.spoken())
            raise

    @contextmanager
    def _active(self) -> Iterator[None]:
        token = ACTIVE_SESSION.set(self)
        try:
            yield
        except StagingStopped:
            raise_diagnostics(self.faults)
            raise
        except Exception as error:
            asked = asked_for(error)
            if asked is not error:
                if isinstance(asked, StagingStopped):
                    raise_diagnostics(self.faults)
                raise asked from None
            if self.faults and isinstance(error, TcdslError):
                raise_diagnostics([*self.faults, *error.diagnostics])
            raise
        finally:
            ACTIVE_SESSION.reset(token)
        raise_diagnostics([*self.faults, *map(_changed_array, self.changes.found())])

    @contextmanager
    def waiting_for(self, code: CodeType) -> Iterator[None]:
        """A block in which a function of the user's runs. `RecursionError` if it calls itself without an end."""
        if self._waiting[code] >= _MOST_CALLS:
            raise RecursionError(code.co_name)
        self._waiting[code] += 1
        try:
            yield
        finally:
            self._waiting[code] -= 1

    @contextmanager
    def within(self, **changes: Any) -> Iterator[None]:
        """A block in which the context is another one: ``changes`` are fields of `StagingContext`."""
        outer = self.context
        self.context = replace(outer, **changes)
        try:
            yield
        finally:
            self.context = outer

    def needs_one_point(self) -> None:
        """What comes now is for one point: a function that a statement calls is called for each of them."""
        if self.context.at_points:
            raise AtEachPoint

    def read(self, readings: Sequence[Reading], own: CodeType | None = None) -> None:
        """What is staged from here on may depend on these; ``own`` is the code of the function, if it is decorated."""
        self.readings.extend(readings)
        self.uses.expect(readings)
        self.changes.expect(readings, own)

    # -- what ordinary Python asks ---------------------------------------------------------------------------

    def broadcast_relation(self, left: Expr, right: Expr) -> str:
        """How two extents meet in whole-array arithmetic, decided by this call's sizes and kept as a guard.

        Of extents that differ from round to round no call says it: there ``x[t:t + 1]`` stretches, as it has a cell or
        none in every round.
        """
        try:
            relation = broadcast_relation(self.evaluate(left), self.evaluate(right))
        except KeyError:
            if self._stretches(left, right) or self._stretches(right, left):
                return "left" if self._stretches(left, right) else "right"
            relation = "equal"
        self.guards[BroadcastGuard(left, right, relation)] = None
        return relation

    def knows(self, *extents: Expr) -> bool:
        """Whether this call says what extents are: in a round of a loop they may differ from round to round."""
        try:
            return bool([self.evaluate(each) for each in extents])
        except KeyError:
            return False

    def _stretches(self, extent: Expr, other: Expr) -> bool:
        return self._is_thin(extent) and (other == integer(0) or not self._is_thin(other))

    def _is_thin(self, extent: Expr) -> bool:
        # Whether an extent is never above 1.
        try:
            return self.builder.known().never(apply("gt", extent, integer(1)))
        except NotAffine:
            return False

    def are_same(self, left: Expr, right: Expr) -> bool:
        """Whether two extents are the same in this call. That they are is kept as a guard."""
        try:
            found = self.evaluate(left) == self.evaluate(right)
        except KeyError:
            return False
        if found:
            self.guards[BroadcastGuard(left, right, "same")] = None
        return found

    def is_negative(self, expr: Expr) -> bool:
        """Whether an expression of sizes is below 0 in this call. That it is, or is not, is kept as a guard."""
        try:
            found = self.evaluate(expr) < 0
        except ZeroDivisionError:
            hint = "divide by a number that is not 0"
            raise self.fault(ShapeError, f"the index {format_expr(expr)} divides by zero", hint) from None
        least, most = (expr, integer(-1)) if found else (integer(0), expr)
        self.guards[BroadcastGuard(least, most, "most")] = None
        return found

    def least(self, numbers: Sequence[Expr]) -> int:
        """Which of these expressions of sizes is the least in this call; the first where no call says it.

        That no other one is below it is kept as guards.
        """
        try:
            values = [self.evaluate(each) for each in numbers]
        except (KeyError, ZeroDivisionError):
            return 0
        found = values.index(min(values))
        for other in (*numbers[:found], *numbers[found + 1 :]):
            self.guards[BroadcastGuard(numbers[found], other, "most")] = None
        return found

    def evaluate(self, expr: Expr) -> int:
        """An expression of sizes for this call. ``KeyError`` where there is no call."""
        return evaluate_size(expr, self.extents)

    def capture(self, value: Any, label: str = "") -> SymbolicTensor:
        """The input for an array of the function's surroundings; the same one for the same array."""
        graph = self.context.graph
        self.refuse_replaced(value)
        if isinstance(value, GraphTensor) and graph is not None:
            lifted: SymbolicTensor = graph.lift(value, label)
            return lifted
        found = [reading for reading in self.readings if reading.seen is value]
        view = None
        if not found:
            owner = owner_of(value, [reading.seen for reading in self.readings])
            if owner is not None:
                view = ViewOf.between(value, owner)
                found = [reading for reading in self.readings if reading.seen is owner]
        reading = found[0] if found else None
        if reading is not None:
            self.uses.note(reading.seen, sys._getframe(1))
            label = reading.label
        for captured in self.captured:
            if captured.value is value or (view is not None and (captured.reading, captured.view) == (reading, view)):
                known = self.builder.tensor(captured.tensor)
                return SymbolicTensor(self.builder, known.name, known.dtype, known.shape, known.label)
        array = given_array(value, label, span=self.location())
        label = label or "constant"
        if array is None:
            fact = f"`{label}` is a {type(value).__name__}, which cannot be read as an array"
            raise self.fault(DtypeError, fact, instead_of(value, label) or "use arrays and numbers")
        if graph is not None:
            held: SymbolicTensor = graph.hold(value, array, label)
            return held
        if reading is None and value is array:
            # Made while staging, as by `np.zeros(256)`: every call has this one.
            made = self.builder.fixed_input(label, element_type(array), array.shape)
            tensor = SymbolicTensor(self.builder, made.name, made.dtype, made.shape, label)
        else:
            tensor = self.builder.input(label, element_type(array), array.ndim)
            for declared, extent in zip(tensor.extents, array.shape, strict=True):
                self.extents[declared.name] = extent  # type: ignore[union-attr]
        self.captured.append(CapturedArray(tensor.name, value, reading, view))
        return tensor

    def key(self) -> SymbolicTensor:
        """The input for the key of the call's random numbers, of rank 0; tensors of graphs have one for each node."""
        if self.context.graph is not None:
            held: SymbolicTensor = self.context.graph.key()
            return held
        names = [each.tensor for each in self.captured if isinstance(each, DrawnKey)]
        if not names:
            names = [self.builder.input("key", KEY_TYPE, 0).name]
            self.captured.append(DrawnKey(names[0], None))
        return SymbolicTensor(self.builder, names[0], KEY_TYPE, (), "key")

    @contextmanager
    def located(self, span: Span | None) -> Iterator[None]:
        """A block that does what the user's expression at ``span`` has left to be done."""
        outer, self._located = self._located, span
        try:
            yield
        finally:
            self._located = outer

    def location(self) -> Span | None:
        """The user's expression that is being executed."""
        if self._located is not None:
            return self._located
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename in self.filenames:
                return Span.executed(frame, frame.f_lasti)
            frame = frame.f_back  # type: ignore[assignment]
        return self.context.outer_location()

    def python_loops(self) -> list[object]:
        """The loops that Python goes through at present, those outside first."""
        return [loop for loop, _ in self.renewed]

    def binder(self, name: str) -> Span | None:
        """Where the function that is being executed has bound ``name``, if it did so before its present line.

        A function inside of it has names of its own, and those that it takes from around it.
        """
        frame: FrameType | None = sys._getframe(1)
        inside: CodeType | None = None
        line = 0
        while frame is not None:
            code = frame.f_code
            # Parts of rewritten statements are functions in it.
            if code.co_filename in self.filenames and code.co_name[0] != "<":
                bound_at = self.binders.get(code)
                if bound_at is not None:
                    within = inside is None or _contains(code, inside)
                    return bound_at(name, line or frame.f_lineno) if within else None
                if name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
                    return None
                if inside is None and name not in code.co_freevars:
                    line = frame.f_lineno
                inside = code
            frame = frame.f_back
        return None

    def fault(self, kind: type[TcdslError], fact: str, hint: str = "", notes: Sequence[str] = ()) -> TcdslError:
        """The exception for a fault of ordinary Python code in the decorated function, at the place being executed."""
        return kind.at(fact, self.location(), hint, notes=tuple(notes))


def _contains(code: CodeType, inner: CodeType) -> bool:
    parts = [each for each in code.co_consts if isinstance(each, CodeType)]
    return any(each is inner or _contains(each, inner) for each in parts)


def _changed_array(found: tuple[str, Span]) -> Diagnostic:
    name, span = found
    return Diagnostic(
        DslSyntaxError,
        f"Python changes the array `{name}` while the function is staged, which is once, and not at every call",
        span,
        hint="pass it to a @cd function as an argument, which it may change; or change it outside",
    )


class _Extents(dict[str, int]):
    """Sizes of this call, opaque ones evaluated on demand."""

    def __init__(self, builder: ProgramBuilder) -> None:
        super().__init__()
        self._builder = builder

    def __missing__(self, name: str) -> int:
        source = self._builder.size(name).source
        if isinstance(source, AxisExtent):
            raise KeyError(name)
        value = evaluate_size(source, self)
        if not self._builder.is_open(name):  # it may grow yet
            self[name] = value
        return value


def materialized(value: Any, label: str) -> Any:
    """``value`` with pending whole-array arithmetic recorded as a statement for ``label``; anything else as it is."""
    if not isinstance(value, PendingArray):
        return value
    made = value.materialize(label)
    session = current_session()
    if session is not None:
        session.integers.name(made.name, value)
    return made


def session_of(operation: str) -> Session:
    """The current session, or an error saying that ``operation`` belongs into a decorated function."""
    session = current_session()
    if session is None:
        raise DslSyntaxError.at(
            f"{operation} outside of a decorated function", hint="call it inside an @op or @cd function"
        )
    return session
