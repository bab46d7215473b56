"""The table of a function's calls, with two tiers: this process, and the disk. See the room's README.

Asked are, in this order: the call before, remembered calls by the types of their arguments, and the disk by the content
of the function. What none of them serves is staged, and what was staged stands in the table too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tcdsl.config import Settings, settings, tape_memory
from tcdsl.errors import TcdslError
from tcdsl.frontend.surroundings.code_runs import is_traced_by_others
from tcdsl.frontend.surroundings.readings import Reading
from tcdsl.locks import COMPILING
from tcdsl.recent import Recent
from tcdsl.runtime.calling.arguments import Call, Signature
from tcdsl.runtime.calling.launches import Out
from tcdsl.runtime.calling.repeated import Again, RepeatedCall, Served
from tcdsl.runtime.calls.content import Contents, HasContent
from tcdsl.runtime.calls.records import KeptProgram, kept_entry, readable_records, record_of, written_records
from tcdsl.targets.cache.store import entry_name, store
from tcdsl.targets.protocol.loaded_kernel import NestStopped
from tcdsl.targets.registry import target_named
from tcdsl.tracebacks import warnings_given

if TYPE_CHECKING:
    from tcdsl.runtime.calling.entries import Entry

__all__ = ["CallTable", "KeptFunction"]

_NUMBERS = (bool, int, float)
_MOST_PATIENCE = 64
_CALLS = 8  # How many kinds of calls are remembered for the same types of arguments.
# What was read from disk, by where it lies: functions that are made anew again and again, as lambdas, share it.
_REVIVED: Recent[tuple[Path, str], tuple[tuple[Any, KeptProgram], ...]] = Recent(64)
_VARIANTS = 8  # Programs that are kept for the same kind of call: for values that they are made for, and layouts.


class KeptFunction(HasContent, Protocol):
    """A function whose calls may be kept."""

    __name__: str
    signature: Signature


class CallTable:
    """The calls of one function, and what serves them: in this process, and on disk for later ones.

    ::

        table = CallTable(function)
        done = table.run(arguments, keywords)             # the result in a tuple, or None: it has to be staged
        table.remember(entry, call, arguments, keywords)  # after that

    A table without a ``function`` keeps nothing on disk.
    """

    def __init__(self, function: KeptFunction | None = None) -> None:
        self._function = function
        # By the types of the arguments, the last one first.
        self._known: dict[tuple[type, ...], tuple[RepeatedCall, ...]] = {}
        #: The shortest way, for what was called three times in a row with the same shapes: to be asked before `found`.
        self.again: Again | None = None
        # How many calls like the one before are awaited, which are more where it has not served.
        self._patience = self._waiting = 1
        #: What was staged, by what calls are asked for: types, ranks and configuration (`Call.key`).
        self.staged: dict[tuple[Any, ...], list[Entry]] = {}
        #: What earlier processes have kept, and has served calls.
        self.served: list[Served] = []
        #: A call like the last one of those.
        self.latest: Call | None = None
        # By what they are asked for: the name of the entry on disk, and how many warnings there were.
        self._names: dict[tuple[Any, ...], tuple[str | None, int]] = {}
        # The kinds of calls without keywords that were looked for.
        self._kinds: set[tuple[Any, ...]] = set()

    def run(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any], out: Out = None) -> tuple[Any] | None:
        """The result in a tuple, if the call is like an earlier one, here or in an earlier process; else None.

        ``out`` are the buffers that receive the results.
        """
        again = self.again
        return (again and again(arguments, keywords, out)) or self.found(arguments, keywords, out)

    def found(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any], out: Out = None) -> tuple[Any] | None:
        """What `run` gives, where `again` has given nothing."""
        if self.again is not None:
            # Where calls take turns it would be asked in vain.
            self.again = None
            self._waiting = self._patience = min(2 * self._patience, _MOST_PATIENCE)
        types = tuple(map(type, arguments))
        known = self._known.get(types, ())
        for repeated in known:
            try:
                done = repeated.run(arguments, keywords, out)
            except NestStopped:
                continue
            if done is not None:
                times = 0 if repeated.launches is None else repeated.launches.times
                if times:
                    self._waiting -= 1
                    if times == 1 or self._waiting <= 0:
                        self.again = repeated.again(arguments, keywords)
                        self._waiting = _MOST_PATIENCE
                if repeated is not known[0]:
                    self._known[types] = (repeated, *(other for other in known if other is not repeated))
                return done
        return None if self._function is None else self._from_disk(self._function, arguments, keywords, out)

    def remember(self, entry: Entry, call: Call, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
        """Serve calls like this one, which ``entry`` has served, from now on, and in later processes."""
        repeated = RepeatedCall(entry, call, arguments, keywords)
        self._add(repeated, arguments)
        if self._function is not None and repeated.is_usable:
            self._keep(self._function, call, entry, repeated.number_positions)

    def _add(self, repeated: RepeatedCall, arguments: tuple[Any, ...]) -> None:
        types = tuple(map(type, arguments))
        known = self._known.get(types, ())
        if repeated.is_usable and not any(repeated.is_like(other) for other in known):
            self._known[types] = (repeated, *known[:_CALLS])

    def served_by(self, arguments: tuple[Any, ...]) -> RepeatedCall | None:
        """What has served the last call with arguments of these types, without keywords, if it is remembered."""
        known = self._known.get(tuple(map(type, arguments)))
        return known[0] if known else None

    def clear(self) -> None:
        """Forget everything in this process."""
        for each in (self._known, self.staged, self.served, self._names, self._kinds):
            each.clear()
        self.again = self.latest = None

    def _from_disk(
        self, function: KeptFunction, arguments: tuple[Any, ...], keywords: Mapping[str, Any], out: Out
    ) -> tuple[Any] | None:
        # The first call of its kind, if an earlier process has kept what serves it.
        kinds = tuple(
            [
                (each.dtype, each.ndim, each.flags.c_contiguous)
                if type(each) is np.ndarray
                else each
                if type(each) is int
                else type(each)
                for each in arguments
            ]
        )
        if (not keywords and kinds in self._kinds) or _is_traced():
            return None
        current = settings()
        if current.check or current.debug or not all(type(each) in (np.ndarray, *_NUMBERS) for each in arguments):
            return None
        try:
            call = function.signature.call(arguments, keywords)
        except TcdslError:
            return None  # the error is to come from where it always does
        key = _key(call, current)
        if key in self._names:
            return None
        with COMPILING:
            if key in self._names:  # another thread has looked in the meantime
                return self.run(arguments, keywords, out)
            contents = _contents(function, call)
            name = _name(function, call, contents, current)
            done = None
            if name is not None and contents is not None:
                done = self._served(name, call, contents.readings, arguments, keywords, current, out)
            self._names[key] = name, warnings_given()
            self._kinds.add(kinds)
            return done

    def _served(
        self,
        name: str,
        call: Call,
        readings: Sequence[Reading],
        arguments: tuple[Any, ...],
        keywords: Mapping[str, Any],
        current: Settings,
        out: Out,
    ) -> tuple[Any] | None:
        for record, program in _found(name, call, current):
            entry = kept_entry(record, program, readings)
            repeated = RepeatedCall(entry, call, arguments, keywords)
            with suppress(NestStopped):
                done = repeated.run(arguments, keywords, out) if repeated.is_usable else None
                if done is not None:
                    self._add(repeated, arguments)
                    self.served.append(entry)
                    self.latest = _without_arrays(call)
                    return done
        return None

    def _keep(self, function: KeptFunction, call: Call, entry: Entry, numbers: tuple[int, ...]) -> None:
        # For later processes, if that can be done.
        current = settings()
        name, warnings = self._names.get(_key(call, current), (None, 0))
        if name is None or current.check or current.debug or warnings != warnings_given():
            return
        # What staging has changed, staging is needed for.
        contents = _contents(function, call)
        if contents is None or _name(function, call, contents, current) != name:
            self._names[_key(call, current)] = None, 0
            return
        arrays = entry.arrays(call)
        if arrays is None:
            return
        layout = tuple([array.flags.c_contiguous for array in arrays])
        kernel = entry.executable.fitting(layout, current, entry.executable.sizes(arrays).largest)
        record = record_of(entry, contents.readings, numbers, kernel, layout)
        if record is None:
            return
        place = store(Path(current.cache_dir) if current.cache_dir else None)
        others = [each for each in _records(place, name) if not _is_like(each, record)]
        payload = written_records([record, *others[: _VARIANTS - 1]])
        if payload is not None:
            place.write(name, payload)


def _name(function: KeptFunction, call: Call, contents: Contents | None, current: Settings) -> str | None:
    if contents is None:
        return None
    target = target_named(current.target)
    about = (call.key[0], call.positions, current.optimize, target.name, tuple(target.fingerprint()), tape_memory())
    content = (contents.digest(), about, sys.flags.optimize, np.__version__)
    return entry_name(function.__name__, repr(content).encode(), "call")


def _contents(function: KeptFunction, call: Call) -> Contents | None:
    contents = Contents()
    try:
        contents.add(function)
        for name, value in sorted(call.configuration.items()):
            contents.put("configuration", name)
            contents.add(value)
        contents.digest()
    except Exception:  # code of the user's may raise anything; what cannot be told is staged
        return None
    return contents


def _is_traced() -> bool:
    # Coverage counts the lines that are executed, and debuggers stop at them: the function itself is to run.
    if is_traced_by_others():
        return True
    monitoring: Any = getattr(sys, "monitoring", None)  # from Python 3.12 on
    return monitoring is not None and any(map(monitoring.get_tool, (monitoring.DEBUGGER_ID, monitoring.COVERAGE_ID)))


def _key(call: Call, current: Settings) -> tuple[Any, ...]:
    contiguous = tuple([each.array.flags.c_contiguous for each in call.arguments])
    numbers = tuple([each.given for each in call.arguments if each.weak == "int"])
    return call.key, contiguous, numbers, current.optimize, current.target, current.cache_dir


def _is_like(record: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    names = ("constants", "contiguous", "guards", "kernel", "inputs", "values")
    return all(record[name] == other[name] for name in names)


def _records(place: Any, name: str) -> tuple[Any, ...]:
    payload = place.read(name)
    if payload is None:
        return ()
    try:
        return readable_records(payload)
    except (ValueError, EOFError, TypeError) as fault:
        place.reject(name, fault)
        return ()


def _found(name: str, call: Call, current: Settings) -> Iterator[tuple[Any, KeptProgram]]:
    # What serves calls under this name, with its record: in this process first.
    cache_dir = Path(current.cache_dir) if current.cache_dir else None
    revived = getattr(target_named(current.target), "kept", None)
    if revived is None:
        return
    place = store(cache_dir)
    key = place.directory, name
    known = _REVIVED.get(key) or ()
    given = {argument.place: argument.given for argument in call.arguments}

    def fits(record: Any) -> bool:
        constants = record["constants"].items()
        return all(type(given[at]) is type(value) and given[at] == value for at, value in constants)

    yield from [found for found in known if fits(found[0])]
    for record in _records(place, name):
        if fits(record) and not any(record == other for other, _ in known):
            kernel = revived(record["kernel"], cache_dir)
            if kernel is not None:
                program = KeptProgram(record, kernel, current)
                _REVIVED[key] = known = (*known, (record, program))
                yield record, program


def _without_arrays(call: Call) -> Call:
    # The same kind of call, which holds no memory.
    arguments = []
    for each in call.arguments:
        array = np.broadcast_to(np.zeros((), each.array.dtype), each.array.shape)
        arguments.append(each if each.weak else replace(each, array=array, given=array))
    return replace(call, arguments=tuple(arguments))
