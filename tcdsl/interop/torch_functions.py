"""Functions for PyTorch: ``layer = tc.interop.torch(f)`` takes and gives tensors, without copies, with derivatives.

All are one operation of ``torch.library``, ``tcdsl::call(str function, Tensor[] arrays) -> Tensor[]``, whose first
operand is the key of an `ArrayFunction`. A derivative, or a batch, is that operation with another key: so there are
derivatives of every order, and compiled graphs hold no Python. Where nobody watches operations, the function is called
on the tensors' memory at once, which takes a third of the time.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import torch as pytorch
from torch.autograd import forward_ad

from tcdsl.errors import DtypeError, TcdslError
from tcdsl.frontend.staging.given_arrays import given_array
from tcdsl.interop.array_functions import ArrayFunction, CallForm, Hole, ResultTypes, function_named, runs, taken_apart
from tcdsl.runtime.calling.structure import Structure, flatten

__all__ = ["TorchFunction"]

_LIBRARY = pytorch.library.Library("tcdsl", "DEF")
_LIBRARY.define("call(str function, Tensor[] arrays) -> Tensor[]")
_NUMBERS = {float: pytorch.float64, int: pytorch.int64, bool: pytorch.bool}
_OF_NUMPY = {
    name: getattr(pytorch, name)
    for name in (*(f"float{bits}" for bits in (16, 32, 64)), *(f"int{bits}" for bits in (8, 16, 32, 64)), "bool")
} | {f"uint{bits}": getattr(pytorch, f"uint{bits}") for bits in (8, 16, 32, 64)}
_TO_NUMPY = {kind: np.dtype(name) for name, kind in _OF_NUMPY.items()}


class TorchFunction:
    """``layer = tc.interop.torch(f)``: ``f`` for tensors of PyTorch; see `tcdsl.interop.torch`."""

    __name__: str

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self._run = runs(function)[1]
        self._functions: dict[Any, ArrayFunction] = {}
        #: Those for so many tensors by position.
        self._alone: dict[int, ArrayFunction] = {}
        self._structures: dict[tuple[Any, ...], Structure] = {}

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """The results as tensors, nested as ``f`` returns them."""
        if pytorch.compiler.is_compiling():
            return self._compiled(arguments, keywords)
        if (not keywords or set(map(type, keywords.values())) <= _SCALARS) and _is_unwatched():
            given = _untracked(arguments)
            if given is not None:
                found = self._run(*given, **keywords)
                if type(found) is np.ndarray:
                    return pytorch.from_numpy(found)
                leaves, structure = flatten(found, _is_array)
                return structure.build([pytorch.from_numpy(np.asarray(each)) for each in leaves])
        if not keywords and _PLAIN.issuperset(map(type, arguments)):
            function, tensors = self._served_alone(len(arguments)), arguments
        else:
            form, operands = taken_apart(
                self.__name__, arguments, keywords, _is_array, self._numbers((*arguments, *keywords.values()))
            )
            function = self.served(form)
            tensors = tuple([self._tensor(function, k, each) for k, each in enumerate(operands)])
        if pytorch._C._are_functorch_transforms_active():
            _require_strided(function, tensors)
            results, structure = _called(function, tensors), self._structure(function, tensors)
        else:
            applied = _Applied(function)
            results = _Call.apply(applied, *tensors) if _is_tracked(tensors) else applied.results(tensors)
            structure = applied.structure or self._structure(function, tensors)
        return results[0] if structure.kind == "leaf" else structure.build(results)

    def _structure(self, function: ArrayFunction, tensors: Sequence[pytorch.Tensor]) -> Structure:
        key = (function.key, *[(each.dtype, each.dim()) for each in tensors])
        found = self._structures.get(key)
        if found is None:
            found = self._structures[key] = _result_types(function, tensors).structure
        return found

    @staticmethod
    def _tensor(function: ArrayFunction, place: int, value: Any) -> pytorch.Tensor:
        if isinstance(value, np.ndarray | np.generic):
            given_array(value, function.operand_names()[place], f"{function.name}(): ")
        return _tensor(value)

    @staticmethod
    def _numbers(given: Sequence[Any]) -> tuple[type, ...]:
        # Where tensors have no cells, integers must be known: shapes may depend on them.
        kinds = {type(each) for each in given if isinstance(each, pytorch.Tensor)}
        known = kinds <= {pytorch.Tensor, pytorch.nn.Parameter} and not any(
            getattr(each, "is_meta", False) for each in given
        )
        return (float, int, bool) if known else (float,)

    def _served_alone(self, count: int) -> ArrayFunction:
        found = self._alone.get(count)
        if found is None:
            found = self._alone[count] = self.served(CallForm((Hole(),) * count, ()))
        return found

    def served(self, form: CallForm) -> ArrayFunction:
        """The function for calls of that form."""
        key = form.key
        found = self._functions.get(key)
        if found is None:
            found = self._functions[key] = ArrayFunction.of(self.function, form)
        return found

    def _compiled(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        # What PyTorch's compiler traces: plain Python, and two functions that it runs and takes for constants, as it
        # does integers. Floats, which it may keep open, are tensors.
        given = [
            pytorch.scalar_tensor(each, dtype=pytorch.float64) if type(each) is float else each
            for each in (*arguments, *keywords.values())
        ]
        places: list[tuple[str, Any]] = []
        for old, each in zip((*arguments, *keywords.values()), given, strict=True):
            if isinstance(each, pytorch.Tensor):
                places.append(("number" if type(old) is float else "array", None))
            else:
                places.append(("constant", operator.index(each) if type(each) is int else each))
        key = _key_of_call(self, tuple(places), tuple(keywords))
        tensors = [each for each in given if isinstance(each, pytorch.Tensor)]
        results = pytorch.ops.tcdsl.call.default(key, tensors)
        return _structure_of_call(key, tuple([(str(each.dtype), each.dim()) for each in tensors])).build(results)

    def __reduce__(self) -> tuple[Any, ...]:
        return TorchFunction, (self.function,)

    def __repr__(self) -> str:
        return f"<{self.function!r} for PyTorch>"


_DEVICES = ("cpu", "meta")
_PLAIN = {pytorch.Tensor}
_TENSORS = frozenset((pytorch.Tensor, pytorch.nn.Parameter))
_SCALARS = frozenset((float, int, bool, str, type(None)))
_KEYS = pytorch._C.DispatchKey
_USUAL = [
    (pytorch._C.DispatchKeySet(_KEYS.BackendSelect) | more).raw_repr()
    for more in (pytorch._C.DispatchKeySet(_KEYS.ADInplaceOrView), pytorch._C.DispatchKeySet(_KEYS.BackendSelect))
]


def _is_unwatched() -> bool:
    # Whether nothing wants to see operations: no mode, transform, tracer or profiler. Of the dispatcher's keys there
    # are those of any call, but for the one that inference mode leaves out.
    return (
        pytorch._C._dispatch_tls_local_include_set().raw_repr() in _USUAL
        and not pytorch._C._len_torch_function_stack()
        and not pytorch._C._autograd._profiler_enabled()
    )


def _untracked(arguments: Sequence[Any]) -> list[Any] | None:
    # Tensors as arrays, and numbers, if no derivative is asked for; None of what takes the long way, or is refused.
    tracking = pytorch.is_grad_enabled()
    if forward_ad._current_level >= 0:
        return None
    given: list[Any] = []
    for each in arguments:
        kind = type(each)
        if kind in _TENSORS:
            if not each.requires_grad:
                tensor = each
            elif tracking:
                return None
            else:
                tensor = each.detach()
            try:
                given.append(tensor.numpy())
            except (TypeError, RuntimeError):
                return None
        elif kind in _SCALARS:
            given.append(each)
        else:
            return None
    return given


def _is_array(value: Any) -> bool:
    return isinstance(value, pytorch.Tensor | np.ndarray | np.generic)


def _require_strided(function: ArrayFunction, tensors: Sequence[pytorch.Tensor]) -> None:
    for k, each in enumerate(tensors):
        if (
            each.layout is not pytorch.strided
            or each.is_quantized
            or each.is_nested
            or each.device.type not in _DEVICES
        ):
            raise _elsewhere(function, k, each)


def _elsewhere(function: ArrayFunction, place: int, tensor: pytorch.Tensor) -> TcdslError:
    name = function.operand_names()[place]
    if tensor.is_nested:
        fact = f"{function.name}(): `{name}` is a nested tensor, whose rows differ in length"
        return DtypeError.at(fact, hint=f"pass its tensors one by one, or `{name}.to_padded_tensor(0.0)`")
    if tensor.layout is not pytorch.strided:
        kind = str(tensor.layout).removeprefix("torch.")
        return DtypeError.at(f"{function.name}(): `{name}` has the layout {kind}", hint=f"pass `{name}.to_dense()`")
    if tensor.is_quantized:
        kind = str(tensor.dtype).removeprefix("torch.")
        fact = f"{function.name}(): `{name}` is quantized, with the element type {kind}"
        return DtypeError.at(fact, hint=f"pass `{name}.dequantize()`")
    fact = f"{function.name}(): `{name}` lies on the device {tensor.device}"
    return DtypeError.at(fact, hint=f"pass a copy in the computer's own memory, `{name}.cpu()`")


def _key_of_call(function: TorchFunction, places: tuple[tuple[str, Any], ...], names: tuple[str, ...]) -> str:
    # The key for a call with these constants; ``names`` are those of the last places.
    holes = {"array": Hole(), "number": Hole("float")}
    filled = tuple([holes.get(kind, value) for kind, value in places])
    first = len(filled) - len(names)
    form = CallForm(filled[:first], tuple(zip(names, filled[first:], strict=True)))
    return function.served(form).key


def _structure_of_call(function: str, types: tuple[tuple[str, int], ...]) -> Structure:
    return _TRACED[function, types]


_TRACED: dict[tuple[str, tuple[tuple[str, int], ...]], Structure] = {}
# As `torch.compiler.assume_constant_result` marks them, for which the compiler would be imported.
_key_of_call._dynamo_marked_constant = True  # type: ignore[attr-defined]
_structure_of_call._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _tensor(value: Any) -> pytorch.Tensor:
    if isinstance(value, pytorch.Tensor):
        return value
    kind = _NUMBERS.get(type(value))
    return pytorch.as_tensor(value) if kind is None else pytorch.scalar_tensor(value, dtype=kind)


def _run(function: str, arrays: Sequence[pytorch.Tensor]) -> list[pytorch.Tensor]:
    made = function_named(function)
    given = _arrays(arrays)
    if given is None:
        _require_strided(made, arrays)
        names = made.operand_names()
        found = [given_array(each.detach(), names[k], f"{made.name}(): ") for k, each in enumerate(arrays)]
        given = [each for each in found if each is not None]
    return _results(made, given)[0]


def _arrays(tensors: Sequence[pytorch.Tensor]) -> list[np.ndarray] | None:
    # Their memory; None if some of them is not as NumPy has arrays.
    try:
        return [each.detach().numpy() if each.requires_grad else each.numpy() for each in tensors]
    except (TypeError, RuntimeError):
        return None


def _results(made: ArrayFunction, arrays: Sequence[np.ndarray]) -> tuple[list[pytorch.Tensor], Structure]:
    results, structure = made.results(arrays)
    return [pytorch.from_numpy(each) for each in results], structure


def _result_types(function: ArrayFunction, tensors: Sequence[pytorch.Tensor]) -> ResultTypes:
    return function.result_types([_like(each) for each in tensors])


def _like(tensor: pytorch.Tensor) -> np.ndarray:
    # An array of its type and about its shape, whose cells are nothing.
    if tensor.dtype not in _TO_NUMPY:
        kind = str(tensor.dtype).removeprefix("torch.")
        raise DtypeError.at(f"a tensor has the element type {kind}, which tcdsl does not handle")
    return np.broadcast_to(np.zeros((), _TO_NUMPY[tensor.dtype]), [_about(extent) for extent in tensor.shape])


def _about(extent: Any) -> int:
    if isinstance(extent, int):
        return extent
    hint = extent.node.hint
    return 2 if hint is None else int(hint)


def _fake(function: str, arrays: Sequence[pytorch.Tensor]) -> list[pytorch.Tensor]:
    types = _result_types(function_named(function), arrays)
    _TRACED[function, tuple([(str(each.dtype), each.dim()) for each in arrays])] = types.structure
    shapes = types.shapes([tuple(each.shape) for each in arrays])
    where = {"device": arrays[0].device} if arrays else {}
    return [
        pytorch.empty(shape, dtype=_OF_NUMPY[kind], **where) for kind, shape in zip(types.dtypes, shapes, strict=True)
    ]


def _is_tracked(tensors: Sequence[pytorch.Tensor]) -> bool:
    # Whether a derivative is asked for.
    if forward_ad._current_level >= 0:
        return True
    return pytorch.is_grad_enabled() and any([each.requires_grad for each in tensors])  # noqa: C419  # it is faster


class _Applied:
    """A function that is called, and then the structure around its results, if that is known."""

    __slots__ = ("function", "structure")

    def __init__(self, function: ArrayFunction) -> None:
        self.function = function
        self.structure: Structure | None = None

    def results(self, tensors: Sequence[pytorch.Tensor]) -> tuple[pytorch.Tensor, ...]:
        """The results, without derivatives."""
        arrays = _arrays(tensors) if _is_unwatched() else None
        if arrays is not None:
            results, self.structure = _results(self.function, arrays)
            return tuple(results)
        _require_strided(self.function, tensors)
        # The operation's own derivative is for compiled graphs.
        with pytorch._C._AutoDispatchBelowAutograd():
            return tuple(_call(self.function.key, *tensors))


def _called(function: ArrayFunction, tensors: Sequence[pytorch.Tensor]) -> Sequence[pytorch.Tensor]:
    results: Sequence[pytorch.Tensor]
    if pytorch._C._are_functorch_transforms_active():
        # They want the context apart, which takes ten times as long.
        results = _Transformed.apply(function.key, *tensors)
    elif _is_tracked(tensors):
        results = _Call.apply(_Applied(function), *tensors)
    else:
        results = _Applied(function).results(tensors)
    return results


class _Call(pytorch.autograd.Function):
    generate_vmap_rule: ClassVar[bool] = False

    @staticmethod
    def forward(ctx: Any, applied: _Applied, *arrays: pytorch.Tensor) -> tuple[pytorch.Tensor, ...]:
        results = applied.results(arrays)
        _Call.keep(ctx, applied.function, arrays, results)
        return results

    @staticmethod
    def keep(
        ctx: Any, function: ArrayFunction, arrays: Sequence[pytorch.Tensor], output: tuple[pytorch.Tensor, ...]
    ) -> None:
        ctx.function, ctx.results = function, len(output)
        ctx.of = tuple([k for k, each in enumerate(output) if each.is_floating_point()])
        if len(ctx.of) < len(output):
            ctx.mark_non_differentiable(*[each for each in output if not each.is_floating_point()])
        ctx.save_for_backward(*arrays)
        ctx.save_for_forward(*arrays)

    @staticmethod
    def backward(ctx: Any, *cotangents: pytorch.Tensor) -> tuple[Any, ...]:
        by = tuple([k - 1 for k, needed in enumerate(ctx.needs_input_grad) if needed])
        pullback = ctx.function.pullback(by, ctx.of)
        adjoints = iter(_called(pullback, (*ctx.saved_tensors, *[cotangents[k] for k in ctx.of])))
        return tuple([next(adjoints) if needed else None for needed in ctx.needs_input_grad])

    @staticmethod
    def jvp(ctx: Any, _function: None, *tangents: pytorch.Tensor | None) -> tuple[pytorch.Tensor | None, ...]:
        by = tuple([k for k, each in enumerate(tangents) if each is not None])
        pushforward = ctx.function.pushforward(by, ctx.of)
        made = _called(pushforward, (*ctx.saved_tensors, *[each for each in tangents if each is not None]))
        moved = dict(zip(ctx.of, made, strict=True))
        return tuple([moved.get(k) for k in range(ctx.results)])


class _Transformed(_Call):
    @staticmethod
    def forward(function: str, *arrays: pytorch.Tensor) -> tuple[pytorch.Tensor, ...]:
        return tuple(_call(function, *arrays))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[pytorch.Tensor, ...]) -> None:
        _Call.keep(ctx, function_named(inputs[0]), inputs[1:], output)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], function: str, *arrays: pytorch.Tensor
    ) -> tuple[tuple[pytorch.Tensor, ...], tuple[int, ...]]:
        return _batched(in_dims[1:], function, arrays, _called)


def _batched(
    dims: Sequence[int | None],
    function: str,
    arrays: Sequence[pytorch.Tensor],
    call: Callable[[ArrayFunction, Sequence[pytorch.Tensor]], Sequence[pytorch.Tensor]],
) -> tuple[tuple[pytorch.Tensor, ...], tuple[int, ...]]:
    by = tuple([k for k, axis in enumerate(dims) if axis is not None])
    moved = [each if axis is None else each.movedim(axis, 0) for each, axis in zip(arrays, dims, strict=True)]
    results = tuple(call(function_named(function).batched(by), moved))
    return results, (0,) * len(results)


def _call(function: str, *arrays: pytorch.Tensor) -> list[pytorch.Tensor]:
    made: list[pytorch.Tensor] = pytorch.ops.tcdsl.call.default(function, list(arrays))
    return made


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Sequence[pytorch.Tensor]) -> None:
    function, arrays = inputs
    ctx.function = function_named(function)
    ctx.of = tuple([k for k, each in enumerate(output) if each.is_floating_point()])
    ctx.by = tuple([k for k, each in enumerate(arrays) if each.requires_grad])
    ctx.save_for_backward(*arrays)


def _pulled_back(ctx: Any, cotangents: Sequence[pytorch.Tensor]) -> tuple[None, list[pytorch.Tensor | None]]:
    pullback = ctx.function.pullback(ctx.by, ctx.of)
    adjoints = iter(_call(pullback.key, *ctx.saved_tensors, *[cotangents[k] for k in ctx.of]))
    return None, [next(adjoints) if k in ctx.by else None for k in range(len(ctx.saved_tensors))]


def _legacy_batched(function: str, arrays: Sequence[pytorch.Tensor]) -> list[pytorch.Tensor]:
    # Of `torch.autograd.grad(..., is_grads_batched=True)` and `gradcheck`, whose batches are others than vmap's.
    level = pytorch._C._vmapmode_increment_nesting() - 1
    pytorch._C._vmapmode_decrement_nesting()
    batched = [pytorch._C._functorch.is_legacy_batchedtensor(each) for each in arrays]
    moved = [
        pytorch._remove_batch_dim(each, level, 1, 0) if is_ else each for each, is_ in zip(arrays, batched, strict=True)
    ]
    by = tuple([k for k, is_ in enumerate(batched) if is_])
    results = _call(function_named(function).batched(by).key, *moved)
    return [pytorch._add_batch_dim(each, 0, level) for each in results]


_LIBRARY.impl("call", _run, "CPU")
_LIBRARY.impl("call", _legacy_batched, "Batched")
pytorch.library.register_autograd("tcdsl::call", _pulled_back, setup_context=_setup, lib=_LIBRARY)
pytorch.library.register_fake("tcdsl::call", _fake, lib=_LIBRARY)
pytorch.library.register_vmap(
    "tcdsl::call",
    lambda info, dims, function, arrays: _batched(
        dims[1], function, arrays, lambda made, moved: _call(made.key, *moved)
    ),
    lib=_LIBRARY,
)
