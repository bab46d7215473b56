"""The short way of a repeated call: a call that is like an earlier one is known by little, and costs little.

What `StagedFunction.entry` looks up is checked here against a remembered call, by identity where that decides; the
table of the program's launches does the rest (`tcdsl.runtime.calling.launches`). Whatever is otherwise takes the long
way, which says what is wrong, or copies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any

import numpy as np

from tcdsl.config import CURRENT, PROCESS, from_environment
from tcdsl.frontend.staging.program_inputs import CapturedArray, CarriedInteger, DrawnKey
from tcdsl.frontend.surroundings.draws import KEYS
from tcdsl.frontend.surroundings.plain_values import same_plain
from tcdsl.frontend.surroundings.readings import same_configuration
from tcdsl.runtime.calling.argument_code import ArgumentCode, Gathered
from tcdsl.runtime.calling.arguments import Call
from tcdsl.runtime.calling.launches import LaunchedProgram, Launches, Out, Planned, Shapes
from tcdsl.runtime.calling.staleness import Staleness
from tcdsl.runtime.calling.structure import Structure
from tcdsl.targets.protocol.loaded_kernel import NestStopped

__all__ = ["Again", "Ran", "RepeatedCall", "Served"]

_TAKEN = (np.ndarray, float, int, bool, NoneType)

# Of the program's inputs the position of the argument, or the array, or None for a number; the positions of numbers
# among inputs and arguments; which arguments must be the same; what runs.
Ran = tuple[list["int | np.ndarray | None"], list[tuple[int, int]], set["int | str"], Planned]

Again = Callable[[tuple[Any, ...], Mapping[str, Any], Out], tuple[Any] | None]


@dataclass(slots=True)
class Served:
    """A staged program, in this process or kept by an earlier one, as repeated calls see it.

    ``inputs`` says where the inputs of the ``executable`` come from, ``structure`` how its results are nested. It is
    made for arguments that are ``constants``, serves as long as its ``readings`` are as they were, and ``narrowed`` are
    integers that must fit. ``name`` is that of the program.
    """

    name: str
    executable: LaunchedProgram
    structure: Structure
    inputs: tuple[int | CapturedArray | CarriedInteger, ...]
    readings: tuple[Any, ...]
    constants: Mapping[int | str, Any]
    narrowed: tuple[Any, ...] = ()
    hits: int = 0
    guarded: Callable[[Shapes], Any] | None = None

    def serves(self, shapes: Shapes) -> bool:
        """Whether it serves inputs of these shapes, as far as they do not fail."""
        try:
            return self.guarded is None or bool(self.guarded(shapes))
        except ZeroDivisionError:
            return False


class RepeatedCall:
    """What a call must look like to be served by ``entry`` without further questions.

    ``is_usable`` says whether there are such calls. A call's arguments must have the types of ``arguments``.
    """

    def __init__(self, entry: Served, call: Call, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> None:
        self.entry = entry
        self._types = tuple(map(type, arguments))
        self._keywords = tuple(keywords)
        self._configuration = [(name, call.configuration[name]) for name in keywords if name in call.configuration]
        # Where the call has its arguments: also a positional one may be given by keyword.
        self._where = where = {
            each.place: each.place if self._is_given(each.place) or each.label not in keywords else each.label
            for each in call.arguments
        }
        self._constants = [
            (where[place], value) for place, value in entry.constants.items() if self._is_given(where[place])
        ]
        self._staleness = Staleness(entry.readings)
        used = [call.arguments[source] for source in entry.inputs if isinstance(source, int)]
        self._others = [source for source in entry.inputs if not isinstance(source, int)]
        self._defaults = {each.place: each.given for each in call.arguments if not self._is_given(where[each.place])}
        # Of the program's inputs that are arrays, where the call has each one.
        self._places = [None if argument.weak else where[argument.place] for argument in used]
        self._draws = any(isinstance(each, DrawnKey) for each in self._others)
        #: Of the program's inputs, those that are numbers.
        self.number_positions = tuple(k for k, argument in enumerate(used) if argument.weak)
        # Where the call has them, or their defaults, and their types.
        self._numbers = [(where[each.place], each.given) for each in used if each.weak]
        named = {where[each.place]: type(each.given) for each in call.arguments if each.weak}
        # Numbers given by keyword that the program does not have as numbers: those that staging took as sizes.
        places = [place for place, _ in self._numbers]
        self._named = [(name, named[name]) for name in keywords if name in named and name not in places]
        self._build = None if entry.structure.kind == "leaf" else entry.structure.builder()
        # Between which integers arguments must lie.
        self._ends = [
            (where[each.place], int(np.iinfo(each.dtype).min), int(np.iinfo(each.dtype).max))
            for each in entry.narrowed
            if each.place is not None
        ]
        bounded = len(self._ends) == len(entry.narrowed)
        # Smaller ones are int64.
        self._ends += [(where[each.place], 2**63, 2**64 - 1) for each in used if each.weak and each.dtype == "uint64"]
        #: The table that served the last call.
        self.launches: Launches | None = None
        self.is_usable = (
            bounded
            and all(place is None or (isinstance(place, int) and self._is_given(place)) for place in self._places)
            # Arrays by keyword.
            and all(name in named or name in call.configuration for name in keywords)
            # Other objects may be other arrays the next time.
            and all(type(each) in _TAKEN or isinstance(each, np.generic) for each in arguments)
        )
        self._gathered = self._gathering() if self.is_usable else None

    def _is_given(self, place: int | str) -> bool:
        return place in self._keywords if isinstance(place, str) else place < len(self._types)

    def is_like(self, other: RepeatedCall) -> bool:
        """Whether both serve the same calls."""
        same = self.entry is other.entry and self._types == other._types and set(self._keywords) == set(other._keywords)
        return same and [type(each) for _, each in self._numbers] == [type(each) for _, each in other._numbers]

    def run(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any], out: Out = None) -> tuple[Any] | None:
        """The result in a tuple, or ``None``, or `NestStopped`, if the long way has to be taken."""
        inputs, numbers = arguments, ()
        if self._gathered is not None:
            gathered = self._gathered(arguments, keywords)
            if gathered is None:
                return None
            inputs, numbers = gathered
        elif keywords:
            return None
        if not self._staleness.unchanged():
            return None
        current = CURRENT.get() or PROCESS.settings or from_environment()
        launches = self.launches
        if launches is None or launches.settings is not current:
            launches = self.launches = self.entry.executable.launches(current, self.number_positions)
        results = launches.run(inputs, numbers, out, self.entry.serves)
        return None if results is None else self._finished(results)

    def _finished(self, results: Sequence[np.ndarray]) -> tuple[Any]:
        self.entry.hits += 1
        if self._draws:
            KEYS.spend()
        if self._build is not None:
            return (self._build(results),)
        array = results[0]  # behind it may stand whether checks have passed
        return (array if array.ndim else array[()],)

    def again(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Again | None:
        """The result, in a tuple, of a call with arrays and sizes as those of the last two; None of other calls.

        It is made once for calls in a row, of which the last one was with these arguments; there is none where more
        has to be asked.
        """
        launches, gather = self.launches, self._gathered
        gathered = (arguments, ()) if gather is None else gather(arguments, keywords)
        latest = None if launches is None or gathered is None else launches.latest_for(gathered[0])
        # Sizes are those of these arguments; of all arrays the driver has to see the shapes.
        arrays = {k for k, place in enumerate(self._places) if place is not None}
        arrays |= {k for k, each in enumerate(self._others, len(self._places)) if isinstance(each, CapturedArray)}
        if launches is None or latest is None or not latest[2].sees(arrays):
            return None
        (launch, plan, _, strided), settings, check, threads = (
            latest,
            launches.settings,
            launches.check,
            launches.settings.threads,
        )
        if any(isinstance(each, CarriedInteger) for each in self._others):
            gather = self._gathering((arguments, keywords))
        count, staleness, finished, get = len(arguments), self._staleness, self._finished, CURRENT.get
        entry, single, none = self.entry, self._build is None and not self._draws, ()

        def called(arguments: tuple[Any, ...], keywords: Mapping[str, Any], out: Out) -> tuple[Any] | None:
            unchanged = staleness.decisive
            if unchanged is None or (get() or PROCESS.settings or from_environment()) is not settings:
                return None
            try:
                if not unchanged():
                    return None
            except Exception:  # as in `Staleness.unchanged`
                return None
            inputs, numbers = arguments, none
            if gather is not None:
                gathered = gather(arguments, keywords)
                if gathered is None:
                    return None
                inputs, numbers = gathered
            elif keywords or len(arguments) != count:
                return None
            if strided and _some_are_row_major(inputs, strided):
                return None
            try:
                results = launch(plan, inputs, numbers, threads, check, out)
            except NestStopped:
                return None
            if results is None:
                return None
            if single:
                entry.hits += 1
                array = results[0]
                return (array if array.ndim else array[()],)
            return finished(results)

        return called

    def ran(self, arguments: tuple[Any, ...]) -> Ran | None:
        """What a call with these arguments runs, which is made again where that is not known yet.

        None for calls that have to be asked each time, as those that draw random numbers.
        """
        gathered = (arguments, ()) if self._gathered is None else self._gathered(arguments, {})
        if self._draws or gathered is None:
            return None
        inputs = gathered[0]
        planned = None if self.launches is None else self.launches.planned_for(inputs)
        if planned is None and self.run(arguments, {}) is not None and self.launches is not None:
            planned = self.launches.planned_for(inputs)
        if planned is None:
            return None
        more = range(len(self._places), len(self._places) + len(self._others))
        found = [*self._places, *(inputs[k] for k in more)]
        places = [place for place, _ in self._numbers]
        numbers = [(k, place) for k, place in zip(self.number_positions, places, strict=True) if isinstance(place, int)]
        given = [place for place in found if not isinstance(place, str)]
        if len(numbers) < len(places) or len(given) < len(found) or len(places) > len(arguments):
            return None
        same = {each.place for each in self._others if isinstance(each, CarriedInteger)} | set(self.entry.constants)
        return given, numbers, same, planned

    def _gathering(self, fixed: tuple[tuple[Any, ...], Mapping[str, Any]] | None = None) -> Gathered | None:
        # What makes the program's inputs and numbers of a call, in which sizes are ``fixed``; None where the arguments
        # are the inputs.
        code = ArgumentCode(len(self._types), self._keywords)
        for k, kind in enumerate(self._types):
            if kind is not np.ndarray:
                code.require(f"type({code.at(k)}) is {{0}}", kind)
        for place, value in (*self._numbers, *self._named):
            if isinstance(place, str) and self._is_given(place):
                code.require(f"type({code.at(place)}) is {{0}}", value if isinstance(value, type) else type(value))
        for place, least, most in self._ends:
            if self._is_given(place):
                code.require(f"{{0}} <= {code.at(place)} <= {{1}}", least, most)
        for name, value in self._configuration:
            code.require(f"({code.at(name)} is {{0}} or {{1}}({{0}}, {code.at(name)}))", value, same_configuration)
        for place, value in self._constants:
            code.require(f"{{1}}({{0}}, {code.at(place)})", value, same_plain)
        direct = len(self._places) == len(self._types) and not self._others
        direct = direct and all(place is None or place == k for k, place in enumerate(self._places))
        if direct and not any(issubclass(kind, np.generic) for kind in self._types):
            if not self._numbers and not self._keywords and all(kind is np.ndarray for kind in self._types):
                return None
            inputs = None
        else:
            inputs = [self._input(code, place) for place in self._places]
            inputs += [self._other(code, each, fixed) for each in self._others]
        numbers = [code.at(at) if self._is_given(at) else code.name(value) for at, value in self._numbers]
        return code.function(inputs, numbers)

    def _input(self, code: ArgumentCode, place: int | str | None) -> str:
        if place is None:
            return "None"
        is_scalar = isinstance(place, int) and issubclass(self._types[place], np.generic)
        return f"{code.name(np.asarray)}({code.at(place)})" if is_scalar else code.at(place)

    def _other(
        self,
        code: ArgumentCode,
        other: CapturedArray | CarriedInteger,
        fixed: tuple[tuple[Any, ...], Mapping[str, Any]] | None,
    ) -> str:
        # An input that is no argument.
        if isinstance(other, CapturedArray):
            reading = other.reading
            if reading is not None and other.view is None and type(reading.root) is dict and len(reading.names) == 1:
                text = f"{code.name(reading.root)}.get({reading.names[0]!r})"
            else:
                text = f"{code.name(other.current)}()"
            return code.make(text, "type({0}) is {1}", np.ndarray)
        place = self._where[other.place]
        if not self._is_given(place):
            return code.make(code.name(other.array(self._defaults[other.place])), "{0} is not {1}", None)
        if fixed is None:
            return code.make(f"{code.name(other.array)}({code.at(place)})", "{0} is not {1}", None)
        number = fixed[1][place] if isinstance(place, str) else fixed[0][place]
        code.require(f"{code.at(place)} == {{0}}", number)
        return code.name(other.array(number))


def _some_are_row_major(inputs: Sequence[Any], positions: Sequence[int]) -> bool:
    for k in positions:  # noqa: SIM110  # `any` would call a function for each
        if type(inputs[k]) is np.ndarray and inputs[k].flags.c_contiguous:
            return True
    return False
