"""Compiled kernels: what `tcdsl.runtime` calls, as `tcdsl.targets.protocol.loaded_kernel` describes it."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from tcdsl.errors import TcdslError
from tcdsl.lowering.loop_passes.liveness import Temporaries
from tcdsl.lowering.loopir.loops import Kernel
from tcdsl.recent import Recent
from tcdsl.targets.cache.store import store
from tcdsl.targets.cpu.call.arrays import BoundArrays, bind_arrays, require_outputs
from tcdsl.targets.cpu.call.bound_kernels import BoundKernel
from tcdsl.targets.cpu.call.drivers import Drivers
from tcdsl.targets.cpu.call.failures import failure
from tcdsl.targets.cpu.call.launch_plans import Frame, LaunchPlan
from tcdsl.targets.cpu.call.plan_code import Launch, PlanCode, frame_words
from tcdsl.targets.cpu.layout.call_arrays import CallArrays
from tcdsl.targets.cpu.layout.call_block import BIND_ONLY, KNOWN_APART, NOT_AS_PLANNED, OVERLAPPING
from tcdsl.targets.cpu.layout.frame import FIRST_WORD, STATUS_WORD, layout_of
from tcdsl.targets.cpu.machine.internals import array_header, tuple_header
from tcdsl.targets.cpu.machine.machine_code import CompiledModule, compiled_module
from tcdsl.targets.cpu.machine.module_names import module_stem
from tcdsl.targets.cpu.python.module import GeneratedModule
from tcdsl.targets.protocol.target import Build

__all__ = ["CompiledKernel", "load_kernel"]

Array = np.ndarray[Any, np.dtype[Any]]

_PLANS = 2048  # Sets of sizes whose plans a kernel keeps: some kilobytes each.
_FRAMES = 4  # Frames that wait for calls.


def load_kernel(kernel: Kernel, generated: GeneratedModule, build: Build) -> CompiledKernel:
    """Write, compile and load ``generated``, which is the module of ``kernel``; machine code may come from disk."""
    functions = dict(zip(generated.functions, generated.keys, strict=True))
    stem = module_stem(kernel.program.name, generated.text)
    # LLVM's second level takes half the time of its third, and what it makes is as fast but for a tenth at most.
    level = 3 if build.lasting else 2
    module = compiled_module(store(build.cache_dir), stem, generated.text, functions, level)
    return CompiledKernel(kernel, generated, module, build)


@cache
def _drivers(cache_dir: Path | None) -> Drivers:
    return Drivers(cache_dir)


@dataclass(frozen=True, slots=True)
class _Call:
    """Where a call runs, and its arrays: those given, and those made for it."""

    plan: LaunchPlan
    frame: Frame
    inputs: tuple[Array, ...]
    made: tuple[Array, ...]


class CompiledKernel:
    """A kernel that runs: ``compiled.run([A, B], {"N": 3, "K": 4, "M": 5})`` gives the list of outputs.

    ``source`` is the text of the generated module, exactly the file at ``path``; ``from_disk`` says whether all machine
    code came from disk. May be called from several threads.
    """

    def __init__(
        self,
        kernel: Kernel,
        generated: GeneratedModule,
        module: CompiledModule,
        build: Build,
    ) -> None:
        self.kernel = kernel
        self.source = generated.text
        self.path = module.path
        self.from_disk = module.from_disk
        self._generated = generated
        self._layout = layout_of(kernel)
        self._module = module
        self._drivers = _drivers(build.cache_dir)
        self._places = [np.array(places, np.int64) for places in generated.places]
        addresses = [int(places.__array_interface__["data"][0]) for places in self._places]
        rows = zip(kernel.nests, generated.functions, addresses, strict=True)
        self._launches = [Launch(nest, module.addresses[function], places) for nest, function, places in rows]
        self._count = len(kernel.nests)
        self._readable = array_header() is not None and tuple_header() is not None
        self._arrays = CallArrays(kernel, build.contiguous)
        self._temporaries = Temporaries(kernel)
        self._temporary_numbers = {buffer.name: k for k, buffer in enumerate(self._temporaries.buffers)}
        slots = [self._layout.buffers[name] for name in self._temporary_numbers]
        self._temporary_slots = np.array(slots, np.int64)
        buffers = {buffer.name: buffer for buffer in kernel.buffers}
        self._outputs = [buffers[name] for name in kernel.outputs]
        self._plain = self._arrays.direct and not kernel.updates
        self._numbers_at = 8 * self._layout.words
        self._sizes_of = _picker([size.name for size in kernel.program.sizes])
        self._codes: dict[tuple[int, ...], PlanCode] = {}
        self._plans: Recent[Any, LaunchPlan] = Recent(_PLANS)
        self._free: deque[Frame] = deque()

    def __reduce__(self) -> Any:
        raise TypeError(f"machine code cannot be pickled or copied: {self.kernel.program.name}")

    def plan(self, sizes: Mapping[str, int], numbers: tuple[int, ...] = ()) -> LaunchPlan:
        """The plan for the value of every size. The inputs at the positions ``numbers`` are given as numbers."""
        key = self._sizes_of(sizes), numbers
        found = self._plans.get(key)
        if found is None:
            code = self._codes.get(numbers)
            if code is None:
                code = PlanCode(self.kernel, self._layout, self._arrays, self._launches, numbers)
                self._codes[numbers] = code
            values = [sizes[size.name] for size in self.kernel.program.sizes]
            made = self._arrays.made_positions
            found = LaunchPlan(code, self.kernel, self._temporaries, made, values, self._drivers.available)
            self._plans[key] = found
        return found

    def _frame(self, plan: LaunchPlan) -> Frame:
        # One that no other call uses, set up for ``plan``.
        try:
            frame = self._free.pop()
        except IndexError:
            words = frame_words(self.kernel, self._layout, self._arrays)
            frame = Frame(words, self._temporary_slots)
        if frame.plan is not plan:
            frame.take(plan)
        return frame

    def _release(self, frame: Frame) -> None:
        if len(self._free) < _FRAMES:
            frame.leave()
            self._free.append(frame)

    def _begun(self, inputs: Sequence[Array], sizes: Mapping[str, int], outputs: Sequence[Array] | None) -> _Call:
        # Nests write straight into the arrays given for results, unless they may fail half-way.
        straight = outputs is not None and self._arrays.direct and not self._generated.checks
        plan = self.plan(sizes)
        if outputs is not None and not straight:
            require_outputs(plan, self.kernel.program.name, self._outputs, outputs)
        made = outputs if outputs is not None and straight else map(np.empty, plan.made, self._arrays.made_types)
        return _Call(plan, self._frame(plan), tuple(inputs), tuple(made))

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

    def changes(self, changed: Set[int], arrays: Set[int]) -> bool:
        """Whether the driver sees to it that calls may change the inputs at the positions ``changed``, and no others.

        It knows nothing of ``arrays`` that the kernel does not read.
        """
        given = self._arrays.given
        written = {binding.position for binding in given if binding.written}
        return written == changed and (not changed or arrays <= {binding.position for binding in given})

    def launch(
        self,
        plan: LaunchPlan,
        inputs: tuple[Array, ...],
        numbers: tuple[bool | int | float, ...],
        pack: Callable[..., None],
        threads: int,
        check: Callable[[tuple[Array, ...]], None],
    ) -> Sequence[Array] | None:
        """Run on arrays that may be otherwise than planned: see `LoadedKernel.launch`."""
        frame = self._free.pop() if self._free else self._frame(plan)
        if frame.plan is not plan:
            frame.take(plan)
        if numbers:
            try:
                pack(frame.words, self._numbers_at, *numbers)
            except struct.error:  # an integer of more than 64 bits
                return None
        made = tuple(map(np.empty, plan.made, self._arrays.made_types))
        done = self._drivers.run(plan.address, frame.address, id(inputs), id(made), 0)
        if done == OVERLAPPING:
            check(inputs)
            done = self._drivers.run(plan.address, frame.address, id(inputs), id(made), KNOWN_APART)
        if done < 0:
            self._release(frame)
            return None
        if plan.parallel:
            self._execute(_Call(plan, frame, inputs, made), threads or None)
        elif done != self._count:
            raise self._stopped(_Call(plan, frame, inputs, made), 1, done)
        if plan.pooled and self._plain:
            self._free.append(frame)
            return made
        return self._finished(_Call(plan, frame, inputs, made))

    def _finished(self, call: _Call, outputs: Sequence[Array] | None = None) -> list[Array]:
        results, copies = self._results(call, outputs)
        for destination, source in copies:
            np.copyto(destination, source)
        self._release(call.frame)
        return results

    def bind(
        self,
        inputs: Sequence[Array],
        sizes: Mapping[str, int],
        outputs: Sequence[Array] | None = None,
        threads: int | None = None,
    ) -> BoundKernel:
        """The kernel on these arrays, to be run many times: see `tcdsl.targets.cpu.call.bound_kernels`."""
        call = self._begun(inputs, sizes, outputs)
        if self._entered(call) != 0:
            seen, given = self._copied(call).arrays, self._arrays.bound(call.inputs, call.made)
            for binding, array, copy in zip(self._arrays.bindings, given, seen, strict=True):
                if copy is not array:
                    name = f"{self.kernel.program.name}: the array for {binding.buffer.name}"
                    raise ValueError(f"{name} is misaligned or shares memory with another")
        limit = self._limit(call.plan, threads)
        run: Callable[..., int] = self._drivers.execute if limit < 2 else self._drivers.execute_parallel
        arguments = (call.plan.table_address, self._count, call.frame.address, *([limit] if limit > 1 else []))
        results, copies = self._results(call, outputs)
        failed = partial(self._stopped, call, limit)
        return BoundKernel(call.plan, call.frame, run, arguments, failed, call.inputs, results, copies)

    def _results(self, call: _Call, outputs: Sequence[Array] | None) -> tuple[list[Array], list[tuple[Array, Array]]]:
        """The results, and the copies to make, in order, after the nests: into results, then into updated inputs.

        Outputs that are inputs, temporaries or each other get memory of their own.
        """
        if self._plain and outputs is None:
            return list(call.made), []
        results: list[Array] = []
        copies: list[tuple[Array, Array]] = []
        for k, buffer in enumerate(self.kernel.outputs):
            array = self._array(buffer, call)
            fresh = buffer in self._arrays.made_positions and not any(array is other for other in results)
            own = array if fresh else np.empty(array.shape, array.dtype)
            results.append(own if outputs is None else outputs[k])
            if results[k] is not array:
                copies.append((results[k], array))
        targets: list[tuple[Array, Array]] = []
        for target, source in self.kernel.updates:
            array = self._array(source, call)
            if source in self._arrays.given_positions:
                # An input that changes itself: what is wanted is what it holds before.
                copies.append((np.empty(array.shape, array.dtype), array))
                array = copies[-1][0]
            targets.append((call.inputs[self._arrays.given_positions[target]], array))
        return results, [*copies, *targets]

    def _limit(self, plan: LaunchPlan, threads: int | None) -> int:
        # The number of threads of a call.
        if not plan.parallel:
            return 1
        return min(threads or self._drivers.available, self._drivers.available)

    def _entered(self, call: _Call, mode: int = 0) -> int:
        # Enter the arrays; 0 if they are as planned.
        counts = len(call.inputs), len(call.made)
        if not self._readable or counts != (len(self.kernel.program.inputs), len(self._arrays.made)):
            return NOT_AS_PLANNED
        return self._drivers.run(
            call.plan.address, call.frame.address, id(call.inputs), id(call.made), mode | BIND_ONLY
        )

    def _copied(self, call: _Call) -> BoundArrays:
        bindings, bound = self._arrays.bindings, self._arrays.bound(call.inputs, call.made)
        return bind_arrays(call.plan, call.frame, self._layout, self.kernel.program.name, bindings, bound)

    def _execute(self, call: _Call, threads: int | None) -> None:
        limit = self._limit(call.plan, threads)
        arguments = call.plan.table_address, self._count, call.frame.address
        done = self._drivers.execute(*arguments) if limit < 2 else self._drivers.execute_parallel(*arguments, limit)
        if done != self._count:
            raise self._stopped(call, limit, done)

    def _stopped(self, call: _Call, threads: int, done: int) -> TcdslError:
        # Why the nest after the first ``done`` ones stopped.
        plan, frame = call.plan, call.frame
        words = frame.words[:FIRST_WORD].tolist()
        if threads > 1 and plan.blocks(done) > 1:
            # Which of several faults the threads met first is chance: report the first in order, if it can be had
            # again.
            frame.words[STATUS_WORD] = 0
            self._drivers.execute(plan.table_address + 40 * done, 1, frame.address)
            if frame.words[STATUS_WORD]:
                words = frame.words[:FIRST_WORD].tolist()
        return failure(words, self._generated.checks, self._layout, self._generated.locals)

    def _array(self, buffer: str, call: _Call) -> Array:
        if buffer in self._arrays.made_positions:
            return call.made[self._arrays.made_positions[buffer]]
        if buffer in self._arrays.given_positions:
            return call.inputs[self._arrays.given_positions[buffer]]
        number = self._temporary_numbers[buffer]
        return call.frame.temporary(call.plan, self._temporaries.buffers[number], number)


def _picker(names: Sequence[str]) -> Callable[[Mapping[str, int]], Any]:
    # The values of the sizes as a key: itemgetter gives one value bare and needs at least one name.
    return itemgetter(*names) if names else lambda sizes: ()
