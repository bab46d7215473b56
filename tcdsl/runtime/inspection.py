"""What functions that are staged show of themselves: programs, stages of their compilation, costs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from tcdsl.tracebacks import user_facing

if TYPE_CHECKING:
    # Checkers know this package; a bare `TensorFunction` is one of any parameters.
    from typing_extensions import ParamSpec, TypeVar

    from tcdsl.runtime.calling.arguments import Signature
    from tcdsl.runtime.calls.staged import CacheInfo, StagedFunction
    from tcdsl.runtime.cost import Cost
    from tcdsl.runtime.profiles.profile import Profile

    Parameters = ParamSpec("Parameters", default=...)
    Result = TypeVar("Result", default=Any)
else:
    from typing import ParamSpec, TypeVar

    Parameters = ParamSpec("Parameters")
    Result = TypeVar("Result")

__all__ = ["Inspected", "Parameters", "Result"]


# What the house asks of functions, and users do not.
_INTERNAL = frozenset(
    (
        *("add_content", "calls", "function", "in_place", "inline", "oob", "receiver", "rule", "rules", "signature"),
        *("scope_of_inner_call", "source", "source_text", "span", "staging", "stores_out", "template"),
        *("without_parameters", "written_text"),
    )
)


class Inspected:
    """A function with staged programs: ``print(f.explain("loops", x))``, ``f.interpret(x)``, ``print(f.cost(x))``."""

    __name__: str
    #: Whether it changes its arguments and gives nothing else.
    in_place = False

    signature: Signature

    if TYPE_CHECKING:

        @property
        def staging(self) -> StagedFunction:
            """The staged programs."""

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in _INTERNAL]

    def source_text(self) -> str:
        """The source that staging runs."""
        raise NotImplementedError

    def written_text(self) -> str:
        """The source that the user wrote."""
        return self.source_text()

    def without_parameters(self, use: str) -> AbstractContextManager[None]:
        """A block that stages a program of arrays alone, for ``use``."""
        return nullcontext()

    def _with_receiver(self, arguments: tuple[Any, ...]) -> tuple[Inspected, tuple[Any, ...]]:
        return self, arguments

    @user_facing
    def program(self, *arguments: Any, **keywords: Any) -> Any:
        """The `tcdsl.ir.program.Program` that serves these arguments."""
        function, given = self._with_receiver(arguments)
        with function.without_parameters("program()"):
            return function.staging.program_of(function.signature.call(given, keywords))

    @user_facing
    def interpret(self, /, *arguments: Any, **keywords: Any) -> Any:
        """Run the reference interpreter, point by point: slow, obvious, in float64. Changes no argument.

        For a `@cd` function the result is the tuple of what its written arguments would become.
        """
        from tcdsl.runtime.calling.execution import interpreted

        function, given = self._with_receiver(arguments)
        with function.without_parameters("interpret()"):
            entry, arrays = function.staging.entry(function.signature.call(given, keywords))
        done = interpreted(entry.executable, arrays)
        if self.in_place:
            return tuple(done.updates.values())
        return entry.structure.build([array if array.ndim else array[()] for array in done.outputs])

    @user_facing
    def explain(self, stage: str = "ir", /, *arguments: Any, **keywords: Any) -> Any:
        """One stage of the compilation as text: ``source``, ``ir``, ``passes``, ``schedule``, ``loops``, ``python``,
        ``grad`` or ``cost`` (which takes arguments).

        With arguments, the program that serves them; without, the one staged last. ``print`` it, or let a notebook show
        it.
        """
        from tcdsl.runtime.explanation import explain

        function, given = self._with_receiver(arguments)
        call = function.signature.call(given, keywords) if arguments or keywords else None
        with function.without_parameters("explain()"):
            return explain(function, function.staging, stage, call)

    @user_facing
    def cost(self, /, *arguments: Any, **keywords: Any) -> Cost:
        """What a call costs, and its derivatives: operations, points, bytes, and whether the bounds on them hold.

        ``print(f.cost(A, B))`` shows a table. ``np.broadcast_to(0.0, shape)`` stands for an array of any size where its
        values do not matter. See `tcdsl.runtime.cost.Cost`.
        """
        from tcdsl.runtime.cost import cost_of

        function, given = self._with_receiver(arguments)
        with function.without_parameters("cost()"):
            entry, arrays = function.staging.entry(function.signature.call(given, keywords))
        return cost_of(entry.executable.program, arrays, entry.differentiable)

    @user_facing
    def profile(self, /, *arguments: Any, **keywords: Any) -> Profile:
        """Where the time of a call goes: seconds, operations, bytes and their share of what the machine can do, for
        each nest of loops, beside the lines of the function.

        ``print(f.profile(A, B))`` shows a table, and a notebook a picture too. It runs the call some times; arguments
        that the function changes are copied. See `tcdsl.runtime.profiles.profile.Profile`.
        """
        from tcdsl.runtime.profiles.profile import profile_of

        function, given = self._with_receiver(arguments)
        with function.without_parameters("profile()"):
            entry, arrays = function.staging.entry(function.signature.call(given, keywords))
        return profile_of(entry.executable, arrays, function.__name__)

    def _repr_html_(self) -> str:
        from tcdsl.runtime.displays.function_display import function_html

        return function_html(self, self.staging.entries())

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        from tcdsl.runtime.explanation import Explanation

        head = Text(f"{repr(self)[1:-1]}{self.signature.shown}", "bold")
        return Group(head, Explanation(self.written_text()).__rich__())

    def cache_info(self) -> CacheInfo:
        """How many programs were staged and kernels compiled, and how many calls they served."""
        return self.staging.cache_info()

    def cache_clear(self) -> None:
        """Forget all staged programs; compiled modules stay in the cache directory."""
        self.staging.cache_clear()
