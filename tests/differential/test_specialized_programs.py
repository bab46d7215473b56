"""Random programs for the sizes of their arguments: loops made for constant extents agree with the interpreter.

The limits from which such loops are worth it are lowered, since random programs are small; kernels run in plain Python.
"""

from __future__ import annotations

import numpy as np
import pytest

from tcdsl.errors import TcdslError
from tcdsl.lowering.lower import lower
from tcdsl.simplification import specialized
from tests.differential.agreement import agree, attempt, shown
from tests.differential.loading import loaded
from tests.lowering.loop_interpreter import execute
from tests.oracle.generation import Case, case_of_seed

LIMITS = {
    "tcdsl.lowering.nests.chunks._FEWEST": 1,
    "tcdsl.lowering.nests.chunks._MOST": 3,
    "tcdsl.lowering.program_passes.schedule._SHORT": 1,
    "tcdsl.lowering.program_passes.schedule._VECTOR": 1,
    "tcdsl.lowering.program_passes.schedule._WINDOW": 1,
    "tcdsl.lowering.program_passes.transposing._POINTS": 0,
    "tcdsl.lowering.program_passes.transposing._ROW": 2,
}


def specialized_as_interpreted(case: Case) -> set[str]:
    """Fail unless they agree; otherwise which of the loops in question there were."""
    function = loaded(case.source)
    call = function.signature.call(tuple(case.arrays.values()), {})
    try:
        entry, arrays = function.staging.entry(call)
    except TcdslError:
        return set()
    program = entry.executable.program

    def run() -> tuple[np.ndarray, ...]:
        nonlocal made
        made = lower(specialized(program, entry.executable.sizes(arrays)))
        return tuple(execute(made, arrays).outputs[: entry.structure.leaves])  # what comes after them are checks

    made = None
    with shown(case):
        wanted, found = attempt(lambda: function.interpret(*case.arrays.values())), attempt(run)
    if isinstance(wanted, TcdslError) or isinstance(found, TcdslError):
        assert type(found) is type(wanted), f"wanted {wanted!r}\nfound {found!r}\n\n{case}"
        return set()
    agree(case, wanted, found, 50, "specialized against interpreted")
    assert made is not None
    text = str(made)
    return {word for word in ("step=2", "step=3") if word in text}


@pytest.mark.parametrize("count", [160, pytest.param(1000, marks=pytest.mark.long)])
def test_random_programs_are_the_same_for_their_sizes(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in LIMITS.items():
        monkeypatch.setattr(name, value)
    met: set[str] = set()
    for seed in range(20_000, 20_000 + count):
        met |= specialized_as_interpreted(case_of_seed(seed, 1 + seed % 3))
    assert met == {"step=2", "step=3"}
