"""Running machine code on arrays that are as planned: all that calls like earlier ones need, and nothing of the loops.

A `Launcher` knows a kernel by its `KernelFacts` alone. `tcdsl.targets.cpu.compiled.CompiledKernel` is one that has the
kernel too, and runs on any arrays; `KeptKernel` is made of what an earlier process has kept.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.ir.sizes.size_functions import SizeFunction
from tcdsl.targets.cache.store import store
from tcdsl.targets.cpu.call.drivers import Drivers
from tcdsl.targets.cpu.call.launch_plans import Frame, LaunchPlan, Planner, of_this_process
from tcdsl.targets.cpu.call.native_records import native_calls, record_words
from tcdsl.targets.cpu.layout.call_block import BIND_ONLY, KNOWN_APART, NOT_AS_PLANNED, OVERLAPPING
from tcdsl.targets.cpu.machine.machine_code import CompiledModule, kept_module
from tcdsl.targets.protocol.loaded_kernel import Launch, NestStopped

__all__ = ["KeptKernel", "KernelFacts", "Launcher", "Place", "PreparedCall", "kept_kernel"]

Array = np.ndarray[Any, np.dtype[Any]]

_FRAMES = 4  # Frames that wait for calls.


# Where an array is: ``("given", position)``, ``("made", number)`` or ``("temporary", number, slot, rank, dtype)``, the
# shape of which is in the plan's words at the slot.
Place = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What launching knows of a kernel.

    ``given``: the positions of the inputs that it reads, and whether it changes them; ``made``: the types of the arrays
    that it makes. ``slots`` and ``lives`` are those of its temporaries. ``words`` are those of its layout, ``frame``
    those of its frames, ``rows`` the rows of its table; it has loops of ``rounds`` or none. ``results`` says where the
    results lie after the nests, and ``updates`` which inputs then receive what lies where. ``plain``: the arrays made
    are the results, in order, and no input receives any. ``sound``: its nests check nothing, so that they end once they
    have begun.
    """

    title: str
    sizes: tuple[str, ...]
    inputs: int
    given: tuple[tuple[int, bool], ...]
    made: tuple[str, ...]
    slots: tuple[int, ...]
    lives: tuple[tuple[int, int], ...]
    words: int
    frame: int
    rows: int
    rounds: bool
    limit: int
    results: tuple[Place, ...]
    updates: tuple[tuple[int, Place], ...]
    plain: bool
    sound: bool
    readable: bool


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """Where a call runs, and its arrays: those given, and those made for it."""

    plan: LaunchPlan
    frame: Frame
    inputs: tuple[Array, ...]
    made: tuple[Array, ...]


@cache
def drivers_in(cache_dir: Path | None) -> Drivers:
    """The drivers that are kept there."""
    return Drivers(cache_dir)


class Launcher:
    """Machine code that runs: ``launcher.launch(launcher.planned((3, 4, 5)), (A, B), (), threads, check)``.

    ``module`` has the nests' machine code, some of which is made when a plan needs it; ``places`` are their places
    (`tcdsl.targets.cpu.layout.kernel_code`). May be called from several threads.
    """

    def __init__(
        self,
        facts: KernelFacts,
        places: Sequence[Sequence[int]],
        module: CompiledModule,
        cache_dir: Path | None,
    ) -> None:
        self.facts = facts
        #: The largest absolute value of a size that it is made for.
        self.limit = facts.limit
        self._module = module
        self._drivers = drivers_in(cache_dir)
        self._cache_dir = cache_dir
        self._places = [np.array(each, np.int64) for each in places]
        self._count = facts.rows
        self._made_types = tuple(map(numpy_dtype, facts.made))
        self._slots = np.array(facts.slots, np.int64)
        self._sizes_of = _picker(facts.sizes)
        self._plan_codes: dict[tuple[int, ...], tuple[SizeFunction, int]] = {}
        self._planners: dict[tuple[int, ...], Planner] = {}
        self._last_plan: tuple[tuple[int, ...], LaunchPlan] | None = None
        self._free: deque[Frame] = deque()
        self.launch = self._launching()

    def __reduce__(self) -> Any:
        raise TypeError(f"machine code cannot be pickled or copied: {self.facts.title}")

    def written_plan(self, numbers: tuple[int, ...]) -> tuple[SizeFunction, int]:
        """The function that plans, for inputs at the positions ``numbers`` that are numbers, and where its table is."""
        raise NotImplementedError

    def plan(self, sizes: Mapping[str, int]) -> LaunchPlan:
        """The plan for the value of every size, where all inputs are given as arrays; the last one is remembered."""
        values = self._sizes_of(sizes)
        known = self._last_plan
        if known is None or known[0] != values:
            known = self._last_plan = values, self.planned(values)
        return known[1]

    def planned(
        self, values: Sequence[int], numbers: tuple[int, ...] = (), pack: Callable[..., None] = struct.pack_into
    ) -> LaunchPlan:
        """The plan for the values of all sizes in order: see `LaunchedKernel.planned`."""
        while True:
            plan = LaunchPlan(self._planner(numbers, pack), values, self._drivers.planned)
            absent = set() if self._module.complete else plan.absent(len(self._places))
            if not absent:
                return plan
            self._module.need(absent)
            self._planners = {}

    def _plan_code(self, numbers: tuple[int, ...]) -> tuple[SizeFunction, int]:
        if numbers not in self._plan_codes:
            self._plan_codes[numbers] = self.written_plan(numbers)
        return self._plan_codes[numbers]

    def _planner(self, numbers: tuple[int, ...], pack: Callable[..., None]) -> Planner:
        planner = self._planners.get(numbers)
        if planner is None:
            planners, facts = self._planners, self.facts
            written, table = self._plan_code(numbers)
            where = [int(each.__array_interface__["data"][0]) for each in self._places]
            process = of_this_process(self._module.addresses, where, self._drivers.interrupted)
            planner = planners[numbers] = Planner(written.bound(process), facts.words, table, facts.lives, pack)
        return planner

    def _frame(self, plan: LaunchPlan) -> Frame:
        # One that no other call uses, set up for ``plan``.
        try:
            frame = self._free.pop()
        except IndexError:
            frame = Frame(self.facts.frame, self._slots)
        if frame.plan is not plan:
            frame.take(plan)
        return frame

    def _release(self, frame: Frame) -> None:
        if len(self._free) < _FRAMES:
            frame.leave()
            self._free.append(frame)

    def changes(self, changed: Set[int], arrays: Set[int]) -> bool:
        """Whether the driver sees to it that calls may change the inputs at the positions ``changed``, and no others.

        It knows nothing of ``arrays`` that the kernel does not read.
        """
        given = self.facts.given
        written = {position for position, changes in given if changes}
        return written == changed and (not changed or arrays <= {position for position, _ in given})

    def sees(self, positions: Set[int]) -> bool:
        """Whether the driver looks at the inputs at all these positions."""
        return positions <= {place for place, _ in self.facts.given}

    def native_record(
        self,
        plan: LaunchPlan,
        numbers: Sequence[tuple[int, int]],
        given: Sequence[int | np.ndarray | None],
        results: Sequence[int],
        key: Sequence[int],
    ) -> np.ndarray | None:
        """The record of calls without Python, by ``plan``; None where they are made on threads, or copy results.

        ``numbers`` are inputs and the words of the operands that hold them, ``given`` says of each input the word where
        its array stands, or is the array; see `tcdsl.targets.cpu.call.native_records.record_words`.
        """
        facts, drivers = self.facts, self._drivers
        made = [place[1] for place in facts.results if place[0] == "made"]
        if plan.parallel or facts.updates or len(set(made)) < len(facts.results):
            return None
        first, of_rounds = drivers.addresses
        look = native_calls(self._cache_dir).addresses["go_on"]
        return record_words(
            plan,
            words=(facts.words, facts.frame),
            rows=self._count,
            functions=(first, of_rounds if facts.rounds else 0, look),
            slots=facts.slots,
            numbers=[(facts.words + k, word) for k, (_, word) in enumerate(numbers)],
            given=[0 if (found := given[place]) is None else found for place, _ in facts.given],
            results=dict(zip(made, results, strict=False)),
            itemsizes=[each.itemsize for each in self._made_types],
            key=key,
        )

    def _launching(self) -> Launch:
        # What runs on arrays that may be otherwise than planned (`LaunchedKernel.launch`), in one function for speed.
        facts, free, run, count, types = self.facts, self._free, self._drivers.run, self._count, self._made_types
        one, dtype = len(types) == 1, types[0] if types else None
        driven, plain, numbers_at = facts.rounds, facts.plain, 8 * facts.words
        # Whether nests write straight into ``out``, and the driver sees all arrays that could share its memory.
        receives = len(types) if facts.plain and facts.sound and facts.inputs == len(facts.given) else 0

        def launch(
            plan: LaunchPlan,
            inputs: tuple[Array, ...],
            numbers: tuple[bool | int | float, ...],
            threads: int,
            check: Callable[[tuple[Array, ...]], None],
            out: tuple[Any, ...] | None = None,
        ) -> Sequence[Array] | None:
            if out is None:
                made = (plan.make(plan.made[0], dtype),) if one else tuple(map(plan.make, plan.made, types))
            elif len(out) == receives > 0:
                made = out
            else:
                return None
            try:
                frame = free.pop()
            except IndexError:
                frame = self._frame(plan)
            if frame.plan is not plan:
                frame.take(plan)
            if numbers:
                try:
                    plan.pack(frame.words, numbers_at, *numbers)
                except struct.error:  # an integer of more than 64 bits
                    return None
            done = run(plan.address, frame.address, inputs, made, 0)
            if done < 0:
                if done == OVERLAPPING and out is None:
                    check(inputs)
                    done = run(plan.address, frame.address, inputs, made, KNOWN_APART)
                if done < 0:
                    self._release(frame)
                    return None
            if driven or plan.parallel:
                self._execute(PreparedCall(plan, frame, inputs, made), threads or None)
            elif done != count:
                raise self._stopped(PreparedCall(plan, frame, inputs, made), 1, done)
            if plain and plan.pooled:
                free.append(frame)
                return made
            return self._finished(PreparedCall(plan, frame, inputs, made))

        return launch

    def _finished(self, call: PreparedCall, outputs: Sequence[Array] | None = None) -> list[Array]:
        # What follows the nests.
        results, copies = self._results(call, outputs)
        for destination, source in copies:
            np.copyto(destination, source)
        self._release(call.frame)
        return results

    def _results(
        self, call: PreparedCall, outputs: Sequence[Array] | None
    ) -> tuple[list[Array], list[tuple[Array, Array]]]:
        """The results, and the copies to make, in order, after the nests: into results, then into updated inputs.

        Outputs that are inputs, temporaries or each other get memory of their own.
        """
        if self.facts.plain and outputs is None:
            return list(call.made), []
        results: list[Array] = []
        copies: list[tuple[Array, Array]] = []
        for k, place in enumerate(self.facts.results):
            array = _array_at(place, call)
            fresh = place[0] == "made" and not any(array is other for other in results)
            own = array if fresh else np.empty(array.shape, array.dtype)
            results.append(own if outputs is None else outputs[k])
            if results[k] is not array:
                copies.append((results[k], array))
        targets: list[tuple[Array, Array]] = []
        for position, place in self.facts.updates:
            array = _array_at(place, call)
            if place[0] == "given":
                # An input that changes itself: what is wanted is what it holds before.
                copies.append((np.empty(array.shape, array.dtype), array))
                array = copies[-1][0]
            targets.append((call.inputs[position], array))
        return results, [*copies, *targets]

    def _limit(self, plan: LaunchPlan, threads: int | None) -> int:
        # The number of threads of a call.
        if not plan.parallel:
            return 1
        return min(threads or self._drivers.available, self._drivers.available)

    def _entered(self, call: PreparedCall, mode: int = 0) -> int:
        # Enter the arrays; 0 if they are as planned.
        counts = len(call.inputs), len(call.made)
        if not self.facts.readable or counts != (self.facts.inputs, len(self.facts.made)):
            return NOT_AS_PLANNED
        return self._drivers.run(call.plan.address, call.frame.address, call.inputs, call.made, mode | BIND_ONLY)

    def _execute(self, call: PreparedCall, threads: int | None) -> None:
        limit = self._limit(call.plan, threads)
        run, arguments = self._driven(call, limit)
        done = run(*arguments)
        if done != self._count:
            raise self._stopped(call, limit, done)

    def _driven(self, call: PreparedCall, threads: int, *times: int) -> tuple[Callable[..., int], tuple[Any, ...]]:
        # The driver for so many threads, and what it is called with; one that notes the nests' ``times`` at an address.
        arguments = call.plan.table_address, self._count, call.frame.address
        if self.facts.rounds or times:
            call.frame.pace = self._drivers.pace(threads, call.frame.pace)
            run = self._drivers.execute_timed if times else self._drivers.execute_rounds
            return run, (*arguments, call.frame.pace, *times)
        if threads < 2:
            return self._drivers.execute, arguments
        return self._drivers.execute_parallel, (*arguments, threads)

    def _stopped(self, call: PreparedCall, threads: int, done: int) -> BaseException:
        # Why the nest after the first ``done`` ones stopped.
        return NestStopped()


def _array_at(place: Place, call: PreparedCall) -> Array:
    match place:
        case "given", position:
            return call.inputs[position]
        case "made", number:
            return call.made[number]
    _, number, slot, rank, dtype = place
    return call.frame.temporary(call.plan, call.plan.shape(slot, rank), dtype, number)


class KeptKernel(Launcher):
    """A kernel that an earlier process has kept, for calls like its own alone."""

    def __init__(self, kept: KeptValues, facts: KernelFacts, module: CompiledModule, cache_dir: Path | None) -> None:
        _, _, places, self._numbers, code, constants, self._table = kept
        super().__init__(facts, places, module, cache_dir)
        self._written = SizeFunction(code, constants)

    def written_plan(self, numbers: tuple[int, ...]) -> tuple[SizeFunction, int]:
        """The function that was kept."""
        if numbers != self._numbers:
            raise NestStopped
        return self._written, self._table


# The facts in order, the symbol and the places of each nest, the positions of numbers, the function that plans (its
# code and its constants), where its table begins.
KeptValues = tuple[tuple[Any, ...], tuple[str, ...], tuple[Any, ...], tuple[int, ...], Any, tuple[Any, ...], int]


def kept_kernel(kept: KeptValues, cache_dir: Path | None) -> KeptKernel | None:
    """The kernel of ``kept``; None if its machine code is not on disk."""
    facts, symbols, *_ = kept
    module = kept_module(store(cache_dir), symbols)
    return None if module is None else KeptKernel(kept, KernelFacts(*facts), module, cache_dir)


def _picker(names: Sequence[str]) -> Callable[[Mapping[str, int]], tuple[int, ...]]:
    # The values of the sizes in order: itemgetter gives one value bare and needs at least one name.
    if len(names) > 1:
        return itemgetter(*names)
    return lambda sizes: tuple([sizes[name] for name in names])
