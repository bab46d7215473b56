"""Functions for PyTorch, against PyTorch's own: values, derivatives of every order, batches, compiled graphs."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op

torch = pytest.importorskip("torch")
FakeTensorMode = pytest.importorskip("torch._subclasses.fake_tensor").FakeTensorMode
TorchDispatchMode = pytest.importorskip("torch.utils._python_dispatch").TorchDispatchMode
make_fx = pytest.importorskip("torch.fx.experimental.proxy_tensor").make_fx

# What PyTorch says of its own parts when it loads them.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@op
def dense(a: Any, s: Any, b: Any) -> Any:
    c[i, j] += a[i, k] * b[k, j] * s
    y[i, j] = tanh(c[i, j])
    return y


@op
def parts(x: Any, *, mode: str = "both") -> Any:
    y[i] = x[i] * x[i]
    place[()] = argmax(x[i])
    return {"squares": y, "rest": (place, mode, [x])}


@op
def stepped(x: Any, n: Any) -> Any:
    y = x * 1
    count = 0
    while y[0] < n:
        y = y * 1.5
        count = count + 1
    return y, count


@op
def clipped(x: Any) -> Any:
    return x * 1


@clipped.defvjp
def clipped_pullback(x: Any, y: Any, d_y: Any) -> Any:
    return min(max(d_y, -1), 1)


DENSE = tc.interop.torch(dense)


def ours(a: Any, b: Any) -> Any:
    return DENSE(a, 2.0, b)


def theirs(a: Any, b: Any) -> Any:
    return torch.tanh(a @ b * 2.0)


def tensors(*shapes: tuple[int, ...], grad: bool = False) -> list[Any]:
    made = torch.Generator().manual_seed(4)
    return [torch.randn(shape, generator=made, dtype=torch.float64, requires_grad=grad) for shape in shapes]


A, B = tensors((3, 4), (4, 2))


def test_values_derivatives_and_second_ones() -> None:
    a, b = tensors((3, 4), (4, 2), grad=True)
    torch.testing.assert_close(ours(a, b), theirs(a, b))
    assert torch.autograd.gradcheck(ours, (a, b), check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(ours, (a, b))
    rows = torch.autograd.functional.jacobian(ours, (A, B), vectorize=True)
    torch.testing.assert_close(rows, torch.func.jacrev(theirs, (0, 1))(A, B))


def total(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: function(*given).sum()


@pytest.mark.parametrize(
    "derived",
    [
        lambda f: torch.func.grad(total(f), argnums=(0, 1))(A, B),
        lambda f: torch.func.jacrev(f)(A, B),
        lambda f: torch.func.jacfwd(f, argnums=1)(A, B),
        lambda f: torch.func.hessian(total(f), argnums=(0, 1))(A, B),
        lambda f: torch.vmap(f, (None, 2), 1)(A, tensors((4, 2, 5))[0]),
        lambda f: torch.vmap(torch.func.grad(total(f), argnums=(0, 1)), (0, None))(tensors((5, 3, 4))[0], B),
        lambda f: torch.func.grad(total(torch.vmap(f, (0, None))), argnums=(0, 1))(tensors((5, 3, 4))[0], B),
        lambda f: torch.func.jvp(f, (A, B), (A, B)),
    ],
    ids=["grad", "jacrev", "jacfwd", "hessian", "vmap", "vmap of grad", "grad of vmap", "jvp"],
)
def test_transforms(derived: Callable[[Any], Any]) -> None:
    torch.testing.assert_close(derived(ours), derived(theirs))


def test_batches_end_where_each_of_them_ends() -> None:
    f = tc.interop.torch(stepped)
    xs = torch.tensor([[1.0, 2.0], [0.1, 1.0], [40.0, 3.0]], dtype=torch.float64)
    y, count = torch.vmap(lambda x: f(x, 30))(xs)
    assert count.tolist() == [9, 15, 0]
    torch.testing.assert_close(y, torch.stack([f(x, 30)[0] for x in xs]))
    slopes = torch.vmap(torch.func.grad(lambda x: f(x, 30)[0].sum()))(xs)
    torch.testing.assert_close(slopes, (1.5 ** count.to(torch.float64))[:, None].expand(3, 2))


def test_batches_keep_derivatives_of_users() -> None:
    f = tc.interop.torch(clipped)
    slope = torch.func.grad(lambda x: (torch.vmap(f)(x) * torch.tensor([3.0, 0.5])).sum())(torch.ones(4, 2))
    assert slope.tolist() == [[1.0, 0.5]] * 4


def test_results_are_nested_as_they_are_and_share_no_memory() -> None:
    x = torch.tensor([1.0, 3.0, 2.0])
    found = tc.interop.torch(parts)(x, mode="one")
    assert found["squares"].tolist() == [1.0, 9.0, 4.0]
    place, mode, [same] = found["rest"]
    assert (place.item(), mode, same.tolist()) == (1, "one", [1.0, 3.0, 2.0])
    assert same.data_ptr() != x.data_ptr()
    slope = torch.func.grad(lambda x: tc.interop.torch(parts)(x)["squares"].sum())(x)
    assert slope.tolist() == [2.0, 6.0, 4.0]


def test_operands_of_any_layout_and_configuration_by_value() -> None:
    a = tensors((4, 3))[0].T
    torch.testing.assert_close(ours(a, B), theirs(a, B))
    torch.testing.assert_close(ours(a.float(), B.float().flip(0)), theirs(a.float(), B.float().flip(0)))
    negative = torch.complex(A, A).conj().imag
    torch.testing.assert_close(ours(negative, B), theirs(negative, B))
    f = tc.interop.torch(scaled)
    one = torch.ones(1, dtype=torch.int64)
    assert [f(one, by=by)[0].dtype for by in ((1,), (1.0,), (1,))] == [torch.int64, torch.float64, torch.int64]
    assert f is tc.interop.torch(scaled)


@op
def scaled(x: Any, *, by: tuple[float, ...]) -> Any:
    return [x * by[0]]


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_graphs(dynamic: bool) -> None:
    torch._dynamo.reset()
    f = torch.compile(ours, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for shapes in (((3, 4), (4, 2)), ((5, 4), (4, 6))):
        a, b = tensors(*shapes, grad=True)
        f(a, b).sum().backward()
        wanted = torch.autograd.grad(theirs(a, b).sum(), (a, b))
        torch.testing.assert_close((a.grad, b.grad), wanted)


def test_compiled_graphs_keep_floats_open() -> None:
    torch._dynamo.reset()
    f = torch.compile(lambda s: DENSE(A, s, B), fullgraph=True, backend="aot_eager")
    for s in (1.5, 2.5, 3.5, 4.5):
        torch.testing.assert_close(f(s), torch.tanh(A @ B * s))


def test_the_operation_passes_the_checks_of_its_library() -> None:
    from tcdsl.interop.array_functions import ArrayFunction, CallForm, Hole

    function = ArrayFunction.of(dense, CallForm((Hole(), Hole("float"), Hole()), ()))
    a, b = tensors((3, 4), (4, 2), grad=True)
    torch.library.opcheck(torch.ops.tcdsl.call.default, (function.key, [a, torch.tensor(2.0, dtype=torch.float64), b]))


def test_graphs_are_exported() -> None:
    class Model(torch.nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            return ours(a, b)

    exported = torch.export.export(Model(), (A, B))
    assert "tcdsl.call" in str(exported.graph)
    torch.testing.assert_close(exported.module()(A, B), theirs(A, B))


REFUSED = [
    (lambda: A.to(torch.bfloat16), "has the element type bfloat16, which tcdsl does not handle"),
    (lambda: torch.complex(A, A), "has the element type complex128"),
    (A.to_sparse, "dense(): `a` has the layout sparse_coo\npass `a.to_dense()`"),
    (lambda: [[1.0]], "is a list, but positional arguments are arrays and numbers"),
    (lambda: A.to(torch.float8_e4m3fn), "has the element type float8_e4m3fn, which tcdsl does not handle"),
    (
        lambda: torch.quantize_per_tensor(A.float(), 0.1, 0, torch.qint8),
        "`a` is quantized, with the element type qint8",
    ),
    (lambda: torch.nested.nested_tensor([A[0], A[1]]), "`a` is a nested tensor, whose rows differ in length"),
    (lambda: np.ma.masked_array(A.numpy(), False), "`a` is a masked array, whose mask would be lost"),
]
IDS = ["bfloat16", "complex", "sparse", "list", "float8", "quantized", "nested", "masked"]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("make", "message"), REFUSED, ids=IDS)
def test_what_would_be_lost_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(tc.DtypeError) as caught:
        ours(make(), B)
    assert message in str(caught.value)


def test_who_watches_operations_sees_them(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, given: Any = (), named: Any = None) -> Any:
            seen.append(str(function))
            return function(*given, **(named or {}))

    a, b = tensors((3, 4), (4, 2), grad=True)
    with Watch():
        ours(a, b).sum().backward()
    assert seen.count("tcdsl.call.default") == 2
    with torch.profiler.profile() as profile:
        ours(a, b)
    assert "tcdsl::call" in {each.key for each in profile.key_averages()}
    assert "tcdsl.call" in str(make_fx(ours)(A, B).graph)
    assert "tcdsl::call" in str(torch.jit.trace(ours, (A, B), check_trace=False).graph)
    # Else the way goes past the operation.
    monkeypatch.setattr("tcdsl.interop.torch_functions._call", None)
    first = torch.autograd.grad(ours(a, b).sum(), (a, b), create_graph=True)
    torch.testing.assert_close(first, torch.autograd.grad(theirs(a, b).sum(), (a, b)))
    with torch.inference_mode():
        torch.testing.assert_close(ours(a, b), theirs(a, b))
    with torch.no_grad():
        assert not ours(a, b).requires_grad


def test_arrays_of_numpy_and_tensors_without_cells() -> None:
    torch.testing.assert_close(ours(A, B.numpy()), theirs(A, B))
    found = ours(A.to("meta"), B.to("meta"))
    assert (found.device.type, tuple(found.shape)) == ("meta", (3, 2))


def test_graphs_on_disk_name_functions_of_one_process_alone() -> None:
    from tcdsl.interop.array_functions import ArrayFunction, CallForm, Hole, function_named

    key = ArrayFunction.of(clipped, CallForm((Hole(),), ())).key
    text = "from tcdsl.interop.array_functions import *; import tcdsl.library as l; "
    text += "print(ArrayFunction.of(l.math.exp, CallForm((Hole(),), ())).key)"
    other = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.strip()
    assert key.rpartition(":")[2] != other.rpartition(":")[2]
    with pytest.raises(tc.ConfigurationError, match="a graph calls `exp` as a function of another process"):
        function_named(other)


def test_models_that_hold_functions_are_copied_and_pickled() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 2))
    model.activation = tc.interop.torch(clipped)
    for made in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert made.activation(torch.ones(2)).tolist() == [1.0, 1.0]


def test_names_that_are_not_there() -> None:
    with pytest.raises(AttributeError) as caught:
        tc.interop.tensorflow
    assert "module tcdsl.interop has no attribute `tensorflow`" in str(caught.value)


def test_faults_are_told_as_without_pytorch() -> None:
    with pytest.raises(tc.ShapeError) as caught:
        ours(A, A)
    assert "runs over axis 1 of a, which has the extent 4, and over axis 0 of b, which has the extent 3" in str(
        caught.value
    )


def test_a_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(tc.ConfigurationError) as caught:
        tc.interop.torch(dense)
    assert "tc.interop.torch needs PyTorch, which is not installed" in str(caught.value)
    assert "pip install torch" in str(caught.value)


def test_derivatives_and_python_functions_of_ops() -> None:
    slope = tc.interop.torch(tc.grad(lambda a, b: dense(a, 2.0, b).sum()))
    torch.testing.assert_close(slope(A, B), torch.func.grad(total(theirs))(A, B))
    twice = tc.interop.torch(lambda a, b: dense(dense(a, 2.0, b), 2.0, np.ones((2, 2))))
    torch.testing.assert_close(twice(A, B), theirs(theirs(A, B), torch.ones(2, 2, dtype=torch.float64)))


@op
def repeated(x: Any, n: Any) -> Any:
    y: real[n]
    y[i] += x[i % 3]
    return y


def test_shapes_that_integers_decide() -> None:
    f = tc.interop.torch(repeated)
    for n in (2, 5, 0):
        assert f(torch.arange(3.0), n).tolist() == [k % 3 for k in range(n)]
    with FakeTensorMode() as mode:
        assert tuple(f(mode.from_tensor(torch.arange(3.0)), 4).shape) == (4,)
