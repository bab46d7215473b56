"""Compiled kernels: what `tcdsl.runtime` calls, as `tcdsl.targets.protocol.loaded_kernel` describes it."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
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
from tcdsl.targets.cpu.machine.machine_code import CompiledNest, load_module
from tcdsl.targets.cpu.machine.module_names import module_stem
from tcdsl.targets.cpu.machine.options import CodegenOptions
from tcdsl.targets.cpu.python.module import GeneratedModule, generate_module

__all__ = ["CompiledKernel", "compile_kernel", "load_kernel"]

Array = np.ndarray[Any, np.dtype[Any]]

_PLANS = 2048  # Sets of sizes whose plans a kernel keeps: some kilobytes each.
_FRAMES = 4  # Frames that wait for calls.


def compile_kernel(kernel: Kernel, *, contiguous: tuple[bool, ...], options: CodegenOptions) -> CompiledKernel:
    """Generate, write, compile and load ``kernel``.

    ``contiguous`` says of each program input whether its arrays will be C-contiguous; others have strides of their own.
    """
    return load_kernel(kernel, generate_module(kernel, contiguous, options), contiguous, options)


def load_kernel(
    kernel: Kernel, generated: GeneratedModule, contiguous: tuple[bool, ...], options: CodegenOptions
) -> CompiledKernel:
    """Write, compile and load ``generated``, which is the module of ``kernel``; machine code may come from disk."""
    flags = (*options.fastmath, str(options.debug))
    stem = module_stem(kernel.program.name, generated.text, flags)
    module = load_module(store(options.cache_dir), stem, generated.text)
    nests = tuple(getattr(module, function) for function in generated.functions)
    return CompiledKernel(kernel, generated, Path(str(module.__file__)), nests, contiguous, options)


@cache
def _drivers(cache_dir: Path | None) -> Drivers:
    return Drivers(cache_dir)


class CompiledKernel:
    """A kernel that runs: ``compiled.run([A, B], {"N": 3, "K": 4, "M": 5})`` gives the list of outputs.

    ``source`` is the text of the generated module, exactly the file at ``path``; ``from_disk`` says whether all machine
    code came from disk. May be called from several threads.
    """

    def __init__(
        self,
        kernel: Kernel,
        generated: GeneratedModule,
        path: Path,
        nests: tuple[CompiledNest, ...],
        contiguous: tuple[bool, ...],
        options: CodegenOptions,
    ) -> None:
        self.kernel = kernel
        self.source = generated.text
        self.path = path
        self.from_disk = all(nest.from_disk for nest in nests)
        self.options = options
        self._generated = generated
        self._layout = layout_of(kernel)
        self._nests = nests
        self._drivers = _drivers(options.cache_dir)
        self._places = [np.array(places, np.int64) for places in generated.places]
        addresses = [int(places.__array_interface__["data"][0]) for places in self._places]
        rows = zip(kernel.nests, nests, addresses, strict=True)
        self._launches = [Launch(nest, built.address, places) for nest, built, places in rows]
        self._count = len(nests)
        self._readable = array_header() is not None and tuple_header() is not None
        self._arrays = CallArrays(kernel, contiguous)
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

    def _made(self, plan: LaunchPlan) -> tuple[Array, ...]:
        return tuple(map(np.empty, plan.made, self._arrays.made_types))

    def run(
        self,
        inputs: Sequence[Array],
        sizes: Mapping[str, int],
        outputs: Sequence[Array] | None = None,
        threads: int | None = None,
        before_copying: Callable[[], None] | None = None,
    ) -> list[Array]:
        """Run the program and return its outputs; inputs that it updates are changed in place.

        ``inputs`` have the program's dtypes and shapes, ``sizes`` the value of every size. Arrays that are misaligned,
        or overlap one that is written, are copied. ``outputs``, if given, receive the results and are returned.
        ``before_copying`` is called before that, and may raise: it is how the caller refuses such arrays.
        Raises `DataIndexError` if an index read from data is out of range, ``ValueError`` if an array does not fit;
        ``outputs`` then hold what they held.
        """
        plan = self.plan(sizes)
        # Nests write straight into the arrays given unless they may fail half-way.
        straight = outputs is not None and self._arrays.direct and not self._generated.checks
        if outputs is not None and not straight:
            require_outputs(plan, self.kernel.program.name, self._outputs, outputs)
        made = tuple(outputs) if outputs is not None and straight else self._made(plan)
        frame = self._frame(plan)
        given = tuple(inputs)
        back: list[tuple[Array, Array]] = []
        status = self._entered(plan, frame, given, made)
        if status != 0 and before_copying is not None:
            before_copying()
            if status == OVERLAPPING:
                status = self._entered(plan, frame, given, made, KNOWN_APART)
        if status != 0:
            back = self._copied(plan, frame, given, made).back
        self._execute(plan, frame, threads)
        for array, computed in back:
            array[...] = computed
        results = self._finished(plan, frame, given, made)
        if outputs is None or straight:
            return results
        for array, computed in zip(outputs, results, strict=True):
            np.copyto(array, computed)
        return list(outputs)

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
        """Run as `run` does, on arrays that may be otherwise than planned: ``None`` if nothing was run.

        ``pack`` writes the ``numbers`` that the plan has in place of arrays. ``check`` raises if ``inputs`` share cells
        with one that is written; it is called where the simple test of compiled code does not suffice.
        """
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
            self._execute(plan, frame, threads or None)
        elif done != self._count:
            raise self._stopped(plan, frame, 1, done)
        if plan.pooled and self._plain:
            self._free.append(frame)
            return made
        return self._finished(plan, frame, inputs, made)

    def _finished(
        self, plan: LaunchPlan, frame: Frame, inputs: tuple[Array, ...], made: tuple[Array, ...]
    ) -> list[Array]:
        results = list(made) if self._arrays.direct else self._results(inputs, made, plan, frame)
        if self.kernel.updates:
            self._update(inputs, made, plan, frame)
        self._release(frame)
        return results

    def bind(
        self,
        inputs: Sequence[Array],
        sizes: Mapping[str, int],
        outputs: Sequence[Array] | None = None,
        threads: int | None = None,
    ) -> BoundKernel:
        """The kernel on these arrays, to be run many times: see `tcdsl.targets.cpu.call.bound_kernels`.

        ``outputs``, or arrays made here, receive the results of each run. Raises ``ValueError`` for arrays that do not
        fit, or that `run` would copy: misaligned ones, and ones that share memory with one that is written.
        """
        plan = self.plan(sizes)
        straight = outputs is not None and self._arrays.direct and not self._generated.checks
        if outputs is not None and not straight:
            require_outputs(plan, self.kernel.program.name, self._outputs, outputs)
        made = tuple(outputs) if outputs is not None and straight else self._made(plan)
        frame = self._frame(plan)
        given = tuple(inputs)
        if self._entered(plan, frame, given, made) != 0:
            seen = self._copied(plan, frame, given, made).arrays
            for binding, array, copy in zip(self._arrays.bindings, self._arrays.bound(given, made), seen, strict=True):
                if copy is not array:
                    name = f"{self.kernel.program.name}: the array for {binding.buffer.name}"
                    raise ValueError(f"{name} is misaligned or shares memory with another")
        limit = self._limit(plan, threads)
        run: Callable[..., int] = self._drivers.execute if limit < 2 else self._drivers.execute_parallel
        call = (plan.table_address, self._count, frame.address, *([limit] if limit > 1 else []))
        bound = BoundKernel(plan, frame, run, call, partial(self._stopped, plan, frame, limit))
        found = [self._array(buffer, given, made, plan, frame, now=False) for buffer in self.kernel.outputs]
        if outputs is not None:
            results = list(outputs)
        else:
            results = list(made) if self._arrays.direct else [np.copy(array) for array in found]
        copies = [(result, array) for result, array in zip(results, found, strict=True) if result is not array]
        bound.hold(given, results, [*copies, *self._updates(given, made, plan, frame)])
        return bound

    def _updates(
        self, inputs: Sequence[Array], made: Sequence[Array], plan: LaunchPlan, frame: Frame
    ) -> list[tuple[Array, Array]]:
        # The copies that `_update` makes, for arrays that stay; inputs that change are set aside first.
        sources = [self._array(source, inputs, made, plan, frame, now=False) for _, source in self.kernel.updates]
        aside: list[tuple[Array, Array]] = []
        for k, (_, source) in enumerate(self.kernel.updates):
            if source in self._arrays.given_positions:
                aside.append((np.empty_like(sources[k]), sources[k]))
                sources[k] = aside[-1][0]
        targets = [inputs[self._arrays.given_positions[target]] for target, _ in self.kernel.updates]
        return [*aside, *zip(targets, sources, strict=True)]

    def _limit(self, plan: LaunchPlan, threads: int | None) -> int:
        # The number of threads of a call.
        if not plan.parallel:
            return 1
        return min(threads or self.options.threads or self._drivers.available, self._drivers.available)

    def _entered(
        self, plan: LaunchPlan, frame: Frame, inputs: tuple[Array, ...], made: tuple[Array, ...], mode: int = 0
    ) -> int:
        # Enter the arrays; 0 if they are as planned.
        if not self._readable or len(inputs) != len(self.kernel.program.inputs) or len(made) != len(self._arrays.made):
            return NOT_AS_PLANNED
        return self._drivers.run(plan.address, frame.address, id(inputs), id(made), mode | BIND_ONLY)

    def _copied(self, plan: LaunchPlan, frame: Frame, inputs: Sequence[Array], made: Sequence[Array]) -> BoundArrays:
        layout, bindings, bound = self._layout, self._arrays.bindings, self._arrays.bound(inputs, made)
        return bind_arrays(plan, frame, layout, self.kernel.program.name, bindings, bound)

    def _execute(self, plan: LaunchPlan, frame: Frame, threads: int | None) -> None:
        limit = self._limit(plan, threads)
        if limit < 2:
            done = self._drivers.execute(plan.table_address, self._count, frame.address)
        else:
            done = self._drivers.execute_parallel(plan.table_address, self._count, frame.address, limit)
        if done != self._count:
            raise self._stopped(plan, frame, limit, done)

    def _stopped(self, plan: LaunchPlan, frame: Frame, threads: int, done: int) -> TcdslError:
        # Why the nest after the first ``done`` ones stopped.
        words = frame.words[:FIRST_WORD].tolist()
        if threads > 1 and plan.blocks(done) > 1:
            # Which of several faults the threads met first is chance: report the first in order, if it can be had
            # again.
            frame.words[STATUS_WORD] = 0
            self._drivers.execute(plan.table_address + 40 * done, 1, frame.address)
            if frame.words[STATUS_WORD]:
                words = frame.words[:FIRST_WORD].tolist()
        return failure(words, self._generated.checks, self._layout, self._generated.locals)

    def _array(
        self,
        buffer: str,
        inputs: Sequence[Array],
        made: Sequence[Array],
        plan: LaunchPlan,
        frame: Frame,
        now: bool = True,
    ) -> Array:
        if buffer in self._arrays.made_positions:
            return made[self._arrays.made_positions[buffer]]
        if buffer in self._arrays.given_positions:
            # An input may change after this: what is wanted is what it holds now.
            array = inputs[self._arrays.given_positions[buffer]]
            return array.copy() if now else array
        number = self._temporary_numbers[buffer]
        return frame.temporary(plan, self._temporaries.buffers[number], number)

    def _update(self, inputs: Sequence[Array], made: Sequence[Array], plan: LaunchPlan, frame: Frame) -> None:
        sources = [self._array(source, inputs, made, plan, frame) for _, source in self.kernel.updates]
        for (target, _), source in zip(self.kernel.updates, sources, strict=True):
            np.copyto(inputs[self._arrays.given_positions[target]], source)

    def _results(self, inputs: Sequence[Array], made: Sequence[Array], plan: LaunchPlan, frame: Frame) -> list[Array]:
        # Outputs that are inputs, temporaries or each other: every one gets memory of its own.
        results: list[Array] = []
        for buffer in self.kernel.outputs:
            array = self._array(buffer, inputs, made, plan, frame)
            fresh = buffer in self._arrays.made_positions and not any(array is other for other in results)
            results.append(array if fresh else array.copy())
        return results


def _picker(names: Sequence[str]) -> Callable[[Mapping[str, int]], Any]:
    # The values of the sizes as a key: itemgetter gives one value bare and needs at least one name.
    return itemgetter(*names) if names else lambda sizes: ()
