"""`op` and `cd`: the decorators, and the object that a decorated function becomes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Generic, overload

from tcdsl.errors import ConfigurationError
from tcdsl.frontend.source.texts import function_of_text
from tcdsl.frontend.staging.active_session import ACTIVE_SESSION, DeclarationMet
from tcdsl.runtime.calling.arguments import is_graph_tensor
from tcdsl.runtime.function import DecoratedFunction, decorated
from tcdsl.runtime.inspection import Parameters, Result
from tcdsl.tracebacks import user_facing, user_globals

if TYPE_CHECKING:
    from typing import Concatenate, Self

    from typing_extensions import ParamSpec, TypeVar

    from tcdsl.tensors.functions.layers import Layer
    from tcdsl.tensors.graphs.tensor import Tensor

    Others = ParamSpec("Others")
    Buffers = TypeVar("Buffers")
    Made = TypeVar("Made")

__all__ = ["TensorFunction", "cd", "op"]


class TensorFunction(DecoratedFunction, Generic[Parameters, Result]):
    """A decorated function. Call it with arrays; ``explain``, ``interpret`` and ``cache_info`` show what it does.

    ::

        @op
        def matmul(A, B):
            C[i, j] += A[i, k] * B[k, j]
            return C

        matmul(A, B)                       # float32[N, K], float32[K, M] -> float32[N, M]
        print(matmul.explain("loops", A, B))

    With a `tcdsl.Tensor` among the arguments an op gives tensors, and a `@cd` function code.
    """

    #: Whether staging has met a parameter that a string declares.
    _declares = False

    if TYPE_CHECKING:
        # What checkers know of a call, in this order: the function's own signature; `out=`; tensors, which are no
        # arrays; configuration alone. A method has no `self`.

        @overload
        def __call__(self, *arguments: Parameters.args, **keywords: Parameters.kwargs) -> Result: ...
        @overload
        def __call__(self, *arguments: Any, out: Buffers, **keywords: Any) -> Buffers: ...
        @overload
        def __call__(self, first: Tensor, /, *arguments: Any, **keywords: Any) -> Any: ...
        @overload
        def __call__(self, first: Any, second: Tensor, /, *arguments: Any, **keywords: Any) -> Any: ...
        @overload
        def __call__(self, **configuration: Any) -> Layer: ...
        def __call__(self, *arguments: Any, **keywords: Any) -> Any:
            """Run on arrays or tensors, or configure."""

        @overload
        def __get__(self, instance: None, owner: type | None = None) -> Self: ...
        @overload
        def __get__(
            self: TensorFunction[Concatenate[Any, Others], Made], instance: object, owner: type | None = None
        ) -> TensorFunction[Others, Made]: ...
        def __get__(self, instance: Any, owner: type | None = None) -> Any: ...

    def __getattr__(self, name: str) -> Any:
        from tcdsl.frontend.names.absent_attributes import missing_attribute

        raise missing_attribute("a decorated function", name, self)

    def _called(self, out: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if not arguments and keywords and self._is_configured_by(keywords):
            from tcdsl.tensors.functions.layers import configured

            return configured(self, keywords)
        if ACTIVE_SESSION.get() is not None:
            return super()._called(out, arguments, keywords)
        if any(map(is_graph_tensor, arguments)) or (keywords and self._is_given_tensors(keywords)):
            if out is not None:
                raise ConfigurationError(f"{self.__name__}(): out is for arrays; tensors have memory of their own")
        elif out is not None or self.in_place:
            with self.without_parameters("out="):
                return super()._called(out, arguments, keywords)
        elif not self._declares:
            try:
                return super()._called(out, arguments, keywords)
            except DeclarationMet:
                self._declares = True
        from tcdsl.tensors.functions.layers import call_outside

        return call_outside(self, arguments, keywords)

    def _is_given_tensors(self, keywords: Mapping[str, Any]) -> bool:
        # `f(x=t)` is `f(t)`.
        positional = keywords.keys() - self.signature.keyword_only
        return any(is_graph_tensor(keywords[name]) for name in positional)

    def _is_configured_by(self, keywords: Mapping[str, Any]) -> bool:
        # `mlp_layer(hid_dim=16)`: configuration alone makes a layer.
        missing = self.signature.required_positional
        return not self.in_place and missing > 0 and keywords.keys() <= self.signature.keyword_only

    def scope_of_inner_call(self, configuration: Mapping[str, Any]) -> AbstractContextManager[None]:
        """Where the declarations of this function go while it runs as part of another one."""
        from tcdsl.tensors.functions.layers import scope_of_inner_call

        return scope_of_inner_call(self, configuration)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that an op without configuration declares, by label; its first call makes them.

        With configuration each layer has its own: ``layer = mlp(hid_dim=16)``, then ``layer.parameters``.
        """
        from tcdsl.tensors.functions.layers import ParametersByLabel, parameters_of

        return ParametersByLabel(parameters_of(self).by_label())


@overload
def op(function: Callable[Parameters, Result], /) -> TensorFunction[Parameters, Result]: ...
@overload
def op(*, oob: str = "check", source: str) -> TensorFunction[..., Any]: ...
@overload
def op(
    *, oob: str = "check", source: None = None
) -> Callable[[Callable[Parameters, Result]], TensorFunction[Parameters, Result]]: ...
@user_facing
def op(function: Any = None, /, *, oob: str = "check", source: str | None = None) -> Any:
    """Define an operation: arrays in, new arrays out, differentiable.

    ::

        @op
        def conv1d(I, K):
            O[n, x, c] += I[n, x + k, d] * K[k, d, c]
            return O

    ``oob`` says what happens where a data index is out of range: ``"check"`` raises `DataIndexError`, ``"skip"`` leaves
    the point out, ``"clamp"`` moves it to the nearest end.

    ``f = op(source="def f(x): ...")`` defines an operation by its text, for where Python keeps none: under ``exec``, in
    a shell, in an application that has no sources. Names in the text are those of the calling module.
    """
    return _decorating(function, False, oob, source)


@overload
def cd(function: Callable[Parameters, object], /) -> TensorFunction[Parameters, Any]: ...
@overload
def cd(*, oob: str = "check", source: str) -> TensorFunction[..., Any]: ...
@overload
def cd(
    *, oob: str = "check", source: None = None
) -> Callable[[Callable[Parameters, object]], TensorFunction[Parameters, Any]]: ...
@user_facing
def cd(function: Any = None, /, *, oob: str = "check", source: str | None = None) -> Any:
    """Define code: assignments that change arrays in place, such as an optimizer's update.

    ::

        @cd
        def sgd(p, g, *, learning_rate):
            p -= learning_rate * g

    Written arguments must be writable NumPy arrays that do not overlap any other argument. A failed call changes
    nothing.
    """
    return _decorating(function, True, oob, source)


def _decorating(function: Any, in_place: bool, oob: str, source: str | None) -> Any:
    if source is not None:
        if function is not None:
            name = "cd" if in_place else "op"
            raise ConfigurationError(f"@{name} with a function and a source; the source alone defines the function")
        function = function_of_text(source, user_globals())
    if function is None:
        return functools.partial(decorated, TensorFunction, in_place=in_place, oob=oob)
    return decorated(TensorFunction, function, in_place, oob)
