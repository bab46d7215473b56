"""Tile among the rest: lazily computed tensors, helpers, index notation, loops, code, derivatives."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op, tile
from tcdsl.runtime.calls.content import Contents, UnknownContentError
from tcdsl.tile import *
from tests.tile.idioms import softmax
from tests.tile.reference_programs import matmul, max_over_axis, sum_over_axis
from tests.tile.test_functions import rearranged

A = np.array([[0.3, -0.6, 0.9], [0.15, 0.75, -0.45]])
B = np.array([[1.0, 2.0], [0.5, -1.0], [0.25, 3.0]])


def energy(I):
    S = sum_over_axis(I)
    i = TensorIndex()
    E = TensorOutput()
    E[()] += S[i] * S[i]
    return E


# -- tensors ---------------------------------------------------------------------------------------------------------


def test_tensors_are_computed_when_they_are_asked_for() -> None:
    given = tile.Tensor(A)
    made = sum_over_axis(given)
    assert isinstance(made, tile.Tensor)
    assert isinstance(made, tc.Tensor)
    assert made.shape == (3,)
    assert made.label == "O"
    np.testing.assert_allclose(np.asarray(made), A.sum(0))
    given.value = 2 * A
    np.testing.assert_allclose(np.asarray(made), 2 * A.sum(0))


def test_faults_that_need_the_statement_show_when_it_is_asked_for() -> None:
    i, j = TensorIndexes(2)
    output = TensorOutput(2)
    output[i] = tile.Tensor(A)[i, j]
    with pytest.raises(tc.ShapeError, match="`=` writes each cell once"):
        np.asarray(output)


def test_gradients_of_tensors() -> None:
    given = tile.Tensor(A, grad=True)
    loss = energy(given)
    tc.compile(tc.train.grad_update(loss))()
    np.testing.assert_allclose(given.grad, 2 * np.broadcast_to(A.sum(0), A.shape))
    np.testing.assert_allclose(loss.value, (A.sum(0) ** 2).sum())


def test_computed_tensors_pickle() -> None:
    made = max_over_axis(tile.Tensor(A)) * 2
    np.testing.assert_allclose(np.asarray(pickle.loads(pickle.dumps(made))), 2 * A.max(0))


def test_a_default_takes_part_in_gradients_of_tensors() -> None:
    given = tile.Tensor(A[0], grad=True)
    i = TensorIndex()
    O = TensorOutput(3)
    O[2 * i] = tile.Tensor(B[0])[i]
    O.use_default(given)
    tc.compile(tc.train.grad_update((O * O).sum()))()
    np.testing.assert_allclose(given.grad, [0, 2 * A[0, 1], 0])


# -- decorated functions ---------------------------------------------------------------------------------------------


@op
def mixed(A, B):
    I, J, K = TensorDims(3)
    i, j, k = TensorIndexes(3)
    A.bind_dims(I, K)
    B.bind_dims(K, J)
    C = TensorOutput(I, J)
    C[i, j] += A[i, k] * B[k, j]
    D[i] = sum(C[i, j] * exp(C[i, j]))  # index notation, with the same names
    F[i, j] = 2 * C[i, j] + D[i]
    R = TensorOutput(I)
    R[i] >= F[i, j]
    return R, C[0], C[:, 1:].sum(axis=0), C @ C.T


def test_index_notation_beside_tile() -> None:
    C = A @ B
    D = (C * np.exp(C)).sum(1)
    expected = ((2 * C + D[:, None]).max(1), C[0], C[:, 1:].sum(0), C @ C.T)
    with tc.config(check="ir"):
        made = mixed(A, B)
    lazy = mixed(tile.Tensor(A), B)
    for found, other, numpy in zip(made, lazy, expected, strict=True):
        np.testing.assert_allclose(found, numpy, atol=1e-12)
        np.testing.assert_allclose(np.asarray(other), numpy, atol=1e-12)
    tc.check_grads(mixed, (A, B))


def test_programs_are_those_of_index_notation() -> None:
    @op
    def matmul_in_index_notation(A: any[I, K], B: any[B_0, J]):
        C: any[I, J]
        C[i, j] += A[i, k] * B[k, j]
        return C

    native = matmul_in_index_notation.explain("ir", A, B).replace("matmul_in_index_notation", "matmul")
    assert op(matmul).explain("ir", A, B) == native


@op
def shifted(A, rounds):
    N = TensorDim()
    i = TensorIndex()
    A.bind_dims(N)
    for _ in range(rounds):
        O = TensorOutput(N)
        O[i] += A[i - 1]
        O.use_default(A)
        A = O * 0.5
    return A


@op
def named_cells(A, B):
    N, K = TensorDims(2)
    i, j = TensorIndexes(2)
    A.bind_dims(N, K)
    left = A[i, j]
    product = left * B[j, 0] * B[0, 0]
    O = TensorOutput(N)
    O[i] += product
    return O


def test_cells_have_names() -> None:
    np.testing.assert_allclose(named_cells(A, B), A @ B[:, 0] * B[0, 0])


def test_long_statements() -> None:
    i = TensorIndex()
    given = tile.Tensor(np.ones(2))
    total = given[i]
    for _ in range(1200):
        total = total + given[i]
    O = TensorOutput(2)
    O[i] = total
    np.testing.assert_allclose(np.asarray(O), [1201, 1201])


def test_loops_that_run() -> None:
    for rounds in (3, 5):
        expected = np.arange(1.0, 6.0)
        for _ in range(rounds):
            expected = np.append(expected[:1], expected[:-1]) / 2
        np.testing.assert_allclose(shifted(np.arange(1.0, 6.0), rounds), expected)
    assert shifted.cache_info().programs == 1


@op
def unrolled(A):
    N = TensorDim()
    x = TensorIndexes(1)
    A.bind_dims(N)
    outputs = []
    for t in range(3):
        O = TensorOutput(N)
        O[x] = A[x[0] - t]
        outputs.append(O)
    return outputs[0] + outputs[1] + outputs[2]


def test_outputs_in_lists() -> None:
    np.testing.assert_allclose(unrolled(np.arange(1.0, 6.0)), [1, 3, 6, 9, 12])


@cd
def code(A, B):
    N = TensorDim()
    i = TensorIndex()
    A.bind_dims(N)
    O = TensorOutput(N)
    O[i] = A[i - 1]
    A[i] = 0
    B += O


def test_code_reads_memory_as_it_is_at_the_statement() -> None:
    a, b = np.arange(1.0, 4.0), np.ones(3)
    code(a, b)
    np.testing.assert_allclose(a, 0)
    np.testing.assert_allclose(b, [1, 2, 3])


@op
def with_constants(I):
    N = TensorDim()
    i = TensorIndex()
    I.bind_dims(N)
    Two, W = Tensor(2.0), Tensor([1.0, 2.0, 3.0])
    O = TensorOutput(N)
    O[i] = I[i] * W[i]
    P = TensorOutput(N)
    P[i] = I[i] * Two[()]
    return O + P + Two


def test_tensors_of_constants_in_decorated_functions() -> None:
    np.testing.assert_allclose(with_constants(np.ones(3)), [5, 6, 7])


def test_derivatives_of_plain_functions() -> None:
    np.testing.assert_allclose(tc.grad(energy)(A), 2 * np.broadcast_to(A.sum(0), A.shape))


@op
def types(I):
    i, j = TensorIndexes(2)
    N, M = TensorDims(2)
    I.bind_dims(N, M)
    O = TensorOutput(N)
    O[i] += I[i, j]
    P = TensorOutput(N)
    P[i] >= I[i, j]
    return O, P


@pytest.mark.parametrize(
    ("given", "made"),
    [("float16", ("float16", "float16")), ("int32", ("int64", "int32")), ("bool", ("int64", "bool"))],
)
def test_types_are_those_of_numpys_sums(given: str, made: tuple[str, str]) -> None:
    array = np.array([[0, 1, 1], [0, 0, 0]]).astype(given)
    found: Any = types(array)
    assert tuple(str(each.dtype) for each in found) == made
    assert found[0].tolist() == [2, 0]
    assert found[1].tolist() == [1, 0]


def test_what_programs_are_made_of_is_known_so_that_calls_are_kept_on_disk() -> None:
    contents = Contents()
    for function in (matmul, energy, rearranged, softmax):
        contents.add(function)
    assert contents.digest()
    with pytest.raises(UnknownContentError):
        Contents().add(with_constants.function)
