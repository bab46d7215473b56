"""The nests of a kernel as LLVM modules, a function ``void (int64 begin, int64 end, int64 frame)`` a nest.

Each nest is a module of its own, so that long programs can be interrupted between them. Procedures become functions of
what their buffers are, one for each combination that is called: a procedure so knows that its buffers lie apart, and
LLVM may put it where it is called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tcdsl.ir.text.declined import Declined
from tcdsl.lowering.loopir.loops import Kernel, Loop, Nest, Node, Procedure
from tcdsl.lowering.loopir.machine import Machine
from tcdsl.lowering.loopir.traversal import sizes_of, walk_nodes
from tcdsl.targets.cpu.emission.interface import FASTMATH, PLAIN, READY, TILED
from tcdsl.targets.cpu.emission.nest_emission import KernelContext, KnownWords, NestEmission
from tcdsl.targets.cpu.emission.plain_nests import is_plain
from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.frame_memory import WORD, BufferKind, BufferValue, call_host, frame_buffer, frame_size
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar, llvm_type
from tcdsl.targets.cpu.layout.frame import layout_of
from tcdsl.targets.cpu.layout.kernel_code import (
    check_sites,
    index_variables_of,
    local_names,
    parallel_loop,
    strided_buffers,
    words_of,
)

__all__ = ["emitted_nests", "loops_without_vectors"]


def emitted_nests(
    kernel: Kernel,
    contiguous: Sequence[bool],
    symbols: Mapping[int, str],
    machine: Machine | None = None,
    *,
    checked: bool = False,
) -> Iterator[tuple[str, str]]:
    """The ``symbols`` of nests of ``kernel``, which are known by their numbers, with LLVM's text for each.

    ``contiguous`` says it of each input, ``checked`` code tests every access. With the ``machine`` that it is
    for loops use its vectors; LLVM need not look for any in a nest that says `READY`.
    """
    emission = _KernelEmission(kernel, strided_buffers(kernel, contiguous), machine, checked)
    numbers = 0
    for number, nest in enumerate(kernel.nests):
        sites = len(list(check_sites(nest.body, frozenset())))
        if number in symbols:
            made = emission.nest(nest, symbols[number], range(numbers, numbers + sites))
            yield symbols[number], made
        numbers += sites


def loops_without_vectors(
    kernel: Kernel, contiguous: Sequence[bool], machine: Machine
) -> Iterator[tuple[str, Loop, Declined]]:
    """The innermost loops of ``kernel`` that `emitted_nests` writes step by step, as LLVM then sees them, and why: the
    name of the nest, the loop, the reason. Loops over what is left over, which have other variables, are none of them.
    """
    emission = _KernelEmission(kernel, strided_buffers(kernel, contiguous), machine, False)
    for nest in kernel.nests:
        module = _NestModule(emission, nest.name, range(len(list(check_sites(nest.body, frozenset())))))
        module.nest(nest)
        for loop, declined in module.plain_loops:
            if loop is not None and declined is not None and (loop.rounds or loop.variable in emission.shown):
                yield nest.name, loop, declined


class _KernelEmission:
    def __init__(self, kernel: Kernel, strided: frozenset[str], machine: Machine | None, checked: bool) -> None:
        self.machine = machine
        self.checked = checked
        self.procedures = {each.name: each for each in kernel.procedures}
        self.shown = frozenset(index_variables_of(kernel.program))
        self._layout = layout_of(kernel)
        self._strided = strided
        self._buffers = {buffer.name: buffer for buffer in kernel.buffers}
        # Behind the words of the frame, so that it is no other buffer's.
        self.slots = {name: self._layout.words + k for k, name in enumerate(local_names(kernel))} if checked else {}

    def nest(self, nest: Nest, symbol: str, checks: range) -> str:
        """LLVM's text for ``nest``, whose checks have these numbers."""
        emission = _NestModule(self, symbol, checks)
        emission.nest(nest)
        text = str(emission.module)
        if self.machine is not None and not emission.plain_loops:
            tiled = any(isinstance(each, Loop) and each.kind == "vector" for each in walk_nodes(nest.body))
            text += f"{READY}\n{TILED}\n" if tiled else f"{READY}\n"
        elif is_plain(nest.body):
            text += f"{PLAIN}\n"
        return text

    def opened(self, builder: ir.Builder, frame: ir.Operand, nest: Nest) -> KnownWords:
        """The sizes and the buffers of ``nest``, found in the frame."""
        found = KnownWords()
        for place, (what, name) in enumerate(words_of(nest, checked=False)):
            if what == "size":
                found.sizes[name] = frame_size(builder, frame, place)
                continue
            declared = self._buffers[name]
            axes = [":"] * len(declared.shape)
            if axes and name not in self._strided:
                axes[-1] = "::1"
            # Checked buffers report their word; others are found at places.
            number = self._layout.buffers[name] if self.checked else place
            description = f"{declared.dtype}[{', '.join(axes)}]"
            found.buffers[name] = frame_buffer(builder, frame, number, description, checked=self.checked)
        return found


class _NestModule:
    def __init__(self, kernel: _KernelEmission, symbol: str, checks: range) -> None:
        self.module = ir.Module(symbol, avx512=kernel.machine is not None and kernel.machine.masks)
        self.plain_loops: list[tuple[Loop | None, Declined | None]] = []
        self._kernel = kernel
        self._checks = iter(checks)
        self._made: dict[tuple[object, ...], ir.Function] = {}

    def nest(self, nest: Nest) -> None:
        function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [WORD] * 3), self.module.name)
        emission = self._emission(function)
        begin, end, frame = (Scalar(emission.builder, value, "int64") for value in function.args)
        opened = self._kernel.opened(emission.builder, frame.value, nest)
        split = parallel_loop(nest.body)
        emission.given(opened, frame, None if split is None else (split, begin, end))
        self._write(emission, nest.body)

    def _emission(self, function: ir.Function) -> NestEmission:
        function.attributes.append("nounwind")
        kernel = self._kernel
        flags = "".join(f"{flag} " for flag in sorted(FASTMATH))
        around = KernelContext(
            self._call, kernel.procedures, kernel.machine, kernel.checked, self._checks, kernel.shown, kernel.slots
        )
        return NestEmission(function, flags, around)

    def _write(self, emission: NestEmission, nodes: Sequence[Node]) -> None:
        emission.body(nodes)
        self.plain_loops += emission.plain_loops

    def _call(self, builder: ir.Builder, name: str, given: Sequence[BufferValue | Scalar]) -> None:
        kinds = tuple(each.kind if isinstance(each, BufferValue) else each.dtype for each in given)
        function = self._made.get((name, *kinds))
        if function is None:
            function = self._made[name, *kinds] = self._procedure(self._kernel.procedures[name], kinds)
        builder.call(function, [part for each in given for part in _parts(each)])

    def _procedure(self, procedure: Procedure, kinds: Sequence[BufferKind | str]) -> ir.Function:
        types = [_types(kind) for kind in kinds]
        kind = ir.FunctionType(ir.VoidType(), [each for held in types for each in held])
        function = ir.Function(self.module, kind, self.module.fresh(f"procedure {procedure.name}"))
        function.linkage = "internal"
        emission = self._emission(function)
        values = iter(function.args)
        names = iter((*(each.name for each in procedure.parameters), *sizes_of(procedure)))
        frame, words = None, KnownWords()
        for number, (given, held) in enumerate(zip(kinds, types, strict=True)):
            parts = [next(values) for _ in held]
            if isinstance(given, BufferKind):
                words.buffers[next(names)] = BufferValue.of_parts(given, parts)
            elif self._kernel.checked and number == 0:
                frame = Scalar(emission.builder, parts[0], given)
            else:
                words.sizes[next(names)] = Scalar(emission.builder, parts[0], given)
        if procedure.host:
            call_host(
                emission.builder, [words.buffers[each.name] for each in procedure.parameters], words.sizes.values()
            )
        emission.given(words, frame)
        self._write(emission, procedure.body)
        return function


def _parts(value: BufferValue | Scalar) -> tuple[ir.Operand, ...]:
    return value.parts if isinstance(value, BufferValue) else (value.value,)


def _types(kind: BufferKind | str) -> list[ir.Type]:
    if isinstance(kind, str):
        return [llvm_type(kind)]
    words = kind.ndim + (1 + kind.ndim if kind.checked else 0)
    return [ir.POINTER, *[WORD] * words]
