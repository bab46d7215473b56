"""The nest of a call of host code."""

from __future__ import annotations

from collections.abc import Sequence

from tcdsl.ir.build import apply, integer, plain_read
from tcdsl.ir.expressions import Expr, SizeValue
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.interpreter.host_code import HOSTED
from tcdsl.lowering.loopir.loops import Buffer, BufferView, Check, LocalBuffer, Nest, Procedure, ProcedureCall
from tcdsl.span import Span

__all__ = ["host_nest"]


def host_nest(
    title: str, arrays: Sequence[tuple[str, str, Sequence[Expr]]], given: int, names: FreshNames, span: Span | None
) -> tuple[Procedure, Nest]:
    """The procedure and the nest that call host code on ``arrays``: buffers, their types and extents.

    The first ``given`` of these are read, the first of all being the cells of the code; the others are written.
    """
    failed = names.fresh("failed")
    parameters = [
        Buffer(f"p{k}", dtype, tuple([SizeValue(f"n{k}_{axis}") for axis in range(len(extents))]), "input", (f"p{k}",))
        for k, (_, dtype, extents) in enumerate(arrays)
    ]
    parameters.append(Buffer("failed", "int64", (integer(1),), "update", ("failed",)))
    procedure = Procedure(names.fresh("host"), tuple(parameters), (), host=True)
    views = [BufferView(name, (integer(0),) * len(extents), tuple(extents)) for name, _, extents in arrays]
    views.append(BufferView(failed, (integer(0),), (integer(1),)))
    status = plain_read(failed, (integer(0),), "int64")
    nodes = (
        LocalBuffer(failed, "int64", (integer(1),), (1,)),
        ProcedureCall(procedure.name, tuple(views[:given]), tuple(views[given:])),
        Check(apply("eq", status, integer(0)), HOSTED, 0, status, integer(1), span),
    )
    return procedure, Nest(names.fresh("hosted"), title, nodes, integer(1))
