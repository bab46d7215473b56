"""`f.profile(*arguments)`: what each nest of a call takes, beside the user's lines and the machine's limits.

Nests are what a program runs one after the other; a nest makes one statement or several
(`f.explain("schedule", *arguments)` shows them by name).
"""

from __future__ import annotations

import linecache
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcdsl.runtime.calling.execution import Executable
from tcdsl.runtime.displays.pictures import Point, roofline
from tcdsl.runtime.displays.tables import Table, Tabular
from tcdsl.runtime.profiles.limits import MachineLimits, machine_limits
from tcdsl.runtime.profiles.measuring import measured
from tcdsl.runtime.profiles.wasted_sums import wasted_sums
from tcdsl.span import Span
from tcdsl.tracebacks import NamesTold

__all__ = ["NestProfile", "Profile", "profile_of"]

_SHOWN = 40
_LONGEST = 60
_COLUMNS = ("line", "statement", "nest", "runs", "time", "share", "operations", "bytes", "Gop/s", "GB/s", "of limit")


@dataclass(frozen=True, slots=True)
class NestProfile(NamesTold):
    """What a nest takes in a call: ``seconds``, ``operations`` and ``bytes`` in all of its ``runs``.

    ``spans`` are the places of its statements in the user's source. ``limit`` is the least time that the machine could
    take for its operations and bytes, and ``bound`` says which of them it is: ``"operations"`` or ``"bytes"``.
    """

    name: str
    title: str
    spans: tuple[Span, ...]
    seconds: float
    runs: int
    operations: float
    bytes: float
    limit: float
    bound: str

    @property
    def share_of_limit(self) -> float:
        """How much of what the machine can do it gets: 1 is all."""
        return self.limit / self.seconds if self.seconds else 0.0

    @property
    def lines(self) -> tuple[Span, ...]:
        """One place for each of the user's lines."""
        places = {(span.filename, span.line): span for span in reversed(self.spans)}
        return tuple(places[key] for key in sorted(places))


@dataclass(frozen=True, slots=True, repr=False)
class Profile(Tabular, NamesTold):
    """Where the time of a call of ``name`` goes; print it, or let a notebook show it with a picture.

    ``seconds`` is a whole call, without what Python does around it; ``nests`` are in the order in which they run,
    without those that have nothing to do at these sizes. ``machine`` is what the machine can do. ``warnings`` say which
    statements cost more than their results need, and what to write instead.
    """

    name: str
    seconds: float
    nests: tuple[NestProfile, ...]
    machine: MachineLimits
    warnings: tuple[str, ...] = ()

    def table(self) -> Table:
        """A row for each nest."""
        nests = self.nests
        if len(nests) > _SHOWN:
            least = sorted((each.seconds for each in nests), reverse=True)[_SHOWN - 1]
            nests = tuple(each for each in nests if each.seconds >= least)[:_SHOWN]
        files = {span.filename for each in nests for span in each.spans}
        rows = [self._row(each, len(files) > 1) for each in nests]
        notes = [f"machine: {self._limits()}"]
        if left := len(self.nests) - len(nests):
            rest = sum(each.seconds for each in self.nests) - sum(each.seconds for each in nests)
            notes.insert(0, f"and {left} more nests: {_time(rest)}")
        where = f", {os.path.basename(next(iter(files)))}" if len(files) == 1 else ""
        title = f"profile of {self.name}: {_time(self.seconds)} a call{where}"
        return Table(title, _COLUMNS, rows, (*notes, *self.warnings), frozenset((1, 2)))

    def _row(self, nest: NestProfile, several: bool) -> tuple[str, ...]:
        lines = nest.lines
        files = (f"{os.path.basename(each.filename)}:" if several else "" for each in lines)
        places = "\n".join(f"{file}{each.line}" for file, each in zip(files, lines, strict=True))
        share = nest.seconds / self.seconds if self.seconds else 0.0
        limit = f"{nest.share_of_limit:.0%} {nest.bound}" if nest.limit else ""
        return (
            places,
            "\n".join(_source(each) for each in lines) or _short(nest.title.split("  for ")[0].split("\n")[0]),
            nest.name,
            f"{nest.runs:,}",
            _time(nest.seconds),
            f"{share:.0%}",
            _count(nest.operations),
            _count(nest.bytes),
            _rate(nest.operations, nest.seconds),
            _rate(nest.bytes, nest.seconds),
            limit,
        )

    def _limits(self) -> str:
        peaks = ", ".join(f"{rate / 1e9:.0f} Gop/s in float{8 * size}" for size, rate in self.machine.operations)
        return f"{peaks}; {', '.join(f'{rate / 1e9:.0f} GB/s {name}' for name, rate in self._bandwidths())}"

    def _bandwidths(self) -> list[tuple[str, float]]:
        found = [(f"up to {_count(size)} bytes", rate) for size, rate in self.machine.bytes[:-1]]
        return [*found, ("beyond", self.machine.bytes[-1][1])]

    def picture(self) -> str:
        """The roofline as SVG: nests under what the machine can do; empty if none has operations on numbers."""
        points = []
        for each in self.nests:
            if each.operations and each.bytes and each.seconds:
                label = ", ".join(str(span.line) for span in each.lines[:3]) or each.name
                told = f"{each.name}: {_time(each.seconds)}, {each.share_of_limit:.0%} of the limit"
                share = min(1.0, each.seconds / self.seconds)
                points.append(Point(label, told, each.operations / each.bytes, each.operations / each.seconds, share))
        if not points:
            return ""
        return roofline(points, max(rate for _, rate in self.machine.operations), self._bandwidths())

    def _repr_html_(self) -> str:
        return f"{self.table()._repr_html_()}{self.picture()}"


def profile_of(executable: Executable, arrays: Sequence[np.ndarray], name: str) -> Profile:
    """The profile of calls of ``executable`` with these arrays, which do not change."""
    seconds, found = measured(executable, arrays)
    limits = machine_limits()
    nests = []
    for each in found:
        work = each.work
        if each.runs and (work.points or each.seconds > seconds / 1000):
            compute = work.operations / limits.peak(work.cell_bytes) >= work.bytes / limits.bandwidth(work.bytes)
            nests.append(
                NestProfile(
                    each.nest.name,
                    each.nest.title,
                    each.nest.spans,
                    each.seconds,
                    each.runs,
                    work.operations * each.runs,
                    work.bytes * each.runs,
                    each.least,
                    "operations" if compute else "bytes",
                )
            )
    sizes = executable.sizes(arrays)
    points = [(each.nest.spans, max(each.work.points, each.work.operations) * each.runs) for each in found]
    return Profile(name, seconds, tuple(nests), limits, tuple(wasted_sums(executable.program, sizes, points)))


def _source(span: Span) -> str:
    return _short(linecache.getline(span.filename, span.line).strip()) or span.text


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]} ..."


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def _count(number: float) -> str:
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.3g}"


def _rate(number: float, seconds: float) -> str:
    return f"{number / seconds / 1e9:.2f}" if seconds and number else ""
