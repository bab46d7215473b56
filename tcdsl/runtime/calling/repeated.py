"""The short way of a repeated call: a call that is like an earlier one is known by little, and costs little.

What `StagedFunction.entry` looks up is checked here against a remembered call, by identity where that decides. Compiled
code checks the arrays (`LaunchedKernel.launch`): type, shape, layout, alignment, and of those that are written
that they are writable and share no cells. Whatever is otherwise takes the long way, which says what is wrong, or
copies.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tcdsl.config import CURRENT, PROCESS, Settings, from_environment
from tcdsl.errors import TcdslError
from tcdsl.frontend.staging.program_inputs import CapturedArray, CarriedInteger, DrawnKey
from tcdsl.frontend.surroundings.draws import KEYS
from tcdsl.frontend.surroundings.plain_values import same_plain
from tcdsl.frontend.surroundings.readings import same_configuration
from tcdsl.recent import Recent
from tcdsl.runtime.calling.arguments import Call
from tcdsl.runtime.calling.staleness import Staleness
from tcdsl.runtime.calling.structure import Structure
from tcdsl.targets.protocol.loaded_kernel import NestStopped

if TYPE_CHECKING:
    from tcdsl.targets.protocol.loaded_kernel import LaunchedKernel

__all__ = ["Out", "RepeatedCall", "RepeatedCalls", "Served"]

_CALLS = 8  # How many kinds of calls are remembered for the same types of arguments.

_SHAPES = 2048  # How many combinations of shapes are remembered, for each setting.
_SETTINGS = 8
_LAYOUTS = 8
_SHAPE = attrgetter("shape")
_NUMBERS = {"float64": "d", "int64": "q", "bool": "?7x"}
_TAKEN = (np.ndarray, float, int, bool, NoneType)

Shapes = tuple[tuple[int, ...], ...]
Out = tuple[Any, ...] | None
Launches = Recent[Shapes, tuple[tuple["LaunchedKernel", Any], ...]]
_Last = Callable[[tuple[Any, ...]], tuple[Any] | None]


class Served(Protocol):
    """A staged program, in this process or kept by an earlier one, as repeated calls see it.

    `tcdsl.runtime.calling.entries.Entry` says what these are.
    """

    hits: int

    @property
    def constants(self) -> Mapping[int | str, Any]:
        """Arguments that it is made for."""

    @property
    def inputs(self) -> tuple[int | CapturedArray | CarriedInteger, ...]:
        """Where its inputs come from."""

    @property
    def input_types(self) -> tuple[tuple[np.dtype, int], ...]:
        """The element type and the rank of each input."""

    @property
    def updated(self) -> frozenset[int]:
        """The positions of the inputs that it changes."""

    @property
    def readings(self) -> tuple[Any, ...]:
        """What must be as it was."""

    @property
    def narrowed(self) -> tuple[Any, ...]:
        """Integers that must fit."""

    @property
    def structure(self) -> Structure:
        """How its results are nested."""

    def serves(self, shapes: Shapes, /) -> bool:
        """Whether it serves inputs of these shapes, as far as they do not fail."""

    def sizes_of(self, shapes: Shapes, /) -> dict[str, int] | None:
        """The sizes for inputs of these shapes; None, or an error, if there are none."""

    def values_of(self, shapes: Shapes, /) -> tuple[tuple[int, ...], int] | None:
        """The values of all sizes in order and the largest one; None where that is not all that has to be known."""

    def fitting(
        self, contiguous: tuple[bool, ...], current: Settings, sizes: Mapping[str, int], /
    ) -> LaunchedKernel | None:
        """The machine code for inputs of this layout and for sizes as large as these, if there can be any."""

    def check_written(self, inputs: Sequence[np.ndarray], /) -> None:
        """Raise unless written arrays are as they must be."""


class RepeatedCalls:
    """The calls that a function remembers, by the types of their arguments, the last one first; and a shorter way for
    what was called twice in a row with the same shapes.
    """

    __slots__ = ("_known", "_last")

    def __init__(self) -> None:
        self._known: dict[tuple[type, ...], tuple[RepeatedCall, ...]] = {}
        self._last: _Last | None = None

    def run(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any], out: Out = None) -> tuple[Any] | None:
        """The result by the short way, in a tuple; None unless the call is like an earlier one, and on arrays.

        ``out`` are the buffers that receive the results.
        """
        last = self._last
        if last is not None and out is None and not keywords:
            try:
                result = last(arguments)
                if result is not None:
                    return result
            except NestStopped:
                pass
            # Where shapes change from call to call it would be asked in vain.
            self._last = None
        types = tuple(map(type, arguments))
        known = self._known.get(types, ())
        for repeated in known:
            try:
                done = repeated.run(arguments, keywords, out)
            except NestStopped:
                continue
            if done is not None:
                if repeated.times == 1 and out is None:
                    self._last = repeated.again(arguments)
                if repeated is not known[0]:
                    self._known[types] = (repeated, *(other for other in known if other is not repeated))
                return done
        return None

    def remember(self, repeated: RepeatedCall, arguments: tuple[Any, ...]) -> None:
        """Serve calls like this one from now on."""
        types = tuple(map(type, arguments))
        known = self._known.get(types, ())
        if repeated.is_usable and not any(repeated.is_like(other) for other in known):
            self._known[types] = (repeated, *known[:_CALLS])

    def clear(self) -> None:
        """Remember none."""
        self._known.clear()
        self._last = None


class RepeatedCall:
    """What a call must look like to be served by ``entry`` without further questions.

    ``is_usable`` says whether there are such calls. A call's arguments must have the types of ``arguments``.
    """

    def __init__(self, entry: Served, call: Call, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> None:
        self.entry = entry
        self._count = len(arguments)
        self._keywords = frozenset(keywords)
        self._configuration = [(name, call.configuration[name]) for name in keywords if name in call.configuration]
        # Where the call has its arguments: also a positional one may be given by keyword.
        where = {
            each.place: each.place if self._is_given(each.place) or each.label not in keywords else each.label
            for each in call.arguments
        }
        constants = [(where[place], value) for place, value in entry.constants.items()]
        self._constants = [(place, value) for place, value in constants if self._is_given(place)]
        self._staleness = Staleness(entry.readings)
        used = [call.arguments[source] for source in entry.inputs if isinstance(source, int)]
        self._others = [source for source in entry.inputs if not isinstance(source, int)]
        self._defaults = {each.place: each.given for each in call.arguments if not self._is_given(where[each.place])}
        self._where = where
        # Of the program's inputs: the number of those that are arrays, and where the call has each one.
        self._places = [None if argument.weak else where[argument.place] for argument in used]
        self._arrays = [k for k, place in enumerate(self._places) if place is not None]
        self._arrays += range(len(used), len(entry.inputs))
        self._draws = any(isinstance(each, DrawnKey) for each in self._others)
        self._scalars = any(isinstance(argument, np.generic) for argument in arguments)
        self._direct = not self._others and not self._scalars and all(self._places[k] == k for k in self._arrays)
        self._bare = self._direct and len(self._arrays) == len(arguments)
        # Those that are numbers: where the call has them, or what their defaults are.
        numbers = [argument for argument in used if argument.weak]
        #: Of the program's inputs, those that are numbers.
        self.number_positions = tuple(k for k, argument in enumerate(used) if argument.weak)
        places = [where[argument.place] for argument in numbers]
        self._numbers = [
            (place, None) if self._is_given(place) else (None, argument.given)
            for place, argument in zip(places, numbers, strict=True)
        ]
        self._number_types = tuple(type(argument.given) for argument in numbers)
        self._pack = struct.Struct("".join(_NUMBERS[argument.dtype] for argument in numbers)).pack_into
        self._by_settings: dict[Settings, Launches] = {}
        self._launches: tuple[Settings | None, Launches] = (None, Recent(1))
        #: With which kernel calls of new shapes were planned last, for the settings of these launches.
        self._planning: tuple[Launches | None, LaunchedKernel | None] = (None, None)
        #: How often the last call was like the one before, and its plan.
        self._plan: tuple[LaunchedKernel, Any] | None = None
        self.times = 0
        self._types = [dtype for dtype, _ in entry.input_types]
        self._ranks = tuple(entry.input_types[k][1] for k in self._arrays)
        self._updated = entry.updated
        self._seen = frozenset(k for k in self._arrays if not isinstance(entry.inputs[k], CarriedInteger))
        self._structure = entry.structure
        named = {where[each.place]: type(each.given) for each in call.arguments if each.weak}
        # Numbers given by keyword that the program does not have as numbers: those that staging took as sizes.
        self._named = [(name, named[name]) for name in keywords if name in named and name not in places]
        self._has_constants = bool(self._configuration or self._constants or self._named)
        self.is_usable = (
            not entry.narrowed
            and all(place is None or (isinstance(place, int) and self._is_given(place)) for place in self._places)
            # Arrays by keyword.
            and all(name in named or name in call.configuration for name in keywords)
            # Other objects may be other arrays the next time.
            and all(type(each) in _TAKEN or isinstance(each, np.generic) for each in arguments)
        )

    def _is_given(self, place: int | str) -> bool:
        return place in self._keywords if isinstance(place, str) else place < self._count

    def is_like(self, other: RepeatedCall) -> bool:
        """Whether both serve the same calls."""
        same = self.entry is other.entry and self._keywords == other._keywords and self._count == other._count
        return same and self._number_types == other._number_types

    def run(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any], out: Out = None) -> tuple[Any] | None:
        """The result in a tuple, or ``None``, or `NestStopped`, if the long way has to be taken."""
        if keywords.keys() != self._keywords or not self._staleness.unchanged():
            return None
        if self._has_constants and not self._same_constants(arguments, keywords):
            return None
        numbers: tuple[Any, ...] = ()
        if self._numbers:
            numbers = tuple(
                [
                    keywords[place] if isinstance(place, str) else default if place is None else arguments[place]
                    for place, default in self._numbers
                ]
            )
            if tuple(map(type, numbers)) != self._number_types:
                return None
        inputs = arguments
        if self._bare:
            shapes = tuple(map(_SHAPE, arguments))
        else:
            gathered = arguments if self._direct else self._gathered(arguments, keywords)
            if gathered is None:
                return None
            inputs = gathered
            shapes = tuple([inputs[k].shape for k in self._arrays])
        current = CURRENT.get() or PROCESS.settings or from_environment()
        whose, launches = self._launches
        if whose is not current:
            launches = self._launches_for(current)
        known = launches.young.get(shapes) or launches.get(shapes) or ()
        for kernel, plan in known:
            results = kernel.launch(plan, inputs, numbers, self._pack, current.threads, self._check, out)
            if results is not None:
                self.times = self.times + 1 if self._plan is not None and plan is self._plan[1] else 0
                self._plan = kernel, plan
                break
        else:
            launched = self._launched if known else self._launched_anew
            results = launched(launches, shapes, inputs, numbers, current, out)
            if results is None:
                return None
        self.entry.hits += 1
        if self._draws:
            KEYS.spend()
        structure = self._structure
        if structure.kind == "leaf":
            array = results[0]  # behind it may stand whether checks have passed
            return (array if array.ndim else array[()],)
        if structure.kind == "constant":
            return (structure.value,)
        return (structure.build([array if array.ndim else array[()] for array in results]),)

    def again(self, arguments: tuple[Any, ...]) -> _Last | None:
        """The result, in a tuple, of a call with arrays and sizes as those of the last two; None of other calls.

        It is made once for calls in a row, of which the last one was with ``arguments``; there is none where more has
        to be asked.
        """
        fixed = self._sizes_given() if self._others else []
        if self._plan is None or fixed is None or self._draws or self._has_constants or self._keywords or self._scalars:
            return None
        kernel, plan = self._plan
        settings, _ = self._launches
        places = None if self._direct else self._places
        behind = () if places is None else (self._gathered(arguments, {}) or ())[len(places) :]
        known = {*self.number_positions, *range(len(self._places), len(self._types))}
        launch = kernel.repeating(plan, known, self._pack, settings.threads or None if settings is not None else None)
        sizes = [(place, arguments[place]) for place in fixed] if fixed else []
        types = tuple(map(type, arguments))
        entry, staleness, given, get = self.entry, self._staleness, self._numbers, CURRENT.get
        count = len(arguments) if places is None else len(self._types)
        build = None if self._structure.kind == "leaf" else self._structure.builder()

        def called(inputs: tuple[Any, ...], numbers: tuple[Any, ...] = ()) -> tuple[Any] | None:
            unchanged = staleness.decisive
            if unchanged is None or (get() or PROCESS.settings or from_environment()) is not settings:
                return None
            try:
                same = unchanged()
            except Exception:  # as in `Staleness.unchanged`
                return None
            results = launch(inputs, numbers) if same and len(inputs) == count else None  # type: ignore[misc]
            if results is None:
                return None
            entry.hits += 1
            if build is not None:
                return (build(results),)
            array = results[0]
            return (array if array.ndim else array[()],)

        def gathered(arguments: tuple[Any, ...]) -> tuple[Any] | None:
            if tuple(map(type, arguments)) != types or any([arguments[at] != value for at, value in sizes]):  # noqa: C419
                return None
            numbers = tuple([default if at is None else arguments[at] for at, default in given])  # type: ignore[index]
            if places is None:
                return called(arguments, numbers)
            return called((*[None if at is None else arguments[at] for at in places], *behind), numbers)  # type: ignore[index]

        return None if launch is None else called if self._bare else gathered

    def _sizes_given(self) -> list[int] | None:
        # Where the call has the integers that are sizes, if nothing else stands beside its arrays and numbers.
        found: list[int] = []
        for other in self._others:
            if not isinstance(other, CarriedInteger) or not isinstance(other.place, int):
                return None
            place = self._where[other.place]
            if other.place in self._defaults or not isinstance(place, int):
                return None
            found.append(place)
        return found

    def _same_constants(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> bool:
        for name, value in self._configuration:
            other = keywords[name]
            if other is not value and not same_configuration(value, other):
                return False
        for place, value in self._constants:
            other = keywords[place] if isinstance(place, str) else arguments[place]
            if not same_plain(value, other):
                return False
        return all(type(keywords[name]) is kind for name, kind in self._named)

    def _gathered(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> tuple[Any, ...] | None:
        # The program's inputs, without those that are numbers.
        inputs: list[Any] = [None if place is None else arguments[place] for place in self._places]  # type: ignore[index]
        if self._scalars:
            inputs = [np.asarray(each) if isinstance(each, np.generic) else each for each in inputs]
        for other in self._others:
            if isinstance(other, CapturedArray):
                array = other.current()
            elif other.place in self._defaults:
                array = other.array(self._defaults[other.place])
            else:
                place = self._where[other.place]
                array = other.array(keywords[place] if isinstance(place, str) else arguments[place])
            if type(array) is not np.ndarray:
                return None
            inputs.append(array)
        return tuple(inputs)

    def _launches_for(self, current: Settings) -> Launches:
        if len(self._by_settings) > _SETTINGS:
            self._by_settings = {}
        launches = self._by_settings.setdefault(current, Recent(_SHAPES))
        self._launches = current, launches
        return launches

    def _check(self, inputs: tuple[Any, ...]) -> None:
        count = len(self._types)
        self.entry.check_written([inputs[k] if k in self._arrays else np.empty(()) for k in range(count)])

    def _launched_anew(
        self,
        launches: Launches,
        shapes: Shapes,
        inputs: tuple[Any, ...],
        numbers: tuple[Any, ...],
        current: Settings,
        out: Out,
    ) -> Sequence[np.ndarray] | None:
        # The first call with these shapes. Most often all else is as in the last call; what is not, the driver sees.
        whose, kernel = self._planning
        if tuple(map(len, shapes)) != self._ranks:
            return None
        if whose is launches and kernel is not None:
            found = self.entry.values_of(shapes if self._bare else self._every(shapes))
            if found is not None and found[1] <= kernel.limit:
                plan = kernel.planned(found[0], self.number_positions)
                results = kernel.launch(plan, inputs, numbers, self._pack, current.threads, self._check, out)
                if results is not None:
                    launches[shapes] = ((kernel, plan),)
                    return results
        return self._launched(launches, shapes, inputs, numbers, current, out)

    def _every(self, shapes: Shapes) -> Shapes:
        # Those of all inputs; the others are numbers.
        every: list[tuple[int, ...]] = [()] * len(self._types)
        for k, shape in zip(self._arrays, shapes, strict=True):
            every[k] = shape
        return tuple(every)

    def _launched(
        self,
        launches: Launches,
        shapes: Shapes,
        inputs: tuple[Any, ...],
        numbers: tuple[Any, ...],
        current: Settings,
        out: Out,
    ) -> Sequence[np.ndarray] | None:
        # The first call with these shapes, or with such a layout.
        if current.debug or "nan" in current.check or tuple(map(len, shapes)) != self._ranks:
            return None
        every = self._every(shapes)
        contiguous = [True] * len(self._types)
        for k in self._arrays:
            array = inputs[k]
            if array.dtype != self._types[k]:
                return None
            contiguous[k] = array.flags.c_contiguous
        try:
            if not self.entry.serves(every):
                return None
            sizes = self.entry.sizes_of(every)
        except TcdslError:
            return None
        kernel = None if sizes is None else self.entry.fitting(tuple(contiguous), current, sizes)
        if sizes is None or kernel is None:
            return None
        plan = kernel.plan(sizes, self.number_positions)
        known = launches.get(shapes) or ()
        if (kernel, plan) in known or not kernel.changes(self._updated, self._seen):
            return None
        results = kernel.launch(plan, inputs, numbers, self._pack, current.threads, self._check, out)
        if results is not None:
            launches[shapes] = ((kernel, plan), *known[:_LAYOUTS])
            self._planning = launches, kernel
        return results
