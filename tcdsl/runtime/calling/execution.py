"""Running a program on arrays: kernels per memory layout, compiled when they are first needed.

``tc.config(debug=True)`` shows on standard error each compilation and each run, with its time::

    tcdsl: compiled matmul: 1 nest in 0.21 s, /home/me/.cache/tcdsl/modules/matmul_1f2e.py
    tcdsl: ran matmul(float32[512, 512], float32[512, 512]) in 3.1 ms
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tcdsl.config import Settings, config, settings
from tcdsl.errors import Diagnostic, OutOfMemoryError, ShapeError, TcdslError
from tcdsl.ir.build import integer
from tcdsl.ir.program import Program
from tcdsl.ir.sizes.size_binding import BoundSizes, SizePlan, evaluate_size, largest_of
from tcdsl.locks import COMPILING, without_collecting
from tcdsl.progress import shown
from tcdsl.runtime.calling.launches import LaunchedProgram, Shapes
from tcdsl.runtime.calling.nan_search import NanSearch
from tcdsl.runtime.calling.written_memory import check_written

if TYPE_CHECKING:
    from tcdsl.ir.interpreter.interpreter import Interpretation
    from tcdsl.ir.text.declined import Declined
    from tcdsl.lowering.loopir.loops import Kernel
    from tcdsl.lowering.pipeline import PassWatch
    from tcdsl.targets.protocol.loaded_kernel import BoundKernel, LoadedKernel


__all__ = ["BoundProgram", "Executable", "interpreted"]

_LESS_MEMORY = (
    "compute fewer rows in a call; gradients of loops keep fewer states with `tc.loop(n, checkpoints=8)`, "
    "or `tc.config(tape_memory=2**30)`"
)


class Executable(LaunchedProgram):
    """A program with its compiled kernels: ``Executable(program).run(arrays)``.

    One kernel serves every shape. A kernel is compiled per combination of contiguous and strided inputs. ``orders``
    are those of its contractions (`tcdsl.lowering.lower.lower`).
    """

    def __init__(self, program: Program, fixed: Mapping[str, int] | None = None, orders: tuple[int, ...] = ()) -> None:
        updates, inputs = {name for name, _ in program.updates}, program.inputs
        super().__init__(
            ((str(tensor.dtype), len(tensor.shape)) for tensor in inputs),
            (k for k, tensor in enumerate(inputs) if tensor.name in updates),
            (k for k, tensor in enumerate(inputs) if integer(0) not in tensor.shape),
        )
        self.program = program
        self.orders = orders
        self._fixed = fixed  # sizes that are constants to the kernel
        #: How the sizes of a call are found.
        self.size_plan = SizePlan(program)
        self._kernels: dict[tuple[bool | str, bool, str], dict[frozenset[str], Kernel]] = {}
        self._compiled: dict[tuple[Any, ...], LoadedKernel] = {}
        self._specialized: dict[tuple[int, ...], Executable] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Executable, (self.program, self._fixed, self.orders)  # addresses mean nothing elsewhere

    @property
    def compiled_last(self) -> LoadedKernel | None:
        """The machine code that was made last, if any was."""
        return next(reversed(self._compiled.values()), None)

    def kernel(
        self,
        optimize: bool | str = True,
        large: bool = False,
        watch: PassWatch | None = None,
        *,
        strided: frozenset[str] = frozenset(),
    ) -> Kernel:
        """The loop nests, for sizes up to the kernel's limit, or ``large`` ones; ``watch`` sees how they are made.

        The inputs that are ``strided`` need not be row-major.
        """
        target = settings().target
        with COMPILING:
            known = self._kernels.setdefault((optimize, large, target), {})
            for deciding, found in known.items():
                # Strides of other inputs make no difference.
                if watch is None and strided & found.by_rows == deciding:
                    return found
            from tcdsl.lowering.loop_passes.index_widths import LARGEST_SIZE
            from tcdsl.lowering.lower import lower
            from tcdsl.simplification import specialized
            from tcdsl.targets.registry import target_named

            made = lower(
                self.program if self._fixed is None else specialized(self.program, self._fixed),
                optimize=optimize,
                largest=LARGEST_SIZE if large else None,
                watch=watch,
                orders=self.orders,
                machine=target_named(target).machine,
                strided=strided,
            )
            known[strided & made.by_rows] = made
            return made

    def strided(self, contiguous: Sequence[bool]) -> frozenset[str]:
        """The inputs that are not row-major."""
        given = zip(self.program.inputs, contiguous, strict=True)
        return frozenset(tensor.name for tensor, is_contiguous in given if not is_contiguous)

    def compiled(
        self, contiguous: tuple[bool, ...], current: Settings | None = None, large: bool = False
    ) -> LoadedKernel:
        """The machine code for inputs of this layout."""
        current = current or settings()
        key = (contiguous, current.optimize, current.cache_dir, current.check, current.target, large)
        found = self._compiled.get(key)
        if found is None:
            with COMPILING:
                if key not in self._compiled:
                    self._compiled[key] = self._compile(contiguous, current, large)
                found = self._compiled[key]
        return found

    def check_written(self, inputs: Sequence[np.ndarray]) -> None:
        """Raise unless written arrays are as they must be."""
        check_written(self.program, inputs)

    def fitting(self, contiguous: tuple[bool, ...], current: Settings, largest: int) -> LoadedKernel:
        """The machine code for inputs of this layout and for sizes as large as this."""
        compiled = self.compiled(contiguous, current)
        if largest > compiled.kernel.limit:
            compiled = self.compiled(contiguous, current, large=True)
        return compiled

    def _special(self, sizes: Mapping[str, int]) -> Executable:
        # For arrays that stay, their sizes are constants: loops over them are made to measure.
        key = tuple(sizes.values())
        with COMPILING:
            if key not in self._specialized:
                self._specialized[key] = Executable(self.program, sizes)
            return self._specialized[key]

    @without_collecting()
    def _compile(self, contiguous: tuple[bool, ...], current: Settings, large: bool) -> LoadedKernel:
        from tcdsl.targets.loading import load_program
        from tcdsl.targets.protocol.target import Build
        from tcdsl.targets.registry import target_named

        lowered = partial(self.kernel, current.optimize, large, strided=self.strided(contiguous))
        if "ir" in current.check:
            from tcdsl.ir.verifier.verifier import verify

            verify(self.program)
            verify(lowered().program)
        cache_dir = Path(current.cache_dir) if current.cache_dir else None
        lasting = self._fixed is not None
        build = Build(contiguous, checked="bounds" in current.check, lasting=lasting, cache_dir=cache_dir)
        choices = (current.optimize, large, self.orders, None if self._fixed is None else tuple(self._fixed.items()))
        begin = time.perf_counter()
        with shown(f"compiling {self.program.name}"):
            compiled = load_program(target_named(current.target), self.program, lowered, build, choices)
        if current.debug:
            show_compilation(self.program.name, compiled, begin)
        return compiled

    def declined(self, kernel: Kernel, contiguous: tuple[bool, ...]) -> Iterable[tuple[str, Declined]]:
        """What the target could not do with the loops of ``kernel``: nests by name, and why."""
        from tcdsl.targets.protocol.target import Build
        from tcdsl.targets.registry import target_named

        return target_named(settings().target).declined(kernel, Build(contiguous))

    def sizes(self, arrays: Sequence[np.ndarray]) -> BoundSizes:
        """The sizes for these inputs; a `ShapeError` if they do not fit."""
        return self.size_plan.bind([array.shape for array in arrays])

    def sized(self, shapes: Shapes) -> tuple[Sequence[int], int] | None:
        """The values of all sizes in order for inputs of these shapes, and the largest one; None if there are none."""
        found = self.size_plan.values(shapes)
        if found is not None:
            return found
        try:
            sizes = self.size_plan.bind(shapes)
        except TcdslError:
            return None
        return tuple(sizes.values()), sizes.largest

    def run(
        self,
        arrays: Sequence[np.ndarray],
        outputs: Sequence[np.ndarray] | None = None,
        sizes: Mapping[str, int] | None = None,
        check: Callable[[], None] | None = None,
    ) -> list[np.ndarray]:
        """Run on inputs of the program's types and ranks; inputs in ``program.updates`` are written in place.

        ``check`` raises if written memory is not as it must be. It is called unless compiled code has found the arrays
        to be row-major, writable and apart. A failed run changes no argument. Raises `ShapeError`, `DataIndexError`,
        `OutOfMemoryError`.
        """
        current = settings()
        try:
            short = None if self.updated or outputs is not None else self.launches(current).run(tuple(arrays))
            if short is not None:
                return list(short)
            if sizes is None:
                sizes = self.sizes(arrays)
            contiguous = tuple([array.flags.c_contiguous for array in arrays])
            compiled = self.fitting(contiguous, current, largest_of(sizes))
            if check is not None and (compiled.kernel.updates or not all(contiguous)):
                # Copied at the end, or with strides of their own, which compiled code takes as they come.
                check()
                check = None
            search = NanSearch(self.program, arrays) if "nan" in current.check else None
            begin = time.perf_counter()
            results = compiled.run(arrays, sizes, outputs, current.threads or None, check)
        except MemoryError as error:
            fact = f"there is too little memory for `{self.program.name}` at these sizes"
            raise Diagnostic(OutOfMemoryError, fact, None, (str(error),), _LESS_MEMORY).error() from None
        if current.debug:
            show_run(self.program.name, arrays, begin)
        if search is not None:
            search.after(results, _run_unwatched)
        return results

    def bind(self, arrays: Sequence[np.ndarray], outputs: Sequence[np.ndarray] | None = None) -> BoundProgram:
        """The program on these arrays, to be run many times: ``bound = executable.bind([w, x]); bound()``.

        It is compiled for their shapes, which are constants to it, unless settings ask for code without optimization.
        ``outputs`` receive the results if they have their shapes; else arrays are made. Inputs in ``program.updates``
        are written in place, so no other array may share their memory. Raises `ShapeError` for arrays that do not fit.
        """
        current = settings()
        watched = self._watched if "nan" in current.check else None
        return BoundProgram(partial(self._bound, current), self._bound(current, arrays, outputs), watched)

    def _watched(self, kernel: BoundKernel) -> None:
        # Run it; `NanError` if it leaves NaN in any of its arrays.
        search = NanSearch(self.program, kernel.inputs)
        kernel()
        search.after(kernel.outputs, _run_unwatched)

    def _bound(
        self, current: Settings, arrays: Sequence[np.ndarray], outputs: Sequence[np.ndarray] | None = None
    ) -> BoundKernel:
        # ``outputs`` of other shapes than these arrays give are not used.
        sizes = self.sizes(arrays)
        check_written(self.program, arrays)
        if current.optimize and sizes and self._fixed is None:
            return self._special(sizes)._bound(current, arrays, outputs)
        if outputs is not None:
            declared = [self.program.tensor(name).shape for name in self.program.outputs]
            shapes = [tuple(evaluate_size(extent, sizes) for extent in shape) for shape in declared]
            outputs = outputs if shapes == [array.shape for array in outputs] else None
        compiled = self.fitting(tuple([array.flags.c_contiguous for array in arrays]), current, largest_of(sizes))
        try:
            return compiled.bind(arrays, sizes, outputs, current.threads or None)
        except ValueError as fault:
            raise ShapeError.at(str(fault), hint="bind arrays of their own, such as `x.copy()`") from None


def _run_unwatched(program: Program, arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    with config(check=settings().check - {"nan"}):
        return Executable(program).run(arrays)


def interpreted(executable: Executable, arrays: Sequence[np.ndarray]) -> Interpretation:
    """What the reference interpreter computes of the program; searched for NaN where settings ask for it."""
    from tcdsl.ir.interpreter.interpreter import interpret

    program = executable.program
    done = interpret(program, arrays)
    if "nan" in settings().check:
        search = NanSearch(program, arrays)
        search.after(done.outputs, lambda *given: interpret(*given).outputs, done.updates)
    return done


class BoundProgram:
    """``bound = Executable(step).bind([w, x, rate])``, then ``bound()`` runs the machine code on these arrays.

    ::

        w: float32[2, 16], x: float32[100, 2], rate: float64
        bound()                    # w changes in place; bound.outputs are the results, overwritten by each run
        rate[()] = 0.05            # numbers are arrays of rank 0
        bound.replace(1, other)    # another array of the same type; its shape and layout may differ

    A run looks nothing up, checks no shape and allocates nothing. Settings are those of the time of binding. Runs in
    several threads wait for each other.
    """

    __slots__ = ("_bind", "_kernel", "_watch")

    def __init__(
        self,
        bind: Callable[[Sequence[np.ndarray], Sequence[np.ndarray]], BoundKernel],
        kernel: BoundKernel,
        watch: Callable[[BoundKernel], None] | None = None,
    ) -> None:
        self._bind = bind
        self._kernel = kernel
        self._watch = watch

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The inputs."""
        return self._kernel.inputs

    @property
    def outputs(self) -> tuple[np.ndarray, ...]:
        """The results of the last run."""
        return self._kernel.outputs

    def replace(self, position: int, array: np.ndarray) -> None:
        """Take ``array`` for the input at ``position`` from now on. `ShapeError` if it does not fit: nothing changes.

        The outputs are made anew if their shapes change.
        """
        arrays = list(self._kernel.inputs)
        arrays[position] = array
        self._kernel = self._bind(arrays, self._kernel.outputs)

    def __call__(self) -> None:
        """Run. Raises `DataIndexError` if an index read from data is out of range, and has then changed no input."""
        if self._watch is None:
            self._kernel()
        else:
            self._watch(self._kernel)


_LOGGER = logging.getLogger("tcdsl")


def _show(text: str) -> None:
    # Whoever has set up logging gets the lines there; else they go to standard error.
    if not _LOGGER.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        _LOGGER.addHandler(handler)
        _LOGGER.propagate = False
    if not _LOGGER.isEnabledFor(logging.INFO):
        _LOGGER.setLevel(logging.INFO)
    _LOGGER.info(text)


def show_compilation(name: str, compiled: LoadedKernel, begin: float) -> None:
    """Tell that a kernel was compiled, or loaded from the cache directory."""
    verb = "loaded" if compiled.from_disk else "compiled"
    count = len(compiled.kernel.nests)
    nests = "1 nest" if count == 1 else f"{count} nests"
    _show(f"{verb} {name}: {nests} in {time.perf_counter() - begin:.2f} s, {compiled.path}")


def show_run(name: str, arrays: Sequence[np.ndarray], begin: float) -> None:
    """Tell that a program ran on arrays of these types and shapes."""
    given = ", ".join(f"{array.dtype}{list(array.shape)}" for array in arrays)
    _show(f"ran {name}({given}) in {1000 * (time.perf_counter() - begin):.3g} ms")
