"""The object that a decorated function becomes, as far as arrays are concerned.

As bytes it is its name, as Python's functions are, or for tools that can do that, its code.
"""

from __future__ import annotations

import copy
import functools
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pickle import PicklingError
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, TypeVar

from tcdsl.errors import ConfigurationError, DifferentiationError, DslSyntaxError
from tcdsl.frontend.source.annotations import evaluable_annotations
from tcdsl.frontend.source.function_source import FunctionSource, is_plain_python, read_source, text_of
from tcdsl.frontend.source.texts import FunctionText, place_text
from tcdsl.frontend.staging.active_session import ACTIVE_SESSION, DeclarationMet
from tcdsl.frontend.surroundings.readings import MISSING, Reading
from tcdsl.locks import COMPILING, computed_once
from tcdsl.runtime.calling.arguments import Signature
from tcdsl.runtime.calls.content import Contents, UnknownContentError
from tcdsl.runtime.calls.table import CallTable
from tcdsl.runtime.inspection import Inspected
from tcdsl.span import Span
from tcdsl.tracebacks import hide_library_frames, told_of_a_wrong_call, user_facing, with_large_stack

if TYPE_CHECKING:
    from types import FrameType, FunctionType

    from tcdsl.runtime.decorated import Body, DecoratedStaging


__all__ = ["DecoratedFunction", "decorated"]

# Where classes of arguments stand that have no operations for methods.
_NO_METHODS = frozenset(("builtins", "numpy"))
_OOB = ("check", "skip", "clamp")
_UNGIVEN: Any = object()
_ATTRIBUTES = frozenset(
    (
        "function",
        "in_place",
        "oob",
        "_receiver",
        "calls",
        "_bound",
        "signature",
        "rules",
    )
) | {"template", "source", "staging", "_declares"}

Function = TypeVar("Function", bound="DecoratedFunction")


class DecoratedFunction(Inspected):
    """A decorated function on arrays; see `tcdsl.tensors.functions.decorators.TensorFunction`, which users hold."""

    __name__: str
    __qualname__: str

    @user_facing
    def __init__(
        self,
        function: FunctionType,
        in_place: bool,
        oob: str = "check",
        receiver: Any = None,
    ) -> None:
        if not isinstance(function, FunctionType):
            raise ConfigurationError(f"a {type(function).__name__} is no function that `op` or `cd` can decorate")
        functools.update_wrapper(self, function)
        self.function = function
        self.in_place = in_place
        self.oob = oob
        self._receiver = receiver
        #: The calls that are served without staging, in this process and on disk.
        self.calls = CallTable(self)
        self._bound: dict[tuple[int, int], DecoratedFunction] = {}
        target = function if receiver is None else MethodType(function, receiver)
        self.__wrapped__ = target
        self.__annotations__ = evaluable_annotations(function)
        self.signature = Signature(target, function.__name__)
        #: The derivative rules by mode, ``pullback`` and ``pushforward``; a method's instances share them.
        self.rules: dict[str, DecoratedFunction] = {}

    # -- staging ---------------------------------------------------------------------------------------------

    @computed_once
    def template(self) -> Body:
        """The rewritten function."""
        from tcdsl.frontend.python.template import Template

        return Template(self.function, self.source, self.in_place)

    @computed_once
    def source(self) -> FunctionSource:
        """The definition that the user wrote. `DslSyntaxError` if it is not available."""
        return read_source(self.function)

    @computed_once
    def staging(self) -> DecoratedStaging:
        """The staged programs."""
        # A fork waits for whoever holds it, and a module that is half imported is never finished in the child.
        with COMPILING:
            from tcdsl.runtime.decorated import DecoratedStaging

            return DecoratedStaging(self)

    @property
    def receiver(self) -> Any:
        """The object whose method this is, if it is one."""
        return self._receiver

    def inline(self, *arguments: Any, **keywords: Any) -> Any:
        """Run as part of the function that is being staged."""
        from tcdsl.runtime.decorated import run_inline

        return run_inline(self, arguments, keywords)

    @property
    def stores_out(self) -> bool:
        """Whether ``out`` of a call does nothing but receive the results."""
        return not self.signature.declares_out

    # -- calling ---------------------------------------------------------------------------------------------

    def __call__(self, /, *arguments: Any, out: Any = _UNGIVEN, **keywords: Any) -> Any:
        """Run on arrays. ``out`` gives the output buffers: an array, or a tuple of them.

        For a function with a parameter ``out`` that is the parameter.
        """
        try:
            if ACTIVE_SESSION.get() is None:
                if (keywords or self.signature.has_arrays) and len(arguments) < self.signature.most_positional:
                    arguments, keywords = self.signature.placed(arguments, keywords)
                if out is _UNGIVEN:
                    again = self.calls.again
                    done = (again and again(arguments, keywords, None)) or self.calls.found(arguments, keywords)
                    if done is not None:
                        return done[0]
                elif out is not None and self.stores_out and self.calls.run(arguments, keywords, _buffers(out)):
                    return out
            function, given = self._with_receiver(arguments)
            if function is not self:
                return function(*given, out=out, **keywords)
            if out is _UNGIVEN:
                out = None
            elif self.signature.declares_out:
                keywords["out"], out = out, None
            return self._called(out, arguments, keywords)
        except RecursionError as error:
            return with_large_stack(functools.partial(self, *arguments, out=out, **keywords), error)
        except Exception as error:
            if (told := told_of_a_wrong_call(error)) is not None:
                raise told from None
            hide_library_frames(error)
            raise

    def _called(self, out: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if ACTIVE_SESSION.get() is not None:
            return self.inline(*arguments, **keywords)
        if out is None:
            return self.staging.run_anew(self.signature, arguments, keywords)
        self.staging.run_anew(self.signature, arguments, keywords, _buffers(out))
        return out

    def scope_of_inner_call(self, configuration: Mapping[str, Any]) -> AbstractContextManager[None]:
        """Where the declarations of this function go while it runs as part of another one."""
        return nullcontext()

    def add_content(self, contents: Contents) -> None:
        """Add all that staging depends on."""
        others = {name for name in vars(self) if not name.startswith("__")} - _ATTRIBUTES
        if self._receiver is not None or others or not is_plain_python(self.function):
            raise UnknownContentError(self.__name__)
        contents.put("decorated", type(self).__name__, self.in_place, self.oob)
        contents.add_function(self.function, self.source.text)
        for mode in ("pullback", "pushforward"):
            rule = self.rules.get(mode)
            contents.readings.append(Reading((mode,), self.rules, MISSING if rule is None else rule))
            contents.add(rule)

    def source_text(self) -> str:
        """The source that staging runs."""
        return self.template.source

    def written_text(self) -> str:
        """The source that the user wrote."""
        return self.source.text

    @contextmanager
    def without_parameters(self, use: str) -> Iterator[None]:
        """A block that stages a program of arrays alone, for ``use``: a declared parameter is an error in it."""
        try:
            yield
        except DeclarationMet as met:
            if self.in_place:
                raise met.fault from None
            fact = (
                f"`{self.__name__}` declares parameters, so it is a part of graphs of tensors, and {use} is for arrays"
            )
            hint = "call it with tensors, `tc.tensor(x)`; `explain` of a routine that runs on them shows their program"
            raise ConfigurationError.at(fact, met.fault.diagnostics[0].span, hint) from None

    def _with_receiver(self, arguments: tuple[Any, ...]) -> tuple[DecoratedFunction, tuple[Any, ...]]:
        # `Base.f(self, x)`, or as a property calls it: the first argument of a method is its instance. From Python 3.13
        # on, class methods pass their class here in the same way.
        if self._receiver is None and arguments:
            first = arguments[0]
            kinds = _users_classes(first)
            if any(map(self._stands_in, (*first.__mro__, *kinds) if isinstance(first, type) else kinds)):
                return self.__get__(first), arguments[1:]
        return self, arguments

    def _stands_in(self, kind: type) -> bool:
        # Whether this is a method of a class, under whatever other decorators.
        name = self.function.__name__
        if (kind.__module__, f"{kind.__qualname__}.{name}") == (self.function.__module__, self.function.__qualname__):
            return not isinstance(vars(kind).get(name), staticmethod)
        return any(each is self or getattr(each, "__func__", None) is self for each in vars(kind).values())

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        # One bound function per instance, so that its programs are kept; the instance is staging-time Python.
        try:
            cache = instance.__dict__.setdefault("__tcdsl_bound__", BoundFunctions())
        except AttributeError:
            cache = self._bound
        key = (id(self), id(instance))
        if key not in cache:
            bound = type(self)(self.function, self.in_place, self.oob, instance)
            bound.rules = self.rules
            cache[key] = bound
        return cache[key]

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self)

    def __copy__(self) -> DecoratedFunction:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> DecoratedFunction:
        if self._receiver is None:
            return self  # as functions do
        bound: DecoratedFunction = getattr(copy.deepcopy(self._receiver, memo), self.function.__name__)
        return bound

    def __repr__(self) -> str:
        return f"<{'cd' if self.in_place else 'op'} {self.__qualname__}>"

    # -- derivatives -----------------------------------------------------------------------------------------

    @user_facing
    def defvjp(self, rule: Callable[..., Any], /) -> DecoratedFunction:
        """Give this operation a derivative of your own: ``rule(*arguments, result, cotangent, **configuration)``.

        ::

            @op
            def clipped(x, *, bound):                 # the identity, whose gradient is kept small
                return x

            @clipped.defvjp
            def clipped_pullback(x, y, d_y, *, bound):
                return min(max(d_y, -bound), bound)   # the adjoint of x

        The rule is an operation itself, so index notation works in it. It receives the arguments, what the operation
        returned for them, and a cotangent for each returned array, nested alike (None for integers). It returns one
        adjoint per argument, of that argument's shape: an array for one argument, a tuple for several, with None for
        those that have no derivative. Of the keyword-only arguments it receives those that it names. Reverse mode uses
        the rule instead of the operation's statements; forward mode does too, by its transpose, unless there is a
        `defjvp`.
        """
        return self._with_rule("pullback", rule)

    @user_facing
    def defjvp(self, rule: Callable[..., Any], /) -> DecoratedFunction:
        """Give this operation a forward derivative: ``rule(*arguments, result, *tangents, **configuration)``.

        ::

            @op
            def log1pexp(x):
                return log(1 + exp(x))

            @log1pexp.defjvp
            def log1pexp_pushforward(x, y, t_x):
                return t_x * sigmoid(x)               # the tangent of y

        It receives one tangent per argument (None for integers and Python numbers) and returns one per returned array,
        nested alike. Reverse mode uses its transpose, unless there is a `defvjp`.
        """
        return self._with_rule("pushforward", rule)

    def _with_rule(self, mode: str, rule: Any) -> DecoratedFunction:
        if self.in_place:
            raise DifferentiationError(
                f"`{self.__name__}` is a @cd function: it changes memory and has no derivative to define; "
                "write an @op that returns the new values"
            )
        made = (
            rule
            if isinstance(rule, DecoratedFunction)
            else decorated(type(self), rule, False, self.oob, "defvjp" if mode == "pullback" else "defjvp")
        )
        if made.in_place:
            raise DifferentiationError(f"the rule `{made.__name__}` is a @cd function; a rule returns values: use @op")
        self.rules[mode] = made
        return made

    def rule(self, mode: str) -> DecoratedFunction:
        """The derivative rule of ``mode``, bound to the same instance if this is a method."""
        found = self.rules[mode]
        bound: DecoratedFunction = found if self._receiver is None else found.__get__(self._receiver)
        return bound

    @property
    def span(self) -> Span:
        """The line of the definition."""
        definition = self.source.definition
        return Span(self.source.filename, definition.lineno, definition.col_offset, definition.lineno, 10_000)


@user_facing
def decorated(kind: type[Function], function: Any, in_place: bool, oob: str, name: str = "") -> Function:
    """The object of class ``kind`` that a decorated function becomes. `DslSyntaxError` if it cannot be decorated."""
    name = name or ("cd" if in_place else "op")
    if oob not in _OOB:
        raise ConfigurationError(f"@{name}(oob={oob!r}): choose from {', '.join(map(repr, _OOB))}")
    if isinstance(function, staticmethod | classmethod):
        raise DslSyntaxError(
            f"@{name} stands above @{type(function).__name__}; write it directly above `def`, below the other"
        )
    if isinstance(function, DecoratedFunction):
        raise DslSyntaxError(f"`{function.__qualname__}` is decorated already; one of @op and @cd is enough")
    if not isinstance(function, FunctionType):
        raise DslSyntaxError(f"@{name} takes a function, not a {type(function).__name__}; put it directly above `def`")
    if getattr(function, "__wrapped__", None) is not None:
        raise DslSyntaxError(
            f"another decorator stands between @{name} and `def {function.__name__}`; put @{name} directly above `def`"
        )
    made = kind(function, in_place, oob)
    # Reading the source now reports what cannot be decorated where it is decorated.
    made.source  # noqa: B018
    return made


# They write functions that other processes cannot import by value; some packages hold copies of them.
_BY_VALUE = frozenset(("cloudpickle", "dill"))


class BoundFunctions(dict[tuple[int, int], Any]):
    """The decorated methods of an instance, by the addresses of both, which mean nothing to copies of the instance."""

    def __reduce__(self) -> tuple[Any, ...]:
        return BoundFunctions, ()


def _users_classes(instance: object) -> Iterator[type]:
    return (each for each in type(instance).__mro__ if each.__module__ not in _NO_METHODS)


def _buffers(out: Any) -> tuple[Any, ...]:
    return tuple(out) if isinstance(out, tuple | list) else (out,)


def reduced(function: Any) -> tuple[Any, ...]:
    """What ``function.__reduce__()`` gives. ``PicklingError`` for what its name does not lead to."""
    if function.receiver is not None:
        return getattr, (function.receiver, function.function.__name__)
    place = function.function.__module__, function.function.__qualname__
    try:
        found = _by_name(*place)
    except (ImportError, AttributeError, ValueError):
        found = None
    by_value = _is_by_value()
    if found is function and not (by_value and place[0] == "__main__"):
        return _by_name, place
    if by_value:
        texts = _texts_by_value(function.function)
        return _decorated, (type(function), function.function, function.in_place, function.oob, function.rules, texts)
    # What `exec` has run need not be of any module.
    fact = f"{function!r} cannot be pickled: the name {'.'.join(filter(None, place))} does not lead to it"
    raise PicklingError(f"{fact}; decorate a function of a module or of a class there, or use cloudpickle")


def _is_by_value() -> bool:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not _BY_VALUE.isdisjoint(str(frame.f_globals.get("__name__")).split(".")):
            return True
        frame = frame.f_back
    return False


def _by_name(module: str, qualname: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


def _texts_by_value(function: FunctionType) -> dict[FunctionType, FunctionText]:
    # The texts of a function and of the plain functions that it names: by value they lose their file.
    found: dict[FunctionType, FunctionText] = {}
    waiting: list[Any] = [function]
    while waiting:
        each = waiting.pop()
        text = text_of(each) if isinstance(each, FunctionType) and each not in found else None
        if text is not None:
            found[each] = text
            cells = dict(zip(each.__code__.co_freevars, each.__closure__ or (), strict=True))
            names = (*_names(each.__code__), *cells)
            waiting.extend(Reading((name,), cells.get(name, each.__globals__)).current() for name in names)
    return found


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _decorated(
    kind: type,
    function: FunctionType,
    in_place: bool,
    oob: str,
    rules: dict[str, Any],
    texts: Mapping[FunctionType, FunctionText],
) -> Any:
    for each, text in texts.items():
        if each is function or text_of(each) is None:
            place_text(each, text)
    made = kind(function, in_place, oob)
    made.rules = rules
    return made
