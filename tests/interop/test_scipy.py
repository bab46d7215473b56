"""What SciPy calls, and arguments by DLPack. Values of SciPy's are in `docs/interop.md`, which is run too."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import check_grad, minimize
from scipy.sparse.linalg import LinearOperator, lsqr

import tcdsl as tc
from tcdsl import op


@op
def valley(x):
    f[()] += 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2
    return f


@op
def blurred(u):
    y[i] = 2.0 * u[i] - get(u[i - 1], 0.0)
    return y


def test_optimizers_and_solvers_take_ops():
    found = minimize(tc.value_and_grad(valley), np.zeros(4), jac=True, method="L-BFGS-B", options={"ftol": 1e-14})
    np.testing.assert_allclose(found.x, np.ones(4), atol=1e-3)
    assert check_grad(valley, tc.grad(valley), np.linspace(0, 1, 4)) < 1e-4
    matrix = LinearOperator((5, 5), matvec=blurred, rmatvec=tc.vjp(blurred, np.zeros(5))[1], dtype=float)
    solution = np.arange(5.0)
    np.testing.assert_allclose(lsqr(matrix, blurred(solution), atol=1e-12, btol=1e-12)[0], solution, atol=1e-6)
    path = solve_ivp(lambda t, y: -blurred(y), (0, 1), np.ones(3), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(path.y[0, -1], np.exp(-2), rtol=1e-6)


class Elsewhere:
    def __init__(self, array, device):
        self.array, self.place = array, device

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.place


@pytest.mark.parametrize(("device", "name"), [((2, 1), "CUDA:1"), ((8, 0), "Metal:0"), ((99, 0), "of kind 99:0")])
def test_other_devices_are_refused_by_name(device, name):
    with pytest.raises(tc.DtypeError, match=rf"`u` lies on the device {name}(?s:.)*own memory"):
        blurred(Elsewhere(np.ones(3), device))
    np.testing.assert_array_equal(blurred(Elsewhere(np.ones(3), (1, 0))), [2, 1, 1])
