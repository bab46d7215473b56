"""Functions with loops that run, from their text, and what is asked of all of them."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.text.printer import format_program
from tcdsl.ir.verifier.verifier import verify

__all__ = ["check", "program"]


def check(function: Any, arguments: tuple[Any, ...], expected: Any) -> None:
    """The program verifies and is its own text's, and interpreting it gives what is expected."""
    call = function.signature.call(arguments, {})
    program = function.staging.entry(call)[0].executable.program
    verify(program)
    assert parse_program(format_program(program)) == program
    copies = tuple(np.array(each) if isinstance(each, np.ndarray) else each for each in arguments)
    compiled = function(*copies)
    if function.in_place:
        changed = [name for name, _ in program.updates]
        names = [argument.label for argument in call.arguments]
        compiled = tuple(copies[names.index(name)] for name in changed)
    for found in (function.interpret(*arguments), compiled):
        for one, wanted in zip(
            found if isinstance(found, tuple) else (found,),
            expected if isinstance(expected, tuple) else (expected,),
            strict=True,
        ):
            assert np.shape(one) == np.shape(wanted)
            np.testing.assert_allclose(one, wanted, rtol=1e-6)


def program(body: str, parameters: str = "x: 'real[N]', n", decorator: str = "op", before: str = "") -> Any:
    """``f(x, n)`` with this body, or a function of other parameters; ``before`` is what stands around it."""
    namespace: dict[str, Any] = {"op": op, "cd": cd, "tc": tc, "np": np}
    source = f"{before}@{decorator}\ndef f({parameters}):\n" + "\n".join(f"    {line}" for line in body.splitlines())
    filename = f"<loop {abs(hash(source))}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), namespace)
    return namespace["f"]
