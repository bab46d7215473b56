"""First calls that are served from disk: see the room's README.

::

    kept = KeptCalls(function)
    done = kept.run(arguments, keywords)     # the result in a tuple, or None: the function has to be staged
    kept.keep(call, entry, repeated)         # after that
"""

from __future__ import annotations

import hashlib
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
from tcdsl.installation import sources_digest
from tcdsl.locks import COMPILING
from tcdsl.runtime.calling.arguments import Call, Signature
from tcdsl.runtime.calling.repeated import Out, RepeatedCall, RepeatedCalls
from tcdsl.runtime.kept.content import Contents, HasContent
from tcdsl.runtime.kept.records import KeptEntry, readable_records, record_of, written_records
from tcdsl.targets.cache.store import store
from tcdsl.targets.protocol.loaded_kernel import LaunchedKernel, NestStopped
from tcdsl.targets.registry import target_named
from tcdsl.tracebacks import warnings_given

if TYPE_CHECKING:
    from tcdsl.runtime.calling.entries import Entry

__all__ = ["KeptCalls", "KeptFunction"]

_NUMBERS = (bool, int, float)
_VARIANTS = 8  # Programs that are kept for the same kind of call: for values that they are made for, and layouts.


class KeptFunction(HasContent, Protocol):
    """A function whose calls may be kept."""

    __name__: str
    repeated: RepeatedCalls
    signature: Signature


class KeptCalls:
    """The calls of one function that later processes serve without staging."""

    def __init__(self, function: KeptFunction) -> None:
        self._function = function
        # By what they are asked for: the name of the entry on disk, and how many warnings there were.
        self._names: dict[tuple[Any, ...], tuple[str | None, int]] = {}
        # The kinds of calls without keywords that were looked for.
        self._kinds: set[tuple[Any, ...]] = set()
        #: What has served calls.
        self.served: list[KeptEntry] = []
        #: A call like the last one that was served.
        self.latest: Call | None = None

    def run(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any], out: Out = None) -> tuple[Any] | None:
        """The result of a call of a new kind, if an earlier process has kept what serves it; ``out`` receives it."""
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
            call = self._function.signature.call(arguments, keywords)
        except TcdslError:
            return None  # the error is to come from where it always does
        key = _key(call, current)
        if key in self._names:
            return None
        with COMPILING:
            if key in self._names:  # another thread has looked in the meantime
                return self._function.repeated.run(arguments, keywords, out)
            contents = self._contents(call)
            name = self._name(call, contents, current)
            done = None
            if name is not None and contents is not None:
                done = self._served(name, call, contents.readings, arguments, keywords, current, out)
            self._names[key] = name, warnings_given()
            self._kinds.add(kinds)
            return done

    def _name(self, call: Call, contents: Contents | None, current: Settings) -> str | None:
        if contents is None:
            return None
        target = target_named(current.target)
        about = (call.key[0], call.positions, current.optimize, target.name, tuple(target.fingerprint()), tape_memory())
        versions = (sys.version, sys.flags.optimize, np.__version__, sources_digest())
        digest = hashlib.sha256(repr((contents.digest(), about, versions)).encode()).hexdigest()
        safe = "".join(c if c.isascii() and c.isalnum() else "_" for c in self._function.__name__)[:40]
        return f"{safe}_{digest[:32]}.call"

    def _contents(self, call: Call) -> Contents | None:
        contents = Contents()
        try:
            contents.add(self._function)
            for name, value in sorted(call.configuration.items()):
                contents.put("configuration", name)
                contents.add(value)
            contents.digest()
        except Exception:  # code of the user's may raise anything; what cannot be told is staged
            return None
        return contents

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
        for record, kernel in _found(name, call, current):
            entry = KeptEntry(record, kernel, readings, current)
            repeated = RepeatedCall(entry, call, arguments, keywords)
            with suppress(NestStopped):
                done = repeated.run(arguments, keywords, out) if repeated.is_usable else None
                if done is not None:
                    self._function.repeated.remember(repeated, arguments)
                    self.served.append(entry)
                    self.latest = _without_arrays(call)
                    return done
        return None

    def keep(self, call: Call, entry: Entry, arguments: Sequence[Any], repeated: RepeatedCall) -> None:
        """Keep what has served ``call`` for later processes, if that can be done."""
        current = settings()
        name, warnings = self._names.get(_key(call, current), (None, 0))
        if name is None or not repeated.is_usable or current.check or current.debug or warnings != warnings_given():
            return
        # What staging has changed, staging is needed for.
        contents = self._contents(call)
        if contents is None or self._name(call, contents, current) != name:
            self._names[_key(call, current)] = None, 0
            return
        arrays = entry.arrays(call)
        if arrays is None:
            return
        layout = tuple([array.flags.c_contiguous for array in arrays])
        kernel = entry.executable.fitting(layout, current, entry.executable.sizes(arrays))
        record = record_of(entry, contents.readings, repeated.number_positions, kernel, layout)
        if record is None:
            return
        place = store(Path(current.cache_dir) if current.cache_dir else None)
        others = [each for each in _records(place, name) if not _is_like(each, record)]
        payload = written_records([record, *others[: _VARIANTS - 1]])
        if payload is not None:
            place.write(name, payload)

    def clear(self) -> None:
        """Forget what has served calls."""
        self.served.clear()
        self._names.clear()
        self._kinds.clear()
        self.latest = None


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


def _found(name: str, call: Call, current: Settings) -> Iterator[tuple[Any, LaunchedKernel]]:
    cache_dir = Path(current.cache_dir) if current.cache_dir else None
    revived = getattr(target_named(current.target), "kept", None)
    if revived is None:
        return
    given = {argument.place: argument.given for argument in call.arguments}
    for record in _records(store(cache_dir), name):
        constants = record["constants"].items()
        if all(type(given[place]) is type(value) and given[place] == value for place, value in constants):
            kernel = revived(record["kernel"], cache_dir)
            if kernel is not None:
                yield record, kernel


def _without_arrays(call: Call) -> Call:
    # The same kind of call, which holds no memory.
    arguments = []
    for each in call.arguments:
        array = np.broadcast_to(np.zeros((), each.array.dtype), each.array.shape)
        arguments.append(each if each.weak else replace(each, array=array, given=array))
    return replace(call, arguments=tuple(arguments))
