"""Programs to kernels that run: lowered, generated, loaded, and the first two kept on disk for later processes.

>>> loaded = load_program(target_named("cpu"), program, lambda: lower(program), Build((True, True)))
>>> [C] = loaded.run([A, B], {"N": 3, "K": 4, "M": 5})

What is kept depends on the program, with its positions in the user's source, on the target and on all options.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tcdsl.ir.program import Program, without_rules
from tcdsl.lowering.loopir.loops import Kernel
from tcdsl.targets.cache.store import store, value_name
from tcdsl.targets.protocol.loaded_kernel import LoadedKernel
from tcdsl.targets.protocol.target import Build, Target

__all__ = ["load_program"]


def load_program(
    target: Target, program: Program, lowered: Callable[[], Kernel], build: Build, choices: tuple[Any, ...] = ()
) -> LoadedKernel:
    """The kernel that ``lowered()`` makes of ``program``, or that it made in an earlier process, ready to run.

    ``choices`` is what ``lowered`` depends on besides the program.
    """
    place = store(build.cache_dir)
    # Rules of derivatives do not matter, and the copy has none of what the program has looked up.
    content = (without_rules(program), choices, target.name, tuple(target.fingerprint()))
    name = value_name(program.name, (*content, build.contiguous, build.checked, build.lasting), "kernel")
    kept = place.value(name)
    if kept is None:
        kernel = lowered()
        kept = kernel, target.generate(kernel, build)
        place.keep(name, kept)
    kernel, module = kept
    return target.load(kernel, module, build)
