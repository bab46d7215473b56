"""Programs as text: index notation that parses back to the same program.

::

    program matmul
    input A: float32[N, K]
    input B: float32[B_0, M]
    assert K == B_0, "A has {K} columns, B has {B_0} rows"
    tensor C: float32[N, M]

    C[i, j] += A[i, k] * B[k, j]  for [i, j, k]: 0 <= i < N and 0 <= j < M and 0 <= k < K

    return C

A name that stands for the first time in an input's shape is the size of that axis. A statement is followed by clauses:
``from Y`` (it starts from the cells of ``Y``) or ``from fill(e)``, ``for`` its domain in isl's notation (without the
parameters, which can be told from the text), ``if`` its condition, ``with unique, oob skip``, ``as "label"``. A loop
that runs names its results, the number of its rounds, and what it is given; its body is a program::

    repeat u_2 = steps times with u
    | program heat_loop
    | ...

The rules of derivatives come last, each with its program::

    pullback y by x with bound like A
    | program clip_pullback
    | ...
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import SizeValue, size_names
from tcdsl.ir.program import (
    PRINTED,
    Access,
    AxisExtent,
    DerivativeRule,
    Fill,
    Keep,
    Program,
    Repeat,
    Size,
    Statement,
    Tensor,
    Unset,
)
from tcdsl.ir.stages import stages
from tcdsl.ir.text.domain_text import domain_parameters, domain_text, domain_variables
from tcdsl.ir.text.expression_printer import ExpressionPrinter, format_expr

__all__ = ["format_domain", "format_expr", "format_program", "format_statement", "format_tensor"]

WIDTH = 120


def format_tensor(tensor: Tensor) -> str:
    """``A: float32[N, K]``, followed by ``as "label"`` if the tensor has one."""
    extents = ", ".join(format_expr(extent, "int64") for extent in tensor.shape)
    label = f" as {_quoted(tensor.label)}" if tensor.label else ""
    return f"{tensor.name}: {tensor.dtype}{f'[{extents}]' if extents else ''}{label}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def format_domain(domain: Domain, sizes: Collection[str]) -> str:
    """``[i, k]: 0 <= i < N and ...``, or what else isl says of the points; ``sizes`` are those of the program."""
    found = re.fullmatch(r"(?:\[[^\[\]]*\] -> )?\{ (.*) \}", domain.text)
    if found is not None:
        body = found[1].replace("] :", "]:")
        if domain_variables(body) == domain.variables and domain_text(body, sizes) == domain.text:
            return body
    return f"({', '.join(domain.variables)}) in {domain.text}"


def format_statement(statement: Statement, dtype: str = "", sizes: Collection[str] | None = None) -> str:
    """``C[i, j] += A[i, k] * B[k, j]  for [i, j, k]: 0 <= i < N and ...``, on one line.

    ``dtype`` is the type in which the target is computed, ``sizes`` are the sizes of the program; without them, those
    that the statement itself shows.
    """
    head, clauses = _parts(statement, dtype or statement.value.dtype, sizes)
    return "  ".join((head, *clauses))


def _parts(statement: Statement, dtype: str, sizes: Collection[str] | None) -> tuple[str, list[str]]:
    # The statement proper, and its clauses.
    known = set(domain_parameters(statement.domain.text) if sizes is None else sizes)
    printer = ExpressionPrinter(known | set(statement.domain.variables))
    symbol = ACCUMULATORS[statement.accumulate].symbol if statement.accumulate in ACCUMULATORS else "?="
    head = f"{_format_access(statement.target, printer)} {symbol} {printer.text(statement.value, dtype)}"
    clauses = []
    match statement.start:
        case Keep(tensor=tensor):
            clauses.append(f"from {tensor}")
        case Fill(value=value):
            clauses.append(f"from fill({ExpressionPrinter(known).text(value, dtype)})")
        case Unset():
            clauses.append("from unset()")
        case _:
            pass
    clauses.append(f"for {format_domain(statement.domain, known)}")
    if statement.condition is not None:
        clauses.append(f"if {printer.text(statement.condition, 'bool')}")
    options = ["unique"] * statement.unique + [f"oob {statement.oob}"] * (statement.oob != "check")
    if options:
        clauses.append(f"with {', '.join(options)}")
    if statement.label:
        clauses.append(f"as {_quoted(statement.label)}")
    return head, clauses


def _format_access(access: Access, printer: ExpressionPrinter) -> str:
    indices = ", ".join(printer.text(index, index.dtype) for index in access.indices)
    return f"{access.tensor}[{indices or '()'}]"


def format_program(program: Program) -> str:
    """The program as text, ending in a newline. ``parse_program`` gives an equal program back."""
    lines = [f"program {_format_name(program.name)}", *_header(program)]
    sizes = {size.name for size in program.sizes}
    # Messages are for the user of a call that fails, like spans: long, and not part of what the program is.
    lines += [f"assert {format_expr(assertion.condition, 'bool')}" for assertion in program.assertions]
    lines += [f"tensor {format_tensor(tensor)}" for tensor in program.tensors]
    for stage in stages(program):
        if stage.statements:
            lines += ["", *_body(program, stage.statements, sizes)]
        if stage.repeat is not None:
            lines += ["", *_format_repeat(stage.repeat)]
    ends = [f"update {name} = {new}" for name, new in program.updates]
    if program.outputs:
        ends.append(f"return {', '.join(program.outputs)}")
    if ends:
        lines += ["", *ends]
    for rule in program.rules:
        lines += ["", *_format_rule(rule)]
    return "\n".join(lines) + "\n"


def _format_repeat(repeat: Repeat) -> list[str]:
    given = f" with {', '.join(repeat.inputs)}" if repeat.inputs else ""
    kept = f"times checkpointed {repeat.checkpoints}" if repeat.checkpoints else "times checkpointed"
    times = kept if repeat.checkpointed else "times"
    begin, count = (format_expr(end, "int64") for end in repeat.ends)
    numbers = count if begin == "0" else f"{begin} .. {count}"
    head = f"repeat {', '.join(repeat.results)} = {numbers} {times}{' on host' if repeat.host else ''}{given}"
    return [head, *_indented(repeat.body)]


def _indented(program: Program) -> list[str]:
    return [f"| {line}".rstrip() for line in format_program(program).splitlines()]


def _format_rule(rule: DerivativeRule) -> list[str]:
    head = f"{rule.mode} {', '.join(rule.outputs)} by {', '.join(rule.arguments)}"
    if rule.constants:
        head += f" with {', '.join(rule.constants)}"
    if rule.extents:
        head += f" like {', '.join(rule.extents)}"
    return [f"{head} beside" if rule.beside else head, *_indented(rule.program)]


def _format_name(name: str) -> str:
    return name if re.fullmatch(r"[^\W\d][\w.]*", name) else _quoted(name)


def _header(program: Program) -> list[str]:
    # Inputs and sizes. The short form leaves out the sizes that the inputs' shapes define; where that would give
    # another order, or an expression uses a size before it is defined, all of them are written out first.
    lines: list[str] = []
    pending = list(program.sizes)
    sources = {size.name: size.source for size in program.sizes}
    known: set[str] = set()

    def opaque() -> None:
        while pending and not isinstance(pending[0].source, AxisExtent):
            known.add(pending[0].name)
            lines.append(_format_size(pending.pop(0)))

    for tensor in program.inputs:
        defined = [
            extent.name
            for axis, extent in enumerate(tensor.shape)
            if isinstance(extent, SizeValue) and sources.get(extent.name) == AxisExtent(tensor.name, axis)
        ]
        if defined:
            opaque()
        if [size.name for size in pending[: len(defined)]] != defined:
            return _explicit_header(program)
        for extent in tensor.shape:
            if isinstance(extent, SizeValue) and extent.name in defined:
                known.add(extent.name)
            elif not size_names(extent) <= known:
                return _explicit_header(program)
        del pending[: len(defined)]
        lines.append(f"input {format_tensor(tensor)}")
    opaque()
    return _explicit_header(program) if pending else lines


def _explicit_header(program: Program) -> list[str]:
    return [
        *(_format_size(size) for size in program.sizes),
        *(f"input {format_tensor(tensor)}" for tensor in program.inputs),
    ]


def _format_size(size: Size) -> str:
    if isinstance(size.source, AxisExtent):
        return f"size {size.name} = {size.source.tensor}.shape[{size.source.axis}]"
    return f"size {size.name} = {format_expr(size.source, 'int64')}"


def _body(program: Program, statements: Sequence[Statement], sizes: Collection[str]) -> list[str]:
    # Clauses stand in one column where they fit, else on the next line.
    types = {tensor.name: compute_dtype(tensor.dtype) for tensor in program.tensors}
    parts = [
        _parts(statement, types.get(statement.target.tensor, statement.value.dtype), sizes) for statement in statements
    ]
    short = [(head, "  ".join(clauses)) for head, clauses in parts]
    column = max((len(head) for head, rest in short if len(head) + 2 + len(rest) <= WIDTH), default=0)
    lines = []
    for (head, rest), (_, clauses) in zip(short, parts, strict=True):
        if len(head) + 2 + len(rest) <= WIDTH:
            padding = column if column + 2 + len(rest) <= WIDTH else len(head)
            lines.append(f"{head:<{padding}}  {rest}")
        elif len(rest) <= WIDTH - 4:
            lines += [head, "    " + rest]
        else:
            lines += [head, *("    " + clause for clause in clauses)]
    return lines


PRINTED.update({Program: format_program, Statement: format_statement})
