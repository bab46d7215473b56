"""Decorated functions called with tensors: an `@op` gives tensors, a `@cd` function gives code.

The body runs once, as for arrays. Expressions of tensors make nodes of the graph; tensor statements are staged, with
the tensors that they read as inputs, and what they compute becomes nodes too (`tcdsl.tensors.graph_staging.fragments`).

Arithmetic there is of what is staged, and of tensors of unknown shape. A tensor of known shape is an input of the
program that is being staged. Beside one whose shape is not known yet, what is staged becomes a tensor of the graph, and
the operation a node.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcdsl.errors import DslSyntaxError, TcdslError
from tcdsl.frontend.running_loops.run_time_checks import passed
from tcdsl.frontend.staging.loop_choices import LoopChoices, RunInProgram
from tcdsl.frontend.staging.run_time_integers import RunsOnTensors, ShapesFound, Specialize, UnknownShapes
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.surroundings.reachable import called_readings
from tcdsl.frontend.symbols.known_integers import known
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber, SymbolicSize
from tcdsl.ir.build import cast
from tcdsl.ir.expressions import Read
from tcdsl.rows.inference import Origin, all_or_nothing, close, keeping
from tcdsl.runtime.calling.arguments import hashable
from tcdsl.runtime.calling.results import as_tensor
from tcdsl.runtime.calling.structure import flatten
from tcdsl.runtime.decorated import returns_nothing
from tcdsl.simplification.simplify import without_dead_statements
from tcdsl.tensors.functions.equal_code import EqualCode
from tcdsl.tensors.functions.parameters import DeclaredLater, Parameters
from tcdsl.tensors.functions.tensor_operators import Mixed, OfRounds, ShapesOfRounds
from tcdsl.tensors.functions.waiting_calls import Promised, waiting
from tcdsl.tensors.graph_linking.code import Assignments, Code
from tcdsl.tensors.graph_linking.late_reads import late_reads
from tcdsl.tensors.graph_staging.fragments import exported, without_unread_inputs
from tcdsl.tensors.graph_staging.graph_recordings import InputRecording, recording_session
from tcdsl.tensors.graph_staging.state import CodeState, StateShape
from tcdsl.tensors.graphs.graph_operators import as_operand
from tcdsl.tensors.graphs.location import fault
from tcdsl.tensors.graphs.settings import Setting
from tcdsl.tensors.graphs.tensor import Tensor
from tcdsl.tracebacks import user_location

if TYPE_CHECKING:
    from tcdsl.runtime.function import DecoratedFunction

__all__ = ["call_op", "code_of", "tensors_session"]


def call_op(
    function: DecoratedFunction,
    positional: Sequence[tuple[str, Any]],
    configuration: Mapping[str, Any],
    scope: Parameters,
) -> Any:
    """An op on tensors gives tensors, on arrays arrays; what it declares goes to ``scope``."""
    if not positional or any(isinstance(value, Tensor) for _, value in positional):
        return _tensors(function, [value for _, value in positional], configuration, scope)
    from tcdsl.tensors.graph_linking.asked_values import evaluate

    result = _tensors(function, [_as_tensor(value) for _, value in positional], configuration, scope)
    leaves, structure = flatten(result, lambda value: isinstance(value, Tensor))
    evaluate(leaves)
    return structure.build([np.asarray(leaf) for leaf in leaves])


def _as_tensor(value: Any) -> Any:
    from tcdsl.tensors.graphs.literals import tensor

    return tensor(value) if hasattr(value, "__array__") else value


def _tensors(
    function: DecoratedFunction,
    given: Sequence[Any],
    configuration: Mapping[str, Any],
    scope: Parameters,
    chosen: LoopChoices | None = None,
) -> Any:
    # With loops that are ``chosen`` already it is staged as a whole.
    loops, whole = chosen or LoopChoices(), chosen is not None
    first: TcdslError | None = None
    while True:
        loops.begin()
        try:
            if whole:
                return _whole(function, given, configuration, scope, loops)
            return _called(function, given, configuration, scope, Mixed(), loops)
        except RunsOnTensors:
            # Of tensors whose shapes are not known yet only Python's loops can be.
            whole = True
        except RunInProgram as needed:
            loops.run(needed.loop)
        except DeclaredLater:
            pass  # what has been said so far is kept
        except Specialize as needed:
            if not loops.unroll(needed.parameters):
                raise
            whole = False
        except TcdslError as error:
            if first is None and not whole and _loops(function):
                # Rounds, and what is declared for them, may need sizes, which are known of the whole.
                first, whole = error, True
            else:
                loops.leave_to_python(first or error, ())
                whole = False


def _loops(function: DecoratedFunction) -> bool:
    return any(isinstance(node, ast.For | ast.While | ast.If) for node in ast.walk(function.source.definition))


def _whole(
    function: DecoratedFunction,
    given: Sequence[Any],
    configuration: Mapping[str, Any],
    scope: Parameters,
    loops: LoopChoices,
) -> Any:
    # It has loops over what its tensors hold.
    try:
        return _called(function, given, configuration, scope, OfRounds(), loops)
    except UnknownShapes:
        pass
    shapes = ShapesOfRounds()
    with scope.call(), keeping(), all_or_nothing():
        promised = _called(function, given, configuration, scope, shapes, loops)
        operands = [each for each in (*given, *shapes.met) if isinstance(each, Tensor)]
        unknown = [each for each in operands if not each.rows.is_known]
        shapes_of_results = [each for each in promised.shapes if each is not None]
        if not unknown or len(shapes_of_results) < len(promised.shapes):
            close([each.rows for each in unknown], Origin(user_location(), operands=tuple(e.label for e in unknown)))
            loops.begin()
            return _called(function, given, configuration, scope, OfRounds(), loops)
    return waiting(
        function.__name__,
        promised.structure,
        shapes_of_results,
        list({id(each): each for each in operands}.values()),
        lambda: _tensors(function, given, configuration, scope, loops),
    )


def _called(
    function: DecoratedFunction,
    given: Sequence[Any],
    configuration: Mapping[str, Any],
    scope: Parameters,
    algebra: Mixed,
    loops: LoopChoices,
) -> Any:
    # As a whole it is staged on what its tensors are as arrays.
    whole = type(algebra) is not Mixed
    with (
        tensors_session(function.__name__, algebra) as (session, recording),
        session.within(oob=function.oob),
    ):
        session.read(called_readings(configuration))
        session.may_be_whole, session.loops = not whole, loops
        session.shapes = algebra if isinstance(algebra, ShapesOfRounds) else None
        recording.whole = isinstance(algebra, OfRounds)
        values = [known(_operand(each)) for each in given]
        tensors = [value for value in values if isinstance(value, Tensor)]
        recording.meet(tensors)
        # What a call says of an op's parameters holds also where its result is dropped, and not where the call fails.
        with scope.call(), keeping(), all_or_nothing():
            if whole:
                names = function.template.parameters
                values = [
                    recording.lift(value, names[k] if k < len(names) else "x") if _is_known(value) else value
                    for k, value in enumerate(values)
                ]
            result = function.template.run(function.receiver, *values, **configuration)
            if isinstance(algebra, ShapesOfRounds):
                return Promised(recording, result)
        if result is None:
            raise returns_nothing(function).error()
        return _results(function, recording, result, tensors)


def _is_known(value: Any) -> bool:
    return isinstance(value, Tensor) and value.rows.is_known


def _operand(value: Any) -> Any:

    return as_operand(value) if hasattr(value, "__array__") and not isinstance(value, np.generic) else value


def _results(function: DecoratedFunction, recording: InputRecording, result: Any, given: Sequence[Tensor]) -> Any:
    from tcdsl.frontend.staging.declarations import DeclaredTarget, Unwritten

    kinds = SymbolicArray | SymbolicNumber | SymbolicSize | Tensor | np.ndarray | Unwritten | DeclaredTarget
    leaves, structure = flatten(result, lambda value: isinstance(value, kinds))
    for leaf in leaves:
        if isinstance(leaf, Unwritten | DeclaredTarget):
            raise leaf.fault()
    numbers = SymbolicNumber | SymbolicSize
    session, name = recording.session, function.__name__
    leaves = [as_tensor(session, leaf, name) if isinstance(leaf, numbers) else leaf for leaf in leaves]
    staged = [leaf for leaf in leaves if isinstance(leaf, SymbolicArray)]
    made = iter(exported(recording, staged))
    tensors = [next(made) if isinstance(leaf, SymbolicArray) else _operand(leaf) for leaf in leaves]
    labels = next((each.labels for each in given), ())
    for tensor in tensors:
        if isinstance(tensor, Tensor) and not tensor.is_leaf and not tensor.labelled:
            name = function.__name__ if len(tensors) == 1 else f"{function.__name__}.{tensor.labels[0]}"
            tensor.labels, tensor.labelled = (name, *labels), True
    return structure.build(tensors)


# -- code --------------------------------------------------------------------------------------------------------------


def code_of(function: DecoratedFunction, positional: Sequence[tuple[str, Any]], given: Mapping[str, Any]) -> Code:
    """A `@cd` function on tensors gives code."""
    configuration = {
        name: float(value) if isinstance(value, np.floating) else hashable(function.__name__, name, value)
        for name, value in given.items()
    }
    _find_shapes(function, positional, configuration)
    equal = EqualCode(function, positional, configuration)
    known_code = equal.found()
    if known_code is not None:
        return Code([known_code])
    states = CodeState(function, positional, configuration)
    constants: dict[str, Any] = {}
    while True:
        try:
            made = _recorded(function, positional, configuration, states, constants)
            equal.keep(made, states)
            return Code([made])
        except Specialize as needed:
            constants.update({name: configuration[name] for name in needed.parameters if name in configuration})
        except StateShape as found:
            found.states.make(found)


def _find_shapes(
    function: DecoratedFunction, positional: Sequence[tuple[str, Any]], configuration: Mapping[str, Any]
) -> None:
    # Statements may say what shapes parameters have, before these are asked. What fails here fails again afterwards.
    given = [value for _, value in positional if isinstance(value, Tensor)]
    unknown = [each for each in given if not each.rows.is_known]
    if not unknown:
        return
    states = CodeState(function, positional, configuration)
    with suppress(TcdslError, Specialize, StateShape), all_or_nothing(), suppress(ShapesFound):
        _recorded(function, positional, configuration, states, configuration, unknown)


def _recorded(
    function: DecoratedFunction,
    positional: Sequence[tuple[str, Any]],
    configuration: Mapping[str, Any],
    states: CodeState,
    constants: Mapping[str, Any],
    unknown: Sequence[Tensor] = (),
) -> Assignments:
    with (
        tensors_session(function.__name__, memory=True) as (session, recording),
        session.within(oob=function.oob, states=states.begin(recording)),
    ):
        settings: dict[str, Setting] = {}
        recording.meet([value for _, value in positional if isinstance(value, Tensor)])
        recording.sought, left = [*unknown], set(map(id, unknown))
        values = [
            recording.lift(value, name) if isinstance(value, Tensor) and id(value) not in left else value
            for name, value in positional
        ]
        given = {
            name: value if name in constants else _setting(session, name, value, settings)
            for name, value in configuration.items()
        }
        function.template.run(function.receiver, *values, **given)
        return _assignments(function.__name__, session, recording, settings)


def _setting(session: Session, name: str, value: Any, settings: dict[str, Setting]) -> Any:
    # A float is a number of the run, so that a schedule of learning rates compiles once.
    if type(value) not in (int, float):
        return value
    kind = type(value).__name__
    setting = Setting(name, "int64" if kind == "int" else "float64", value)
    made = session.builder.fixed_input(name, setting.dtype, ())
    settings[made.name] = setting
    return SymbolicNumber(
        session.builder, cast(Read(made.name, (), (), made.dtype), made.dtype), kind, frozenset((name,))
    )


def _assignments(
    name: str, session: Session, recording: InputRecording, settings: Mapping[str, Setting]
) -> Assignments:
    behind: dict[str, Any] = dict(settings)
    outputs: dict[Any, str] = {}
    for buffer, staged in recording.buffers.items():
        original = recording.names[buffer]
        behind[original] = buffer
        if staged.name != original:
            if buffer.kind == "value" and not buffer.owner.is_leaf:
                raise fault(
                    DslSyntaxError,
                    f"`{name}` stores into `{buffer.owner.label}`, which is computed from other tensors",
                    "store into a leaf: a parameter, or a tensor made with tc.tensor(...)",
                )
            [held] = passed(session, [staged])
            outputs[buffer] = held.name
    program = session.builder.program(tuple(outputs.values()))
    late = late_reads(program, [behind[each.name] for each in program.inputs], recording.versions)
    # What memory holds in between is read by what is computed there.
    kept = dict.fromkeys((*program.outputs, *(name for _, stored in late for _, name in stored)))
    program = replace(without_dead_statements(replace(program, outputs=tuple(kept))), outputs=program.outputs)
    program, inputs = without_unread_inputs(program, [behind[each.name] for each in program.inputs])
    late = tuple(each for each in late if each[0] in inputs)
    return Assignments(name, program, tuple(inputs), tuple(outputs), late)


@contextmanager
def tensors_session(
    name: str, algebra: Mixed | None = None, memory: bool = False
) -> Iterator[tuple[Session, InputRecording]]:
    """A staging run of a decorated function on tensors; with ``memory`` its statements may store into them."""
    algebra = Mixed() if algebra is None else algebra
    with recording_session(name, algebra, memory) as (session, recording):
        algebra.recording = recording
        yield session, recording
