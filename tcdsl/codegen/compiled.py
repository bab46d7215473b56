"""Compiled kernels: what `tcdsl.runtime` calls."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from tcdsl.codegen.arrays import bind_arrays, require_outputs
from tcdsl.codegen.bound import BoundKernel
from tcdsl.codegen.compiling import CompiledNest, load_module
from tcdsl.codegen.drivers import Drivers
from tcdsl.codegen.failures import failure
from tcdsl.codegen.frame import FIRST_WORD, STATUS_WORD
from tcdsl.codegen.internals import array_header
from tcdsl.codegen.kept import keep_kernel, kept_kernel, kernel_name
from tcdsl.codegen.module import GeneratedModule, generate_module
from tcdsl.codegen.options import CodegenOptions
from tcdsl.codegen.plans import Binding, Frame, Launch, Plan
from tcdsl.codegen.store import module_stem, store
from tcdsl.errors import TcdslError
from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.ir.program import Program
from tcdsl.locks import lock_of_this_process
from tcdsl.lowering.loops import Kernel

__all__ = ["CompiledKernel", "compile_kernel", "compile_program"]

Array = np.ndarray[Any, np.dtype[Any]]

_ARRAY_TYPE = id(np.ndarray)
_PLANS = 64  # Sets of sizes whose plans a kernel keeps.


def compile_kernel(kernel: Kernel, *, contiguous: tuple[bool, ...], options: CodegenOptions) -> CompiledKernel:
    """Generate, write, compile and load ``kernel``.

    ``contiguous`` says of each program input whether its arrays will be C-contiguous; others have strides of their own.
    """
    return _loaded(kernel, generate_module(kernel, contiguous, options), contiguous, options)


def compile_program(
    program: Program,
    lowered: Callable[[], Kernel],
    *,
    contiguous: tuple[bool, ...],
    options: CodegenOptions,
    choices: tuple[Any, ...] = (),
) -> CompiledKernel:
    """Compile the kernel that ``lowered()`` makes of ``program``, or load what an earlier process made.

    ``choices`` is what ``lowered`` depends on besides the program.
    """
    own = (contiguous, options.fastmath, options.debug)
    place, name = store(options.cache_dir), kernel_name(program, (*choices, *own))
    kept = kept_kernel(place, name)
    if kept is None:
        kernel = lowered()
        kept = kernel, generate_module(kernel, contiguous, options)
        keep_kernel(place, name, *kept)
    return _loaded(*kept, contiguous, options)


def _loaded(
    kernel: Kernel, generated: GeneratedModule, contiguous: tuple[bool, ...], options: CodegenOptions
) -> CompiledKernel:
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
        self._nests = nests
        self._drivers = _drivers(options.cache_dir)
        launches = zip(kernel.nests, nests, generated.places, strict=True)
        self._launches = [Launch(nest, built.address, places) for nest, built, places in launches]
        self._count = len(nests)
        self._header = array_header()
        self._bind_buffers(contiguous)
        self._sizes_of = _picker([size.name for size in kernel.program.sizes])
        self._plans: OrderedDict[Any, Plan] = OrderedDict()
        self._lock = lock_of_this_process()

    def __reduce__(self) -> Any:
        raise TypeError(f"machine code cannot be pickled or copied: {self.kernel.program.name}")

    def _bind_buffers(self, contiguous: tuple[bool, ...]) -> None:
        # Which arrays a call brings: one for each program input that has a buffer, one for each buffer of kind output.
        kernel = self.kernel
        holders = {tensor: buffer for buffer in kernel.buffers for tensor in buffer.tensors}
        updated = {target for target, _ in kernel.updates}
        self._bindings: list[Binding] = []
        self._input_positions: dict[str, int] = {}
        for position, (tensor, unit) in enumerate(zip(kernel.program.inputs, contiguous, strict=True)):
            buffer = holders.get(tensor.name)
            if buffer is None or buffer.kind not in ("input", "update"):
                continue
            exclusive = buffer.kind == "update"
            self._bindings.append(Binding(buffer, unit, exclusive, exclusive or buffer.name in updated))
            self._input_positions[buffer.name] = position
        self._all_inputs_bound = len(self._bindings) == len(kernel.program.inputs)
        made = [buffer for buffer in kernel.buffers if buffer.kind == "output"]
        self._bindings += [Binding(buffer, True, True, True) for buffer in made]
        self._made_positions = {buffer.name: k for k, buffer in enumerate(made)}
        self._made = [(buffer.name, numpy_dtype(buffer.dtype)) for buffer in made]
        by_name = {buffer.name: buffer for buffer in kernel.buffers}
        self._temporaries = {name: buffer for name, buffer in by_name.items() if buffer.kind == "temporary"}
        self._outputs = [by_name[name] for name in kernel.outputs]
        # Usually the outputs are the arrays made, in order.
        self._direct = list(kernel.outputs) == [buffer.name for buffer in made]

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
        key = self._sizes_of(sizes)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plan(key)
        frame = plan.acquire()
        # Nests write straight into the arrays given unless they may fail half-way.
        straight = outputs is not None and self._direct and not self._generated.checks
        if outputs is not None and not straight:
            require_outputs(plan, self._outputs, outputs)
        made = [np.empty(plan.shapes[name], dtype) for name, dtype in self._made]
        if outputs is not None and straight:
            made = list(outputs)
        arrays = [*inputs, *made]
        if not self._all_inputs_bound:
            arrays = [*(inputs[k] for k in self._input_positions.values()), *made]
        back: list[tuple[Array, Array]] = []
        if not self._bind(plan, frame, arrays):
            if before_copying is not None:
                before_copying()
            back = bind_arrays(plan, frame, self._bindings, arrays).back
        if not plan.pooled:
            frame.allocate(plan)
        self._execute(plan, frame, self._limit(plan, threads))
        for array, computed in back:
            array[...] = computed
        results = made if self._direct else self._results(inputs, made, plan, frame)
        if self.kernel.updates:
            self._update(inputs, made, plan, frame)
        plan.release(frame)
        if outputs is None or straight:
            return results
        for array, computed in zip(outputs, results, strict=True):
            np.copyto(array, computed)
        return list(outputs)

    def bind(
        self,
        inputs: Sequence[Array],
        sizes: Mapping[str, int],
        outputs: Sequence[Array] | None = None,
        threads: int | None = None,
    ) -> BoundKernel:
        """The kernel on these arrays, to be run many times: see `tcdsl.codegen.bound`.

        ``outputs``, or arrays made here, receive the results of each run. Raises ``ValueError`` for arrays that do not
        fit, or that `run` would copy: misaligned ones, and ones that share memory with one that is written.
        """
        key = self._sizes_of(sizes)
        plan = self._plans.get(key) or self._plan(key)
        frame = Frame(plan)
        if not plan.pooled:
            frame.allocate(plan)
        straight = outputs is not None and self._direct and not self._generated.checks
        if outputs is not None and not straight:
            require_outputs(plan, self._outputs, outputs)
        made = [np.empty(plan.shapes[name], dtype) for name, dtype in self._made]
        if outputs is not None and straight:
            made = list(outputs)
        arrays = [*(inputs[k] for k in self._input_positions.values()), *made]
        if not self._bind(plan, frame, arrays):
            seen = bind_arrays(plan, frame, self._bindings, arrays).arrays
            for binding, array, copy in zip(self._bindings, arrays, seen, strict=True):
                if copy is not array:
                    name = binding.buffer.name
                    raise ValueError(f"{plan.name}: the array for {name} is misaligned or shares memory with another")
        limit = self._limit(plan, threads)
        run: Callable[..., int] = self._drivers.execute if limit < 2 else self._drivers.execute_parallel
        call = (plan.table_address, self._count, frame.address, *([limit] if limit > 1 else []))
        bound = BoundKernel(plan, frame, run, call, partial(self._stopped, plan, frame, limit))
        found = [self._array(buffer, inputs, made, plan, frame, now=False) for buffer in self.kernel.outputs]
        results = list(outputs) if outputs is not None else made if self._direct else [np.copy(a) for a in found]
        copies = [(result, array) for result, array in zip(results, found, strict=True) if result is not array]
        bound.hold(inputs, results, [*copies, *self._updates(inputs, made, plan, frame)])
        return bound

    def _updates(
        self, inputs: Sequence[Array], made: list[Array], plan: Plan, frame: Frame
    ) -> list[tuple[Array, Array]]:
        # The copies that `_update` makes, for arrays that stay; inputs that change are set aside first.
        sources = [self._array(source, inputs, made, plan, frame, now=False) for _, source in self.kernel.updates]
        aside: list[tuple[Array, Array]] = []
        for k, (_, source) in enumerate(self.kernel.updates):
            if source in self._input_positions:
                aside.append((np.empty_like(sources[k]), sources[k]))
                sources[k] = aside[-1][0]
        targets = [inputs[self._input_positions[target]] for target, _ in self.kernel.updates]
        return [*aside, *zip(targets, sources, strict=True)]

    def _limit(self, plan: Plan, threads: int | None) -> int:
        # The number of threads of a call.
        if not plan.parallel:
            return 1
        return min(threads or self.options.threads or self._drivers.available, self._drivers.available)

    def _bind(self, plan: Plan, frame: Frame, arrays: list[Array]) -> bool:
        if self._header is None or len(arrays) != plan.array_count:
            return False
        plan.pack(frame.objects, 0, *map(id, arrays))
        address, objects, count = plan.bindings_address, frame.objects_address, plan.array_count
        return self._drivers.bind(address, objects, count, frame.address, self._header, _ARRAY_TYPE) == 0

    def _plan(self, key: Any) -> Plan:
        names = [size.name for size in self.kernel.program.sizes]
        sizes = dict(zip(names, key if len(names) > 1 else (key,), strict=True)) if names else {}
        threads = self._drivers.available
        plan = Plan(self.kernel, self._generated.layout, sizes, self._bindings, self._launches, threads)
        with self._lock:
            self._plans[key] = plan
            while len(self._plans) > _PLANS:
                self._plans.popitem(last=False)
        return plan

    def _execute(self, plan: Plan, frame: Frame, threads: int) -> None:
        if threads < 2:
            done = self._drivers.execute(plan.table_address, self._count, frame.address)
        else:
            done = self._drivers.execute_parallel(plan.table_address, self._count, frame.address, threads)
        if done != self._count:
            raise self._stopped(plan, frame, threads, done)

    def _stopped(self, plan: Plan, frame: Frame, threads: int, done: int) -> TcdslError:
        # Why the nest after the first ``done`` ones stopped.
        words = frame.words[:FIRST_WORD].tolist()
        if threads > 1 and plan.table[done, 3] > 1:
            # Which of several faults the threads met first is chance: report the first in order, if it can be had
            # again.
            frame.words[STATUS_WORD] = 0
            self._drivers.execute(plan.table_address + 40 * done, 1, frame.address)
            if frame.words[STATUS_WORD]:
                words = frame.words[:FIRST_WORD].tolist()
        return failure(words, self._generated.checks, self._generated.layout)

    def _array(
        self, buffer: str, inputs: Sequence[Array], made: list[Array], plan: Plan, frame: Frame, now: bool = True
    ) -> Array:
        if buffer in self._made_positions:
            return made[self._made_positions[buffer]]
        if buffer in self._input_positions:
            # An input may change after this: what is wanted is what it holds now.
            array = inputs[self._input_positions[buffer]]
            return array.copy() if now else array
        return frame.temporary(plan, self._temporaries[buffer])

    def _update(self, inputs: Sequence[Array], made: list[Array], plan: Plan, frame: Frame) -> None:
        sources = [self._array(source, inputs, made, plan, frame) for _, source in self.kernel.updates]
        for (target, _), source in zip(self.kernel.updates, sources, strict=True):
            np.copyto(inputs[self._input_positions[target]], source)

    def _results(self, inputs: Sequence[Array], made: list[Array], plan: Plan, frame: Frame) -> list[Array]:
        # Outputs that are inputs, temporaries or each other: every one gets memory of its own.
        results: list[Array] = []
        for buffer in self.kernel.outputs:
            array = self._array(buffer, inputs, made, plan, frame)
            fresh = buffer in self._made_positions and not any(array is other for other in results)
            results.append(array if fresh else array.copy())
        return results


def _picker(names: Sequence[str]) -> Callable[[Mapping[str, int]], Any]:
    # The values of the sizes as a key: itemgetter gives one value bare and needs at least one name.
    return itemgetter(*names) if names else lambda sizes: ()
