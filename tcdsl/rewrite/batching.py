"""A program for many values of some inputs at once: new index variables on everything that depends on these inputs.

::

    t_y[i] += A[i, k] * t_x[k]  for [i, k]: ...                      for one t_x
    t_y[i, b] += A[i, k] * t_x[k, b]  for [i, k, b]: ...             for as many as b has values

There is no rule per operation: in index notation a batch is one more index. A derivative rule of what depends on the
inputs is batched likewise, as a program; what it returns for an argument without a batch is summed over the batch.

Where these inputs say how many rounds a loop has, it ends at another round for each of their values: then there is no
such program, but one whose loop takes one value after the other (`one_by_one`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from tcdsl.errors import DifferentiationError
from tcdsl.ir.build import constant, index, plain_read, size
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype, is_floating
from tcdsl.ir.expressions import Boundary, Expr, Let, Local, Read, SizeValue, transform, walk
from tcdsl.ir.fresh_names import FreshNames, names_of
from tcdsl.ir.program import (
    Access,
    AxisExtent,
    DerivativeRule,
    Fill,
    Keep,
    Neutral,
    Program,
    Repeat,
    Size,
    Statement,
    Tensor,
    map_statement,
)
from tcdsl.ir.stages import stages
from tcdsl.polyhedra.boxes import box, over_box
from tcdsl.polyhedra.writes import read_cell
from tcdsl.rewrite.linearization import dependents

__all__ = ["batched", "ends_depend_on", "one_by_one", "with_all"]

Item = TypeVar("Item")


def batched(
    program: Program, names: Sequence[str], extents: Sequence[Expr], outputs: Sequence[str], *, trailing: bool
) -> Program:
    """``program`` with axes of ``extents`` more on the inputs ``names``, and on everything that depends on them.

    ``outputs`` have the new axes, whether they depend on the inputs or not; no other output may depend on them. The new
    axes come first, or last if they are ``trailing``.
    """
    work = _Batching(program, names, tuple(extents), trailing)
    for stage in stages(program):
        for statement in stage.statements:
            work.add(statement)
        if stage.repeat is not None:
            work.add_loop(stage.repeat)
    renamed = {name: work.repeat(name) for name in outputs if name not in work.dependent}
    return replace(
        program,
        inputs=tuple(work.declared(tensor) for tensor in program.inputs),
        tensors=tuple(work.tensors),
        statements=tuple(work.statements),
        outputs=tuple(renamed.get(name, name) for name in program.outputs),
        rules=tuple(each for rule in program.rules for each in work.rules(rule)),
        repeats=tuple(work.repeats),
    )


class _Batching:
    def __init__(self, program: Program, names: Sequence[str], extents: tuple[Expr, ...], trailing: bool) -> None:
        self.program = program
        self.dependent = _dependents(program, names)
        self.extents = extents
        self.trailing = trailing
        self.names = _all_names(program)
        self.variables = tuple(self.names.fresh(f"b{k}" if len(extents) > 1 else "b") for k in range(len(extents)))
        self.tensors: list[Tensor] = []
        self.statements: list[Statement] = []
        self.repeats: list[Repeat] = []
        #: Copies with the new axes of what does not depend on the inputs.
        self.repeated: dict[str, str] = {}

    def declared(self, tensor: Tensor) -> Tensor:
        """The declaration of a tensor, with the new axes if it has them."""
        if tensor.name not in self.dependent:
            return tensor
        return replace(tensor, shape=self._joined(tensor.shape, self.extents))

    def add(self, statement: Statement) -> None:
        """A statement of the program."""
        name = statement.target.tensor
        tensor = self.program.tensor(name)
        if name not in self.dependent:
            self._append(statement, tensor)
            return
        statement = self._with_own_start(statement, tensor)
        statement = map_statement(statement, lambda expr: transform(expr, self._read))
        target = statement.target
        statement = replace(
            statement,
            target=replace(target, indices=self._joined(target.indices, self._batch_indices())),
            domain=self._domain(statement.domain),
        )
        self._append(statement, self.declared(tensor))

    def rules(self, rule: DerivativeRule) -> tuple[DerivativeRule, ...]:
        """The derivative rule of tensors that may have the new axes; none of a loop, which is its own derivative."""
        if not self.dependent.intersection(rule.outputs):
            return (rule,)
        if rule.mode == "adjoint":
            return ()
        program = rule.program
        seeds = program.inputs[len(rule.named) :]
        stand_ins = dict(zip(rule.named, (tensor.name for tensor in program.inputs), strict=False))
        seeded, wanted = (rule.outputs, rule.arguments) if rule.mode == "pullback" else (rule.arguments, rule.outputs)
        floating = [name for name in seeded if is_floating(self.program.tensor(name).dtype)]
        names = [stand_ins[name] for name in dict.fromkeys(rule.named) if name in self.dependent]
        names += [seed.name for name, seed in zip(floating, seeds, strict=True) if name in self.dependent]
        made = self._inside(program, names, list(dict.fromkeys(program.outputs)))
        results = [name for name in wanted if is_floating(self.program.tensor(name).dtype)]
        for name, result in zip(results, tuple(made.outputs), strict=True):
            if name not in self.dependent:
                made = _summed(made, result, len(self.extents), self.trailing)
        return (replace(rule, program=made),)

    def add_loop(self, repeat: Repeat) -> None:
        """A loop of the program; what it carries that depends on the inputs has the new axes from the start."""
        self.tensors.extend(self.declared(self.program.tensor(name)) for name in repeat.results)
        if repeat.host and self.dependent.intersection((*repeat.inputs, *repeat.results)):
            name = repeat.body.name.removesuffix("_call")
            fact = f"`{name}`, which Python computes, would be called for all directions at once"
            raise DifferentiationError.at(fact, repeat.span, "ask for products with `tc.vjp` or `tc.jvp`, one by one")
        body = repeat.body
        results = zip(repeat.results, body.updates, strict=True)
        carried = {name for result, (name, _) in results if result in self.dependent}
        if not carried:
            self.repeats.append(repeat)
            return
        names: list[str] = []
        inputs: list[str] = []
        for inner, name in zip(body.inputs[1:], repeat.inputs, strict=True):
            inputs.append(self.repeat(name) if inner.name in carried and name not in self.dependent else name)
            if inner.name in carried or name in self.dependent:
                names.append(inner.name)
        changes = list(dict.fromkeys(new for name, new in body.updates if name in carried))
        made = self._inside(replace(body, outputs=tuple(changes), updates=()), names, changes)
        become = dict(zip(changes, made.outputs, strict=True))
        updates = tuple((name, become[new] if name in carried else new) for name, new in body.updates)
        made = replace(made, outputs=body.outputs, updates=updates)
        self.repeats.append(replace(repeat, body=made, inputs=tuple(inputs)))

    def _inside(self, program: Program, names: Sequence[str], outputs: Sequence[str]) -> Program:
        # A program inside this one: the new axes are sizes of it, those of the first input that has them.
        first = next(tensor for tensor in program.inputs if tensor.name in names)
        free = names_of(program)
        axes = range(len(self.extents))
        start = len(first.shape) if self.trailing else 0
        sizes = tuple(Size(free.fresh("batch"), AxisExtent(first.name, start + k)) for k in axes)
        extents = tuple(SizeValue(size.name) for size in sizes)
        program = replace(program, sizes=(*program.sizes, *sizes))
        return batched(program, names, extents, outputs, trailing=self.trailing)

    def repeat(self, name: str) -> str:
        """A tensor that does not depend on the inputs, repeated along the new axes."""
        if name in self.repeated:
            return self.repeated[name]
        tensor = self.program.tensor(name)
        made = Tensor(self.names.fresh(name), tensor.dtype, self._joined(tensor.shape, self.extents), tensor.label)
        cells = self._cells(len(tensor.shape))
        value = read_cell(tensor, cells, compute_dtype(tensor.dtype))
        self._append(self._store(made, cells, tensor.shape, value), made)
        self.repeated[name] = made.name
        return made.name

    def _with_own_start(self, statement: Statement, tensor: Tensor) -> Statement:
        # Cells that start from what has no batch, or from a value that differs along it, are stored first.
        match statement.start:
            case Keep(tensor=kept) if kept not in self.dependent:
                return replace(statement, start=Keep(self.repeat(kept)))
            case Fill(value=value) if any(isinstance(n, Read) and n.tensor in self.dependent for n in walk(value)):
                made = replace(self.declared(tensor), name=self.names.fresh(tensor.name))
                cells = self._cells(len(tensor.shape))
                self._append(self._store(made, cells, tensor.shape, transform(value, self._read)), made)
                return replace(statement, start=Keep(made.name))
            case _:
                return statement

    def _store(self, made: Tensor, cells: tuple[str, ...], shape: tuple[Expr, ...], value: Expr) -> Statement:
        return over_box(made.name, self._joined(cells, self.variables), self._joined(shape, self.extents), value)

    def _append(self, statement: Statement, tensor: Tensor) -> None:
        self.tensors.append(tensor)
        self.statements.append(statement)

    def _cells(self, rank: int) -> tuple[str, ...]:
        return tuple(self.names.fresh(f"z{k}") for k in range(rank))

    def _batch_indices(self) -> tuple[Expr, ...]:
        return tuple(map(index, self.variables))

    def _joined(self, own: tuple[Item, ...], new: tuple[Item, ...]) -> tuple[Item, ...]:
        return (*own, *new) if self.trailing else (*new, *own)

    def _read(self, node: Expr) -> Expr:
        if not isinstance(node, Read) or node.tensor not in self.dependent:
            return node
        skip = (Boundary.SKIP,) * len(self.variables)
        return replace(
            node,
            indices=self._joined(node.indices, self._batch_indices()),
            boundaries=self._joined(node.boundaries, skip),
        )

    def _domain(self, domain: Domain) -> Domain:
        # The new variables stand where the axes do, so that points of one batch entry keep their order.
        first, second = self._joined((domain.set,), (box(self.variables, self.extents),))
        return Domain.from_set(first.reset_tuple_id().flat_product(second.reset_tuple_id()))


def _all_names(program: Program) -> FreshNames:
    # Names of local definitions too: they stand beside index variables in the text.
    names = names_of(program)
    for statement in program.statements:
        for node in walk(statement.value):
            if isinstance(node, Local | Let):
                names.fresh(node.name)
    return names


def _dependents(program: Program, names: Sequence[str]) -> set[str]:
    # Where an argument of a derivative rule has the new axes all its outputs have them: their cotangents come together.
    found = dependents(program, names)
    while True:
        more = {name for rule in program.rules if found.intersection(rule.named) for name in rule.outputs} - found
        if not more:
            return found
        found |= more | dependents(program, sorted(more))


def with_all(program: Program, position: int) -> Program:
    """``program`` whose output at ``position``, truth values along one axis, is whether all of them hold."""
    held = program.tensor(program.outputs[position])
    free = names_of(program)
    made = Tensor(free.fresh(held.name), held.dtype, (), held.label)
    cells = free.cells(1)
    domain = Domain.from_set(box(cells, held.shape))
    statement = Statement(Access(made.name, ()), "and", Neutral(), read_cell(held, cells, held.dtype), domain)
    outputs = list(program.outputs)
    outputs[position] = made.name
    return replace(
        program,
        tensors=(*program.tensors, made),
        statements=(*program.statements, statement),
        outputs=tuple(outputs),
    )


def _summed(program: Program, name: str, count: int, trailing: bool) -> Program:
    """``program`` with the output ``name`` summed over its first, or last, ``count`` axes."""
    tensor = program.tensor(name)
    free = names_of(program)
    variables = tuple(free.fresh(f"z{k}") for k in range(len(tensor.shape)))
    rank = len(tensor.shape)
    kept = slice(0, rank - count) if trailing else slice(count, rank)
    made = Tensor(free.fresh(name), tensor.dtype, tensor.shape[kept], tensor.label)
    value = read_cell(tensor, variables, compute_dtype(tensor.dtype))
    target = Access(made.name, tuple(map(index, variables[kept])))
    statement = Statement(target, "add", Neutral(), value, Domain.from_set(box(variables, tensor.shape)))
    return replace(
        program,
        tensors=(*program.tensors, made),
        statements=(*program.statements, statement),
        outputs=tuple(made.name if output == name else output for output in program.outputs),
    )


def ends_depend_on(program: Program, names: Sequence[str]) -> bool:
    """Whether the inputs ``names`` say when a loop of ``program`` ends, or are for code that knows no more axes."""
    if not program.repeats:
        return False
    found = dependents(program, names)
    for repeat in program.repeats:
        body = repeat.body
        inside = [each.name for each, name in zip(body.inputs[1:], repeat.inputs, strict=True) if name in found]
        results = zip(repeat.results, body.updates, strict=True)
        inside += [name for result, (name, _) in results if result in found and name not in inside]
        if repeat.host and found.intersection(repeat.results):
            return True
        if found & repeat.read_by_ends or repeat.condition in inside or ends_depend_on(body, inside):
            return True
    return False


def one_by_one(program: Program, inputs: Sequence[str]) -> Program:
    """``program`` for places along new first axes of ``inputs``, one after the other; all outputs have the axis."""
    return _OneByOne(program, inputs).whole()


class _OneByOne:
    # A loop, in whose round k each of the inputs is place k of what is given.

    def __init__(self, program: Program, inputs: Sequence[str]) -> None:
        self.program = program
        self.free = names_of(program)
        self.batch, self.number = self.free.fresh("batch"), self.free.fresh("k")
        #: What is given, by the name of what it is in a round.
        self.given = {name: self.free.fresh(f"{name}_batch") for name in inputs}
        self.outputs = [program.tensor(name) for name in program.outputs]

    def whole(self) -> Program:
        """The program."""
        starts, results = self._buffers("start"), self._buffers("batch")
        inputs = [self._batch_of(each, each.name) if each.name in self.given else each for each in self.program.inputs]
        handed = tuple([each.name for each in (*inputs, *starts)])
        repeat = Repeat(tuple([each.name for each in results]), size(self.batch), self._body(), handed)
        empty = [
            over_box(each.name, self.free.cells(len(each.shape)), each.shape, constant(0, compute_dtype(each.dtype)))
            for each in starts
        ]
        return replace(
            self.program,
            inputs=tuple(inputs),
            sizes=self._sizes({name: name for name in self.given}),
            tensors=(*starts, *results),
            statements=tuple(empty),
            outputs=repeat.results,
            rules=(),
            repeats=(repeat,),
        )

    def _body(self) -> Program:
        program, at = self.program, size(self.number)
        counter = Tensor(self.free.fresh("round"), "bool", (at,))
        before, after = self._buffers("before"), self._buffers("after")
        taken: list[Statement] = []
        for name, whole in self.given.items():
            tensor = program.tensor(name)
            cells = self.free.cells(len(tensor.shape))
            value = plain_read(whole, (at, *map(index, cells)), compute_dtype(tensor.dtype))
            taken.append(over_box(name, cells, tensor.shape, value))
        put: list[Statement] = []
        for output, old, new in zip(self.outputs, before, after, strict=True):
            cells = self.free.cells(len(output.shape))
            value = read_cell(output, cells, compute_dtype(output.dtype))
            stored = over_box(new.name, cells, output.shape, value)
            put.append(replace(stored, target=Access(new.name, (at, *map(index, cells))), start=Keep(old.name)))
        inputs = [
            self._batch_of(each, self.given[each.name]) if each.name in self.given else each for each in program.inputs
        ]
        return replace(
            program,
            inputs=(counter, *inputs, *before),
            sizes=(Size(self.number, AxisExtent(counter.name, 0)), *self._sizes(self.given)),
            tensors=(*map(program.tensor, self.given), *program.tensors, *after),
            statements=(*taken, *program.statements, *put),
            outputs=(),
            updates=tuple([(old.name, new.name) for old, new in zip(before, after, strict=True)]),
            assertions=(),
        )

    def _buffers(self, word: str) -> list[Tensor]:
        return [self._batch_of(each, self.free.fresh(f"{each.name}_{word}")) for each in self.outputs]

    def _batch_of(self, tensor: Tensor, name: str) -> Tensor:
        label = tensor.label or tensor.name
        return replace(tensor, name=name, shape=(size(self.batch), *tensor.shape), label=label, ends=())

    def _sizes(self, called: Mapping[str, str]) -> tuple[Size, ...]:
        found = [Size(self.batch, AxisExtent(next(iter(called.values())), 0))]
        for each in self.program.sizes:
            source = each.source
            if isinstance(source, AxisExtent) and source.tensor in called:
                each = replace(each, source=AxisExtent(called[source.tensor], source.axis + 1))
            found.append(each)
        return tuple(found)
