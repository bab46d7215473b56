"""Programs with loops, and the same programs without: their bodies as often as they run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tcdsl.ir.build import integer
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Apply, Constant, Expr, SizeValue, walk
from tcdsl.ir.fresh_names import names_of
from tcdsl.ir.interpreter.tensor_values import TensorValues
from tcdsl.ir.program import Assertion, DerivativeRule, Program, Repeat, Size, Statement, Tensor
from tcdsl.ir.sizes.size_binding import bind_sizes, evaluate_size
from tcdsl.ir.stages import stages
from tcdsl.polyhedra.boxes import over_box
from tcdsl.polyhedra.writes import read_cell
from tcdsl.rewrite.inlining import append_program
from tcdsl.span import Span

__all__ = ["unrolled"]


class _Unrolling:
    """A program while the bodies of its loops are written into it."""

    def __init__(self, program: Program, arrays: Sequence[np.ndarray]) -> None:
        sizes = bind_sizes(program, [array.shape for array in arrays])
        self.values = TensorValues(program, arrays, sizes)
        self.names = names_of(program)
        self.known = dict(sizes)
        self.sizes = list(program.sizes)
        self.tensors: dict[str, Tensor] = {tensor.name: tensor for tensor in program.inputs}
        self.statements: list[Statement] = []
        self.assertions = list(program.assertions)
        self.rules = list(program.rules)

    def fresh_name(self, hint: str) -> str:
        return self.names.fresh(hint)

    def opaque_size(self, expr: Expr) -> Expr:
        if isinstance(expr, SizeValue):
            return expr
        name = self.names.fresh("size")
        self.sizes.append(Size(name, expr))
        self.known[name] = evaluate_size(expr, self.known)
        return SizeValue(name)

    def require(self, condition: Expr, message: str, span: Span | None = None) -> None:
        self.assertions.append(Assertion(condition, message, span))

    def add_statement(self, statement: Statement, tensor: Tensor) -> None:
        self.tensors[tensor.name] = tensor
        self.statements.append(statement)

    def add_rule(self, rule: DerivativeRule) -> None:
        self.rules.append(rule)

    def add_repeat(self, repeat: Repeat, tensors: Sequence[Tensor]) -> None:
        body = repeat.body
        counter, *inputs = body.inputs
        step = replace(body, outputs=tuple(new for _, new in body.updates), updates=())
        state = dict(zip((each.name for each in inputs), (self.tensors[name] for name in repeat.inputs), strict=True))
        for number in range(self._count(repeat)):
            of_round = self._of_round(counter, number)
            made = append_program(self, step, [of_round, *state.values()])
            state.update(zip((name for name, _ in body.updates), made, strict=True))
        for tensor, (name, _) in zip(tensors, body.updates, strict=True):
            cells = tuple(self.names.fresh("z") for _ in tensor.shape)
            value = read_cell(state[name], cells, compute_dtype(tensor.dtype))
            self.add_statement(over_box(tensor.name, cells, tensor.shape, value), tensor)

    def _count(self, repeat: Repeat) -> int:
        if all(isinstance(node, Constant | SizeValue | Apply) for node in walk(repeat.count)) and not repeat.condition:
            return evaluate_size(repeat.count, self.known)
        # What data say is computed.
        return sum(1 for _ in self.values.rounds(repeat))

    def _of_round(self, counter: Tensor, number: int) -> Tensor:
        made = replace(counter, name=self.names.fresh("round"))
        if counter.shape:
            # Only its extent is used, in loops inside too.
            self.tensors[made.name] = replace(made, shape=(integer(number),))
            return self.tensors[made.name]
        self.add_statement(over_box(made.name, (), (), integer(number)), made)
        return made


def unrolled(program: Program, arrays: Sequence[np.ndarray]) -> Program:
    """``program`` for arrays of these shapes, with the bodies of its loops as often as they run."""
    work = _Unrolling(program, arrays)
    for stage in stages(program):
        for statement in stage.statements:
            work.add_statement(statement, program.tensor(statement.target.tensor))
        if stage.repeat is not None:
            work.add_repeat(stage.repeat, [program.tensor(name) for name in stage.repeat.results])
    made = {statement.target.tensor for statement in work.statements}
    return replace(
        program,
        sizes=tuple(work.sizes),
        tensors=tuple(tensor for tensor in work.tensors.values() if tensor.name in made),
        statements=tuple(work.statements),
        assertions=tuple(work.assertions),
        rules=tuple(work.rules),
        repeats=(),
    )
