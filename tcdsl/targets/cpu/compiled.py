"""Compiled kernels: what `tcdsl.runtime` calls, as `tcdsl.targets.protocol.loaded_kernel` describes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from tcdsl.ir.sizes.size_functions import SizeFunction
from tcdsl.locks import lock_of_this_process
from tcdsl.lowering.loop_passes.liveness import Temporaries
from tcdsl.lowering.loopir.loops import Kernel
from tcdsl.targets.cache.store import store
from tcdsl.targets.cpu.call.failures import failure
from tcdsl.targets.cpu.call.launch_plans import Frame, LaunchPlan
from tcdsl.targets.cpu.call.plan_code import PlanCode, frame_words, table_rows
from tcdsl.targets.cpu.call.unfit_arrays import BoundArrays, bind_arrays, require_outputs
from tcdsl.targets.cpu.launcher import KeptValues, KernelFacts, Launcher, Place, PreparedCall
from tcdsl.targets.cpu.layout.call_arrays import CallArrays
from tcdsl.targets.cpu.layout.call_block import KNOWN_APART, OVERLAPPING
from tcdsl.targets.cpu.layout.frame import FIRST_WORD, STATUS_WORD, layout_of
from tcdsl.targets.cpu.layout.kernel_code import KernelCode
from tcdsl.targets.cpu.machine.internals import array_header, tuple_header
from tcdsl.targets.cpu.machine.machine_code import CompiledModule, compiled_module, module_stem, nest_symbol
from tcdsl.targets.protocol.target import Build

__all__ = ["BoundMachineCode", "CompiledKernel", "load_kernel"]

Array = np.ndarray[Any, np.dtype[Any]]


def load_kernel(kernel: Kernel, code: KernelCode, build: Build) -> CompiledKernel:
    """Compile and load ``kernel``; machine code may come from disk."""
    module = compiled_module(store(build.cache_dir), kernel, code, build, _level(kernel, build))
    return CompiledKernel(kernel, code, module, build)


def _level(kernel: Kernel, build: Build) -> int:
    # LLVM's second level takes half the time of its third, and what it makes is as fast but for a tenth at most.
    if build.lasting:
        return 3
    # A program without sizes is one for tensors, and runs again and again.
    return 1 if kernel.program.sizes else 2


class CompiledKernel(Launcher):
    """A kernel that runs: ``compiled.run([A, B], {"N": 3, "K": 4, "M": 5})`` gives the list of outputs.

    `source` is its text as a module of Python, `path` a file of it; May be called from several threads.
    """

    def __init__(self, kernel: Kernel, code: KernelCode, module: CompiledModule, build: Build) -> None:
        self.kernel = kernel
        self._code = code
        self._build = build
        self._layout = layout_of(kernel)
        self._rows = table_rows(kernel, self._layout)
        self._arrays = CallArrays(kernel, build.contiguous)
        self._temporaries = Temporaries(kernel)
        self._temporary_numbers = {buffer.name: k for k, buffer in enumerate(self._temporaries.buffers)}
        buffers = {buffer.name: buffer for buffer in kernel.buffers}
        self._outputs = [buffers[name] for name in kernel.outputs]
        super().__init__(self._facts(), code.places, module, build.cache_dir)

    @property
    def from_disk(self) -> bool:
        """Whether nothing had to be compiled until now."""
        return self._module.from_disk

    @property
    def source(self) -> str:
        """The kernel as a module that Python can run."""
        from tcdsl.targets.cpu.printing.module import printed_module

        return printed_module(self.kernel, self._build.contiguous, checked=self._build.checked).text

    @property
    def path(self) -> Path:
        """The file that shows the `source`."""
        place, text = store(self._build.cache_dir), self.source
        name = f"{module_stem(self.kernel.program.name, text)}.py"
        place.write_text(name, text)
        return place.directory / name

    def _facts(self) -> KernelFacts:
        kernel, arrays = self.kernel, self._arrays
        return KernelFacts(
            title=kernel.program.name,
            sizes=tuple(size.name for size in kernel.program.sizes),
            inputs=len(kernel.program.inputs),
            given=tuple((binding.position, binding.written) for binding in arrays.given),
            made=tuple(binding.buffer.dtype for binding in arrays.made),
            slots=tuple(self._layout.buffers[name] for name in self._temporary_numbers),
            lives=tuple(self._temporaries.lives),
            words=self._layout.words,
            frame=frame_words(kernel, self._layout, arrays),
            rows=len(self._rows),
            rounds=bool(kernel.repeated),
            limit=kernel.limit,
            results=tuple(map(self._place, kernel.outputs)),
            updates=tuple((arrays.given_positions[target], self._place(source)) for target, source in kernel.updates),
            plain=arrays.direct and not kernel.updates,
            sound=not self._code.checks,
            readable=array_header() is not None and tuple_header() is not None,
        )

    def _place(self, buffer: str) -> Place:
        arrays = self._arrays
        if buffer in arrays.made_positions:
            return "made", arrays.made_positions[buffer]
        if buffer in arrays.given_positions:
            return "given", arrays.given_positions[buffer]
        number = self._temporary_numbers[buffer]
        temporary = self._temporaries.buffers[number]
        return "temporary", number, self._layout.buffers[buffer], len(temporary.shape), temporary.dtype

    def written_plan(self, numbers: tuple[int, ...]) -> tuple[SizeFunction, int]:
        """The function that plans, and where its table is: see `tcdsl.targets.cpu.call.plan_code`."""
        code = PlanCode(self.kernel, self._layout, self._arrays, numbers)
        return code.written, code.table

    def kept(self, numbers: tuple[int, ...]) -> KeptValues | None:
        """What `tcdsl.targets.cpu.launcher.kept_kernel` makes a kernel of, for calls with these ``numbers``.

        None for kernels whose faults speak of local buffers.
        """
        facts = self.facts
        if not facts.readable or self._code.locals:
            return None
        level = _level(self.kernel, self._build)
        symbols = tuple(nest_symbol(key, level) for key in self._code.keys)
        written, table = self._plan_code(numbers)
        values = tuple(getattr(facts, name) for name in KernelFacts.__slots__)
        return values, symbols, self._code.places, numbers, written.code, written.constants, table

    def _begun(
        self, inputs: Sequence[Array], sizes: Mapping[str, int], outputs: Sequence[Array] | None
    ) -> PreparedCall:
        # Nests write straight into the arrays given for results, unless they may fail half-way.
        straight = outputs is not None and self._arrays.direct and not self._code.checks
        plan = self.plan(sizes)
        if outputs is not None and not straight:
            require_outputs(plan, self._layout, self.kernel.program.name, self._outputs, outputs)
        made = outputs if outputs is not None and straight else map(plan.make, plan.made, self._made_types)
        return PreparedCall(plan, self._frame(plan), tuple(inputs), tuple(made))

    def run(
        self,
        inputs: Sequence[Array],
        sizes: Mapping[str, int],
        outputs: Sequence[Array] | None = None,
        threads: int | None = None,
        before_copying: Callable[[], None] | None = None,
    ) -> list[Array]:
        """Run the program and return its outputs: see `tcdsl.targets.protocol.loaded_kernel.LoadedKernel.run`."""
        call = self._begun(inputs, sizes, outputs)
        back: list[tuple[Array, Array]] = []
        status = self._entered(call)
        if status != 0 and before_copying is not None:
            before_copying()
            if status == OVERLAPPING:
                status = self._entered(call, KNOWN_APART)
        if status != 0:
            back = self._copied(call).back
        self._execute(call, threads)
        for array, computed in back:
            array[...] = computed
        return self._finished(call, outputs)

    def timed(
        self, inputs: Sequence[Array], sizes: Mapping[str, int], threads: int | None = None
    ) -> tuple[float, dict[int, tuple[float, int]]]:
        """Run, and tell what the nests take: see `tcdsl.targets.protocol.loaded_kernel.LoadedKernel.timed`."""
        call = self._begun(inputs, sizes, None)
        if self._entered(call) != 0:
            raise ValueError(f"{self.kernel.program.name}: the arrays are not as planned")
        times = np.zeros((self._count + 1, 2), np.int64)
        limit = self._limit(call.plan, threads)
        run, arguments = self._driven(call, limit, times.ctypes.data)
        begin = perf_counter()
        done = run(*arguments)
        seconds = perf_counter() - begin
        if done != self._count:
            raise self._stopped(call, limit, done)
        self._finished(call)
        whole = perf_counter() - begin
        tick = seconds / max(1, int(times[-1, 0]))
        rows = zip(self._rows, times.tolist(), strict=False)
        return whole, {row: (ticks * tick, runs) for row, (ticks, runs) in rows if isinstance(row, int)}

    def bind(
        self,
        inputs: Sequence[Array],
        sizes: Mapping[str, int],
        outputs: Sequence[Array] | None = None,
        threads: int | None = None,
    ) -> BoundMachineCode:
        """The kernel on these arrays, to be run many times."""
        call = self._begun(inputs, sizes, outputs)
        if self._entered(call) != 0:
            seen, given = self._copied(call).arrays, self._arrays.bound(call.inputs, call.made)
            for binding, array, copy in zip(self._arrays.bindings, given, seen, strict=True):
                if copy is not array:
                    name = f"{self.kernel.program.name}: the array for {binding.buffer.name}"
                    raise ValueError(f"{name} is misaligned or shares memory with another")
        limit = self._limit(call.plan, threads)
        run, arguments = self._driven(call, limit)
        results, copies = self._results(call, outputs)
        failed = partial(self._stopped, call, limit)
        return BoundMachineCode(call.plan, call.frame, run, arguments, failed, call.inputs, results, copies)

    def _copied(self, call: PreparedCall) -> BoundArrays:
        bindings, bound = self._arrays.bindings, self._arrays.bound(call.inputs, call.made)
        return bind_arrays(call.plan, call.frame, self._layout, self.kernel.program.name, bindings, bound)

    def _stopped(self, call: PreparedCall, threads: int, done: int) -> BaseException:
        # Why the nest after the first ``done`` ones stopped.
        plan, frame = call.plan, call.frame
        words = frame.words[:FIRST_WORD].tolist()
        nest = self._rows[done]
        assert isinstance(nest, int)
        if threads > 1 and self.kernel.nests[nest].bounds is None and plan.blocks(done) > 1:
            # Which of several faults the threads met first is chance: report the first in order, if it can be had
            # again.
            frame.words[STATUS_WORD] = 0
            self._drivers.execute(plan.table_address + 40 * done, 1, frame.address)
            if frame.words[STATUS_WORD]:
                words = frame.words[:FIRST_WORD].tolist()
        # The loops of rounds around the nest, outermost first.
        rounds = (each.rounds for each in self.kernel.repeated if each.first <= nest < each.end)
        positions = [(each.label, int(frame.words[self._layout.sizes[each.number]])) for each in rounds]
        return failure(words, self._code.checks, self._layout, self._code.locals, positions)


class BoundMachineCode:
    """A kernel with its arrays; calling it runs the machine code. `CompiledKernel.bind` makes it::

        bound = compiled.bind([w, x, rate], sizes)     # checks the arrays, enters their addresses
        for step in range(1000):
            rate[()] = schedule(step)                  # numbers are arrays of rank 0, which may change between runs
            bound()                                    # nothing is looked up, checked or allocated

    ``inputs`` and ``outputs`` are the arrays, to which it holds on: their addresses are in the frame. After each run
    the ``copies`` are made, in order. It has a frame and temporaries of its own. Runs in several threads wait for
    each other, since they would write the same arrays.
    """

    __slots__ = ("_arguments", "_copies", "_count", "_failed", "_frame", "_lock", "_plan", "_run", "inputs", "outputs")

    def __init__(
        self,
        plan: LaunchPlan,
        frame: Frame,
        run: Callable[..., int],
        arguments: tuple[int, ...],
        failed: Callable[[int], BaseException],
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        copies: Sequence[tuple[Array, Array]],
    ) -> None:
        self._plan = plan  # machine code reads its table
        self._frame = frame
        self._run = run
        self._arguments = arguments
        self._count = arguments[1]
        self._failed = failed
        self._lock = lock_of_this_process()
        self._copies = copies
        self.inputs: tuple[Array, ...] = tuple(inputs)
        self.outputs: tuple[Array, ...] = tuple(outputs)

    def __call__(self) -> None:
        """Run. Raises `DataIndexError` if an index read from data is out of range, and has then changed no input."""
        with self._lock:
            try:
                done = self._run(*self._arguments)
            except BaseException:  # of a signal that Python has handled
                self._frame.words[STATUS_WORD] = 0
                raise
            if done != self._count:
                error = self._failed(done)
                self._frame.words[STATUS_WORD] = 0
                raise error
            for destination, source in self._copies:
                np.copyto(destination, source)
