"""Random programs: the rules, the interpreter, the compiled code and the gradients must agree.

Each test draws with a fixed seed. ``TCDSL_TEST_PROGRAMS=5000 pytest tests/differential -m long`` runs that many more,
from seeds, each of them on all counts.
"""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tcdsl.errors import TcdslError
from tests.differential.agreement import agree, attempt, matches_outcome, shown
from tests.differential.layouts import laid_out
from tests.differential.loading import loaded
from tests.long_variants import seeds
from tests.oracle.functions import expected
from tests.oracle.generation import Case, case_conditioned, case_elsewhere, case_of_seed, cases

drawn = settings(
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=False,
    phases=(Phase.generate, Phase.shrink),
)
PROGRAMS_BY_HAND = int(os.environ.get("TCDSL_TEST_PROGRAMS", "1000"))


def interpreted_as_the_rules_say(case: Case) -> None:
    with shown(case):
        found = attempt(lambda: loaded(case.source).interpret(*case.arrays.values()))
        matches_outcome(case, expected(case.source, case.arrays), found)


def compiled_as_interpreted(case: Case, seed: int) -> None:
    function = loaded(case.source)
    pick = random.Random(seed).randint
    arrays = [laid_out(array, pick) for array in case.arrays.values()]
    before = [array.copy() for array in arrays]
    with shown(case):
        wanted = attempt(lambda: function.interpret(*case.arrays.values()))
        found = attempt(lambda: function(*arrays))
    for array, original in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, original, err_msg=f"an argument changed\n\n{case}")
    if isinstance(wanted, TcdslError) or isinstance(found, TcdslError):
        assert type(found) is type(wanted), f"wanted {wanted!r}\nfound {found!r}\n\n{case}"
        return
    agree(case, wanted, found, 50, "compiled against interpreted")


@settings(drawn, max_examples=100)
@given(cases(1))
def test_interpreter_follows_the_rules(case: Case) -> None:
    interpreted_as_the_rules_say(case)


@settings(drawn, max_examples=60)
@given(cases(3))
def test_interpreter_follows_the_rules_over_several_statements(case: Case) -> None:
    interpreted_as_the_rules_say(case)


@pytest.mark.parametrize("batch", seeds(4, 6))
def test_the_rules_the_interpreter_and_compiled_code_agree_from_seeds(batch: int) -> None:
    for seed in range(20 * batch, 20 * batch + 20):
        case = case_of_seed(seed, 1 + seed % 3)
        interpreted_as_the_rules_say(case)
        if seed % 20 < 14:
            compiled_as_interpreted(case, seed)


def test_statements_that_reach_other_cells_than_those_before() -> None:
    for seed in range(50):
        interpreted_as_the_rules_say(case_elsewhere(seed))
    for seed in range(1000, 1004):
        compiled_as_interpreted(case_elsewhere(seed), seed)


def test_conditions_on_variables_of_reductions_and_on_new_ones() -> None:
    for seed in range(80):
        interpreted_as_the_rules_say(case_conditioned(seed))
    for seed in range(1000, 1005):
        compiled_as_interpreted(case_conditioned(seed), seed)


@pytest.mark.long
@pytest.mark.parametrize("batch", range(10))
def test_many_programs(batch: int) -> None:
    for seed in range(100_000 + batch, 100_000 + PROGRAMS_BY_HAND, 10):
        interpreted_as_the_rules_say(case_elsewhere(seed))
        interpreted_as_the_rules_say(case_conditioned(seed))
    for seed in range(100_000 + batch, 100_000 + PROGRAMS_BY_HAND, 10):
        case = case_of_seed(seed, 1 + seed % 3)
        interpreted_as_the_rules_say(case)
        compiled_as_interpreted(case, seed)
