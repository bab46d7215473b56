"""Random programs on arrays in random chunks, some without cells. The interpreter runs the blocks, and checks all."""

import random

import pytest

import tcdsl as tc
from tcdsl.errors import TcdslError
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.verifier.verifier import verify
from tests.differential.agreement import agree, attempt, shown
from tests.differential.loading import loaded
from tests.long_variants import seeds
from tests.oracle.generation import case_conditioned, case_elsewhere, case_of_seed

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

DRAWN = (lambda seed: case_of_seed(seed, 1 + seed % 4), case_elsewhere, case_conditioned)
#: What cannot be cut: data choose a cell of several chunks, values go in order, indices are checked.
REFUSED = ("so each block may read any cell", "so it cannot be cut", "checks conditions on its cells")


class Interpreted:
    """Stands for what is compiled."""

    def __init__(self, program):
        self.program = program
        verify(program)

    def run(self, arrays):
        return interpret(self.program, arrays).outputs


def chunks(pick, extent):
    made = []
    while sum(made) < extent:
        made.append(min(pick.choice([0, 1, 1, 2, 3, 4]), extent - sum(made)))
    return tuple(made) or (0,)


def chunked(pick, array):
    if array.ndim == 0 or pick.random() < 0.1:
        return array
    return da.from_array(array, chunks=tuple(chunks(pick, extent) for extent in array.shape))


def computed(function, arrays):
    results = tc.interop.dask(function)(*arrays)
    return dask.compute(*(results if isinstance(results, tuple) else (results,)), scheduler="sync")


def agrees(seed):
    """Whether the program of a seed can be cut and run; then the results must be those of the whole."""
    case, pick = DRAWN[seed % 3](seed), random.Random(seed)
    function = loaded(case.source)
    with shown(case):
        wanted = attempt(lambda: function.interpret(*case.arrays.values()))
        if isinstance(wanted, TcdslError):
            return False
        found = attempt(lambda: computed(function, [chunked(pick, array) for array in case.arrays.values()]))
    if isinstance(found, TcdslError):
        assert any(each in str(found) for each in REFUSED), f"{found}\n\n{case}"
        return False
    agree(case, wanted, found, 50, "chunks")
    return True


@pytest.mark.parametrize("batch", seeds(1, 20))
def test_chunks_give_what_the_whole_gives(batch, monkeypatch):
    monkeypatch.setattr("tcdsl.interop.block_runs.Executable", Interpreted)
    monkeypatch.setattr("tcdsl.interop.block_runs._EXECUTABLES", {})
    assert sum(map(agrees, range(60 * batch + 40, 60 * batch + 100))) > 20
