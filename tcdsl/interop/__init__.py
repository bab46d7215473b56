"""Functions of tcdsl in other people's tools, and theirs in ops.

::

    layer = tc.interop.torch(f)      # f for tensors of PyTorch, with derivatives of every order
    layer = tc.interop.jax(f)        # f for arrays of JAX, inside jit, grad, jvp and vmap
    layer = tc.interop.dask(f)       # f for arrays of Dask, block by block
    g = tc.interop.xarray(f)         # f for DataArrays; pandas and polars: for Series and DataFrames
    solve = tc.interop.host(np.linalg.solve, shape=..., vjp=...)    # NumPy and SciPy in ops

None of these packages is needed by tcdsl: each is imported when it is asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from tcdsl.errors import ConfigurationError
from tcdsl.frontend.names.absent_attributes import missing_attribute
from tcdsl.runtime.transforms.derivation import kept, require_values
from tcdsl.tracebacks import user_facing

__all__ = ["dask", "host", "jax", "numba", "pandas", "polars", "torch", "xarray"]


@user_facing
def host(
    function: Callable[..., Any],
    *,
    shape: Callable[..., Any],
    vjp: Callable[..., Any] | None = None,
    jvp: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """``g = tc.interop.host(function, shape=..., vjp=...)``: NumPy or SciPy code that ops call.

    ::

        solve = tc.interop.host(
            np.linalg.solve,
            shape=lambda a, b: b.shape,
            vjp=lambda a, b, d_x: (-np.outer(u := np.linalg.solve(a.T, d_x), np.linalg.solve(a, b)), u),
        )

        @op
        def energy(a, b):
            x = solve(a, b)
            e[()] += x[i] * b[i]
            return e

        tc.grad(energy)(a, b)

    ``shape`` is given the arrays, while the op is staged, of which it may ask ``shape``, ``ndim`` and ``dtype``. It
    returns a tuple of sizes, ``(sizes, dtype)``, or a list of these for several results; the type is that of the
    floating arguments if it says none. ``vjp(*inputs, cotangent)`` returns the adjoint of each input, ``jvp(*inputs,
    *tangents)`` the tangent of the result. The function must give the same for the same arrays: a program calls it as
    often as it needs the result. Exceptions of the function are raised by the call of the op.
    """
    from tcdsl.interop.host_functions import HostFunction

    for name, given in (("function", function), ("shape", shape), ("vjp", vjp), ("jvp", jvp)):
        if not callable(given) and not (given is None and name in ("vjp", "jvp")):
            fact = f"tc.interop.host takes functions, but `{name}` is a {type(given).__name__}"
            raise ConfigurationError.at(fact, hint=f"pass a function: `{name}=lambda *arrays: ...`")
    return HostFunction(function, shape, vjp, jvp)


@user_facing
def torch(function: Callable[..., Any]) -> Callable[..., Any]:
    """``layer = tc.interop.torch(f)``: an op, a derivative or a Python function of ops, for tensors of PyTorch.

    ::

        @op
        def attention(q, k, v):
            s[i, j] += q[i, d] * k[j, d]
            top[i] >>= s[i, j]
            e[i, j] = exp(s[i, j] - top[i])
            y[i, d] = sum(e[i, j] * v[j, d]) / sum(e[i, j])
            return y

        layer = tc.interop.torch(attention)
        layer(q, k, v).sum().backward()                    # q, k, v: tensors that require gradients
        torch.compile(layer)(q, k, v)

    Tensors are read where they lie, results are new tensors. It works under autograd (of any order, forwards too),
    ``torch.func``, ``vmap``, ``torch.compile`` and ``torch.export``; Python numbers stay numbers. `DtypeError` for
    devices other than the CPU and for element types that tcdsl lacks, such as bfloat16 and complex numbers;
    `ConfigurationError` if PyTorch is not installed.
    """
    return _made("torch", "PyTorch", "torch", function)


@user_facing
def jax(function: Callable[..., Any]) -> Callable[..., Any]:
    """``layer = tc.interop.jax(f)``: an op, a derivative or a Python function of ops, for arrays of JAX.

    ::

        layer = tc.interop.jax(attention)
        step = jax.jit(jax.grad(lambda q, k, v: layer(q, k, v).sum()))
        jax.vmap(layer, in_axes=(0, 0, None))(qs, ks, v)

    It is a primitive with derivatives of any order, which XLA calls on its own buffers, without copies. Python numbers
    stay numbers. A wrong call inside compiled code is an error of JAX, with our message. `ConfigurationError` if JAX is
    not installed.
    """
    return _made("jax", "JAX", "jax", function)


@user_facing
def dask(function: Callable[..., Any]) -> Callable[..., Any]:
    """``layer = tc.interop.dask(f)``: an op, a derivative or a Python function of ops, for chunked arrays of Dask.

    ::

        @op
        def blur(x):
            y[i, j] = x[clamp(i - 1), j] + 2 * x[i, j] + x[clamp(i + 1), j]
            return y

        layer = tc.interop.dask(blur)
        layer(dask.array.random.random((40_000, 40_000))).mean().compute()
        print(layer.regions(x))            # which cells of x a block of y is made of

    Which cells of each argument a block of the result needs follows from its index expressions: nobody names a depth,
    and boundaries are those of the whole array. Reductions are combined in a tree, contractions and gradients are made
    block by block. The result has the chunks of the largest argument along the same index. `ShapeError` for an access
    that cannot be cut, and for chunks of unknown sizes; `ConfigurationError` if Dask is not installed.
    """
    return _made("dask", "Dask", "dask.array", function)


@user_facing
def numba(function: Any, *, derivative: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """``g = tc.interop.numba(f)``: an op inside functions that Numba compiles; or a function of Numba's in ops.

    ::

        smoothed = tc.interop.numba(smooth)

        @numba.njit
        def steps(x, n):
            for _ in range(n):
                x = smoothed(x)
            return x

    Arrays may have any strides, results are new arrays of Numba's, and exceptions are raised there. Of a function of
    scalars by ``@njit``, ``@vectorize`` or ``@cfunc`` it makes an elementwise operation for ops, of arrays and at
    points, which is called by address; ``derivative`` gives its partial derivatives, as a number or a tuple.
    `ConfigurationError` if Numba is not installed.
    """
    _require("numba", "Numba", "numba")
    from tcdsl.interop.numba_functions import NumbaFunction
    from tcdsl.interop.numba_scalars import is_of_numba, of_scalars

    made: Callable[..., Any]
    if is_of_numba(function):
        made = kept(function, (of_scalars, derivative), lambda: of_scalars(function, derivative))
        return made
    require_values("interop.numba", function)
    if derivative is not None:
        raise ConfigurationError.at(
            "tc.interop.numba takes a derivative for functions of Numba alone",
            hint="ops have derivatives: `tc.grad(f)`",
        )
    made = kept(function, NumbaFunction, lambda: NumbaFunction(function))
    return made


@user_facing
def xarray(function: Callable[..., Any]) -> Callable[..., Any]:
    """``g = tc.interop.xarray(f)``: an op, a derivative or a Python function of ops, for DataArrays and Datasets.

    ::

        @op
        def warming(t, mean):
            y[k, i, j] = t[k, i, j] - mean[i, j]
            return y

        warmer = tc.interop.xarray(warming)(t, t.mean("time"))    # has the coordinates of t

    Axes over which one index goes must have one dimension name; they are joined as xarray's ``arithmetic_join`` says.
    Results have the names of the axes that they come from, and the coordinates where these are read at the index alone.
    Datasets are taken variable by variable. `ShapeError` for dimensions that do not fit; `ConfigurationError` if xarray
    is not installed.
    """
    return _made("xarray", "xarray", "xarray", function)


@user_facing
def pandas(function: Callable[..., Any]) -> Callable[..., Any]:
    """``g = tc.interop.pandas(f)``: an op, a derivative or a Python function of ops, for Series and DataFrames.

    ::

        @op
        def value(shares, price):
            return shares * price

        worth = tc.interop.pandas(value)(frame["shares"], prices)     # a Series, aligned by index

    A Series has one axis, a DataFrame two. Axes over which one index goes are aligned as in pandas, by an outer join.
    Results have the index and the columns of the axes that they come from. `DtypeError` for missing values other than
    not-a-number; `ConfigurationError` if pandas is not installed.
    """
    return _made("pandas", "pandas", "pandas", function)


@user_facing
def polars(function: Callable[..., Any]) -> Callable[..., Any]:
    """``g = tc.interop.polars(f)``: an op, a derivative or a Python function of ops, for Series and DataFrames.

    ::

        worth = tc.interop.polars(value)(frame["shares"], frame["price"])

    Columns keep their names. `DtypeError` for nulls; `ConfigurationError` if polars is not installed.
    """
    return _made("polars", "polars", "polars", function)


def _made(name: str, title: str, package: str, function: Callable[..., Any]) -> Callable[..., Any]:
    require_values(f"interop.{name}", function)
    _require(name, title, package)
    kind = getattr(import_module(f"tcdsl.interop.{name}_functions"), f"{name.capitalize()}Function")
    made: Callable[..., Any] = kept(function, kind, lambda: kind(function))
    return made


# What `pip` calls it, where that differs.
_INSTALLED_AS = {"dask.array": '"dask[array]"'}


def _require(name: str, title: str, package: str) -> None:
    install = _INSTALLED_AS.get(package, package)
    try:
        import_module(package)
    except ModuleNotFoundError as fault:
        if fault.name != package.partition(".")[0]:
            raise
        raise ConfigurationError.at(
            f"tc.interop.{name} needs {title}, which is not installed", hint=f"install it: `pip install {install}`"
        ) from None


def __getattr__(name: str) -> Any:
    raise missing_attribute("module tcdsl.interop", name, sys.modules[__name__])
