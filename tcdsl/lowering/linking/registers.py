"""Tensors of rank 0 as scalars of the nests that run loops of rounds, which stay in registers from round to round.

Memory is read before the loop, where a nest before it may have written it, and written after it, where anything reads
it then. What such a nest alone has is in no memory at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, cast, plain_read
from tcdsl.ir.dtypes import compute_dtype, is_floating
from tcdsl.ir.expressions import Expr, Local, Read, reads, transform
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.linking.late_operands import with_late_operands_last
from tcdsl.lowering.linking.opposite_branches import with_opposite_branches_joined
from tcdsl.lowering.loopir.loops import Buffer, Define, Loop, Nest, Node, RepeatedNests, Store, Update
from tcdsl.lowering.loopir.point_code import in_register
from tcdsl.lowering.loopir.traversal import buffers_read, buffers_written, rewritten, walk_nodes, with_expressions

__all__ = ["with_scalars_in_registers"]


def with_scalars_in_registers(
    nests: Sequence[Nest],
    buffers: Mapping[str, Buffer],
    repeated: Sequence[RepeatedNests],
    kept: Iterable[str],
    names: FreshNames,
) -> tuple[list[Nest], dict[str, Buffer]]:
    """``nests`` with scalars in registers, and the buffers that are left.

    ``repeated`` are the loops that are no nests, ``kept`` the buffers that are needed after all nests.
    """
    held = Counter([*kept, *(name for each in repeated for name in each.rounds.held)])
    held.update(read.tensor for each in repeated for read in reads(each.rounds.count))
    held.update(buffer.name for buffer in buffers.values() if buffer.kind != "temporary")
    used = [{*buffers_read(nest.body), *buffers_written(nest.body)} for nest in nests]
    everywhere = held + Counter(name for each in used for name in each)
    out = []
    for nest, inside in zip(nests, used, strict=True):
        if any(isinstance(node, Loop) and node.rounds for node in walk_nodes(nest.body)):
            scalars = {name for name in inside if not buffers[name].shape}
            private = {name for name in scalars if everywhere[name] == 1}
            nest = _in_registers(nest, {name: buffers[name].dtype for name in sorted(scalars)}, private, names)
            nest = replace(nest, code=with_late_operands_last(with_opposite_branches_joined(nest.body)))
        held.update({*buffers_read(nest.body), *buffers_written(nest.body), nest.bounds or ""})
        out.append(nest)
    return out, {name: buffer for name, buffer in buffers.items() if name in held}


def _in_registers(nest: Nest, dtypes: Mapping[str, str], private: set[str], names: FreshNames) -> Nest:
    locals_ = {
        name: Local(name if name in private else names.fresh(name), compute_dtype(dtype))
        for name, dtype in dtypes.items()
    }
    unread = private - set(buffers_read(nest.body))

    def value(expr: Expr) -> Expr:
        return transform(expr, lambda node: locals_.get(node.tensor, node) if isinstance(node, Read) else node)

    def rule(node: Node) -> tuple[Node, ...]:
        node = with_expressions(node, value)
        if isinstance(node, Store | Update) and node.buffer in locals_:
            if node.buffer in unread:
                return ()
            held = locals_[node.buffer]
            if isinstance(node, Update) and not is_floating(held.dtype):
                # A position: whoever asks whether it is in range sees what it becomes.
                primitive = ACCUMULATORS[node.accumulate].primitive
                node = Store(node.buffer, (), apply(primitive, held, cast(node.value, held.dtype)))
            return (in_register(node, held, dtypes[node.buffer]),)
        return (node,)

    written = set(buffers_written(nest.body))
    shared = [name for name in locals_ if name not in private]
    ahead = [
        Define(locals_[name].name, plain_read(name, (), locals_[name].dtype))
        for name in shared
        if not _is_first_written(name, nest.body)
    ]
    behind = [Store(name, (), locals_[name]) for name in shared if name in written]
    match nest.body:
        case (Loop(kind="parallel") as loop,):
            # Each thread has scalars of its own.
            body: tuple[Node, ...] = (replace(loop, body=(*ahead, *rewritten(loop.body, rule))),)
        case nodes:
            body = (*ahead, *rewritten(nodes, rule), *behind)
    return replace(nest, code=body)


def _is_first_written(name: str, nodes: tuple[Node, ...]) -> bool:
    for node in nodes:
        if name in buffers_read((node,)):
            return False
        if name in buffers_written((node,)):
            return isinstance(node, Store)
    return False
