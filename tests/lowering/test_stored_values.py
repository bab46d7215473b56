"""Values between a program and its derivative: which are stored, which stay in registers, and that none costs twice.

`tcdsl.lowering.program_passes.fusion` states the rule.
"""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op, output
from tcdsl.autodiff import gradient
from tcdsl.ir.expressions import Apply, walk
from tcdsl.ir.program import Program
from tcdsl.ir.sizes.size_binding import bind_sizes
from tcdsl.lowering.loop_passes.liveness import peak_bytes
from tcdsl.lowering.loopir.loops import Kernel
from tcdsl.lowering.loopir.point_counts import executed_points
from tcdsl.lowering.loopir.traversal import expressions
from tcdsl.lowering.lower import lower
from tcdsl.targets.cpu.emission.module_emission import emitted_nests
from tcdsl.targets.cpu.machine.object_code import optimized
from tests.programs.definitions import layer_norm, softmax


@op
def chain(x, w, *, length):
    y = x
    for _ in range(length):
        y = tanh(y) * 1.5 + x
    total[()] += y[i] * w[i]
    return total


@op
def steps_of_heat(u, w, *, length):
    N, M = u.shape
    for _ in range(length):
        v = output(N, M)
        v[i, j] = u[i, j] + 0.1 * (
            get(u[i - 1, j], 0.0)
            + get(u[i + 1, j], 0.0)
            + get(u[i, j - 1], 0.0)
            + get(u[i, j + 1], 0.0)
            - 4.0 * u[i, j]
        )
        u = v
    total[()] += u[i, j] * w[i, j]
    return total


@op
def steps_of_burgers(u, w, *, length):
    N = u.shape[0]
    for _ in range(length):
        v = output(N)
        v[i] = u[i] - 0.1 * u[i] * (get(u[i + 1], 0.0) - get(u[i - 1], 0.0))
        u = v
    total[()] += u[i] * w[i]
    return total


@op
def weighted_softmax(x, w):
    y = softmax(x)
    total[()] += y[i, j] * w[i, j]
    return total


@op
def weighted_layer_norm(x, scale, shift, w):
    y = layer_norm(x, scale, shift)
    total[()] += y[i, j] * w[i, j]
    return total


@op
def cheap_beside_a_stencil(x, w):
    a[i] = 2.0 * x[i]
    b[i] = tanh(x[i])
    N = x.shape[0]
    y = output(N)
    y[i] = get(a[i - 1], 0.0) * get(b[i - 1], 0.0) + get(a[i + 1], 0.0) * get(b[i + 1], 0.0)
    total[()] += y[i] * w[i]
    return total


@op
def pulls(x, y, m):
    heavy[i, j] = where(x[i] == y[j], 0.0, abs(x[i] - y[j]) ** -1.5)
    pulled[i, j] = (x[i] - y[j]) * heavy[i, j]
    a[i] += pulled[i, j] * m[j]
    b[i] += heavy[i, j] * m[j]
    c[i] >>= heavy[i, j] - m[j]
    return a, b, c


@op
def pulls_of_columns(x, y, m):
    heavy[i, j] = exp(x[i] - y[j])
    a[j] += heavy[i, j] * m[j]
    b[j] += heavy[i, j] * x[i]
    return a, b


@op
def pulls_of_rows_and_columns(x, y, m):
    heavy[i, j] = exp(x[i] - y[j])
    a[i] += heavy[i, j] * m[j]
    b[j] += heavy[i, j] * x[i]
    return a, b


@op
def pulls_that_wait(x, y, m):
    heavy[i, j] = exp(x[i] - y[j])
    a[i] += heavy[i, j] * m[j]
    most[()] >>= a[i]
    b[i] += heavy[i, j] * most
    return a, b


@op
def light_pulls(x, y, m):
    light[i, j] = abs(x[i] - y[j])
    a[i] += light[i, j] * m[j]
    b[i] += light[i, j] * light[i, j]
    return a, b


def limited_flux(u):
    flux = u[1:] - u[:-1]
    limited = np.where(flux * u[1:] > 0, 0.0, flux)
    return u[1:-1] - (limited[1:] - limited[:-1])


def flux_of_flux(u):
    flux = u[1:] * u[:-1] - u[1:]
    flux = flux[1:] * flux[:-1] - flux[1:]
    flux = flux[1:] * flux[:-1] - flux[1:]
    return flux[1:] * flux[:-1] - flux[1:]


def far_flux(u):
    flux = u[1:] * u[:-1] - u[1:]
    return flux[3:] - flux[:-3]


def flux_with_work(u):
    flux = np.exp(u[1:] * u[:-1])
    return flux[1:] - flux[:-1]


@op
def pull(x, y, m):
    a, b, c = pulls(x, y, m)
    total[()] += a[i] * b[i] + c[i]
    return total


def staged(function, arrays, **configuration) -> Program:
    call = function.signature.call(arrays, configuration)
    return function.staging.entry(call)[0].executable.program


def derivative(function, *shapes, **configuration) -> tuple[Kernel, dict[str, int]]:
    """The lowered gradient by the first argument, and the sizes."""
    arrays = [np.ones(shape) for shape in shapes]
    program = gradient(staged(function, arrays, **configuration), [_first(function, arrays, **configuration)], False)
    made = lower(program)
    return made, bind_sizes(made.program, [array.shape for array in arrays])


def _first(function, arrays, **configuration) -> str:
    return staged(function, arrays, **configuration).inputs[0].name


def applied(made: Kernel, primitive: str) -> int:
    parts = (part for nest in made.nests for expr in expressions(nest.body) for part in walk(expr))
    return sum(isinstance(part, Apply) and part.primitive == primitive for part in parts)


def machine_code(made: Kernel) -> str:
    symbols = {number: f"nest_{number}" for number in range(len(made.nests))}
    nests = emitted_nests(made, (True,) * len(made.program.inputs), symbols)
    return "".join(str(optimized(text, 2)) for _, text in nests)


def test_a_chain_of_scalar_steps_stays_in_registers() -> None:
    made, sizes = derivative(chain, 1000, 1000, length=20)
    use = peak_bytes(made, sizes)
    assert use.temporaries == 0
    assert use.peak == 3 * 8000
    assert len(made.nests) == 1
    assert applied(made, "tanh") == 39
    # Each divides once, in vectors and in what they leave over.
    assert machine_code(made).count(" fdiv ") == 2 * 20, "each is computed once, for the value and for its derivative"


@pytest.mark.parametrize("length", [2, 12])
def test_linear_steps_need_no_earlier_values(length: int) -> None:
    made, sizes = derivative(steps_of_heat, (40, 30), (40, 30), length=length)
    cells = 8 * 40 * 30
    assert peak_bytes(made, sizes).temporaries <= 2 * (cells + 64)
    assert len(made.nests) == length, "one pass for each step"
    assert executed_points(made, sizes) <= 2 * length * 40 * 30


@pytest.mark.parametrize("length", [2, 10])
def test_values_that_the_adjoint_of_a_step_reads_are_stored_once(length: int) -> None:
    made, sizes = derivative(steps_of_burgers, 1000, 1000, length=length)
    # The states that are not inputs, two derivatives between the steps.
    assert peak_bytes(made, sizes).temporaries <= (length - 1 + 2) * (8000 + 64)
    assert executed_points(made, sizes) <= 2 * 2 * length * 1000


def test_rows_stay_in_registers_or_in_one_buffer() -> None:
    cells = 8 * 50 * 60
    made, sizes = derivative(weighted_softmax, (50, 60), (50, 60))
    assert peak_bytes(made, sizes).temporaries <= cells + 64
    assert applied(made, "exp") == 1
    made, sizes = derivative(weighted_layer_norm, (50, 60), 60, 60, (50, 60))
    assert peak_bytes(made, sizes).temporaries <= 64
    assert len(made.nests) == 1


def test_cheap_values_are_computed_again_and_others_stored() -> None:
    made, _ = derivative(cheap_beside_a_stencil, 1000, 1000)
    assert applied(made, "tanh") == 1, "stored: four reads would compute it four times"
    temporaries = [buffer.name for buffer in made.buffers if buffer.kind == "temporary"]
    assert len(temporaries) <= 2, temporaries


@pytest.mark.parametrize("function", [weighted_softmax, chain, steps_of_burgers], ids=lambda f: f.__name__)
def test_no_value_costs_twice(function) -> None:
    # Executed points of the program and its gradient, with and without fusion: moving values repeats no loops.
    shapes = ((30, 40), (30, 40)) if function is weighted_softmax else (500, 500)
    configuration = {} if function is weighted_softmax else {"length": 6}
    made, sizes = derivative(function, *shapes, **configuration)
    apart = lower(made.program, optimize=False)
    assert executed_points(made, sizes) <= executed_points(apart, sizes)


def memory_of_pulls(function) -> int:
    arrays = [np.ones(1000), np.ones(900), np.ones(900)]
    made = lower(staged(function, arrays))
    return peak_bytes(made, bind_sizes(made.program, [array.shape for array in arrays])).temporaries


def test_what_several_sums_of_rows_read_is_computed_once() -> None:
    made = lower(staged(pulls, [np.ones(3)] * 3))
    assert applied(made, "pow") == 1
    assert len(made.nests) == 1
    assert 8 * 900 <= memory_of_pulls(pulls) <= 64 * 8 * 900 + 64


@pytest.mark.parametrize("function", [pulls_of_columns, pulls_of_rows_and_columns, pulls_that_wait, light_pulls])
def test_what_would_be_memory_for_all_pairs_is_computed_again(function) -> None:
    assert memory_of_pulls(function) < 8 * 900 * 100


@pytest.mark.parametrize("counts", [(0, 3), (3, 0), (1, 1), (70, 130)])
def test_sums_of_rows_that_share_a_value(counts: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    x, y, m = (rng.normal(size=count) for count in (*counts, counts[1]))
    x[2::9], x[3::9], x[4::9], y[:1], x[6::9] = np.inf, np.nan, -np.inf, 0.0, -0.0
    with np.errstate(all="ignore"):
        apart = x[:, None] - y
        heavy = np.where(apart == 0, 0, np.abs(apart) ** -1.5)
        wanted = (apart * heavy * m).sum(1), (heavy * m).sum(1), (heavy - m).max(1, initial=-np.inf)
    for optimize in (True, "-fusion"):
        with tc.config(optimize=optimize):
            for found, expected in zip(pulls(x, y, m), wanted, strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_the_gradient_of_sums_that_share_a_value() -> None:
    rng = np.random.default_rng(1)
    tc.check_grads(pull, (rng.normal(size=5), 5 + rng.normal(size=4), rng.normal(size=4)))


@pytest.mark.parametrize(
    ("function", "stored"), [(limited_flux, 0), (flux_of_flux, 1), (far_flux, 1), (flux_with_work, 1)]
)
def test_little_work_is_done_for_two_cells_beside_each_other(function, stored: int) -> None:
    # Not again for what was done twice already: work does not grow with the length of a chain.
    made = op(function)
    kernel = lower(staged(made, [np.ones(50)]))
    assert sum(buffer.kind == "temporary" for buffer in kernel.buffers) == stored
    u = np.random.default_rng(1).normal(size=50)
    u[7:9], u[20], u[30], u[40] = 0.0, np.nan, np.inf, -0.0
    with np.errstate(all="ignore"):
        for count in (50, 30, 5):
            np.testing.assert_allclose(made(u[:count]), function(u[:count]), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(made(u[::-2]), function(u[::-2]), rtol=1e-12, atol=1e-12)
    tc.check_grads(made, (np.linspace(1.0, 2.0, 6) ** 2,))
