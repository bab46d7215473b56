"""Groups of statements that differ in names alone have nests that differ in names alone: of each kind one is made.

::

    h[n, k] += w[k, d] * x[n, d]        the loops of this one, made by isl and by the passes over nests,
    g[n, k] += v[k, d] * h[n, d]        are those of this one with other names
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tcdsl.ir.expressions import IndexValue
from tcdsl.ir.nodes import replace
from tcdsl.ir.program import Program
from tcdsl.ir.text.expression_printer import NUMBER_NAMES
from tcdsl.lowering.loopir.kinds import FirstNodes, Named, RenamedNodes, kind_of, with_names
from tcdsl.lowering.loopir.loops import Buffer, Check, EqualNodes, Node
from tcdsl.lowering.loopir.traversal import walk_nodes
from tcdsl.lowering.nests.bodies import NestContext
from tcdsl.lowering.program_passes.merging import Group
from tcdsl.lowering.program_passes.schedule import LoopOrder
from tcdsl.lowering.scheduling.schedules import Draft, titled

__all__ = ["Drafted", "EqualGroups"]

Drafted = tuple[Draft, tuple[Node, ...]]
"""What a nest is for, and its loops after all passes over nests."""
_Code = tuple[Draft, tuple[Node, ...] | EqualNodes, str]


@dataclass(slots=True)
class _Made:
    # What was made of a group, which of its plans each nest is for, the names in the group and in its nests, and the
    # memory that these need besides; the titles, and their patterns once there is another such group.
    nests: tuple[tuple[Draft, FirstNodes], ...]
    places: tuple[tuple[int, ...], ...]
    names: tuple[Named, ...]
    inside: tuple[Named, ...]
    extra: tuple[Buffer, ...]
    titles: tuple[str, ...]
    patterns: tuple[_TitlePattern | None, ...] = ()


@dataclass(frozen=True, slots=True)
class _TitlePattern:
    # What stands between the names of tensors in a title, and the places of these names among those of a group.
    pieces: tuple[str, ...]
    places: tuple[int, ...]

    @staticmethod
    def of(draft: Draft, names: tuple[Named, ...], program: Program, title: str) -> _TitlePattern | None:
        # Titles are printed once with marks for the names. There is none where a name decides how it is printed.
        tensors = {named: f"\ue000{place}\ue000" for place, named in enumerate(names) if named[0] == "buffer"}
        plans = [
            replace(plan, statement=each) for plan in draft.plans for each in with_names((plan.statement,), tensors)
        ]
        declared = {name: program.tensor(name) for what, name in names if what == "buffer"}
        marked = tuple(replace(each, name=tensors["buffer", name]) for name, each in declared.items())
        text = titled(replace(draft, plans=tuple(plans)), replace(program, tensors=marked, inputs=()))
        pieces, *marks = text.split("\ue000")[::2], *text.split("\ue000")[1::2]
        if not all(map(str.isdecimal, marks)):
            return None
        found = _TitlePattern(tuple(pieces), tuple(map(int, marks)))
        return found if found.title(names) == title else None

    def title(self, names: tuple[Named, ...]) -> str:
        between = [names[place][1] for place in self.places]
        return "".join([part for pair in zip(self.pieces, (*between, ""), strict=True) for part in pair])


class EqualGroups:
    """The nests of the groups of one program."""

    def __init__(self, setting: NestContext, program: Program) -> None:
        self._setting = setting
        self._program = program
        # A tensor of rank 0 that is called as a number is printed as a tensor.
        self._numbers = {*NUMBER_NAMES, *(size.name for size in program.sizes)}
        self._known: dict[object, _Made] = {}

    def nests(self, group: Group, make: Callable[[Group], Iterable[Drafted]]) -> tuple[_Code, ...]:
        """What ``make`` gives for ``group``, or has given for one of its kind, under the names of this one."""
        setting = self._setting
        key, names = self._key(group)
        known = self._known.get(key)
        if known is not None:
            return self._again(known, group, names)
        before = len(setting.extra)
        made = tuple((*each, titled(each[0], self._program)) for each in make(group))
        # What is told of a check are the user's own names and place.
        if any(isinstance(node, Check) for _, nodes, _ in made for node in walk_nodes(nodes)):
            return made
        places = tuple(_places(draft, group) for draft, _, _ in made)
        nests = tuple((draft, FirstNodes(nodes)) for draft, nodes, _ in made)
        inside = tuple(dict.fromkeys(named for _, first in nests for named in first.names))
        titles = tuple(title for _, _, title in made)
        self._known[key] = _Made(nests, places, names, inside, tuple(setting.extra[before:]), titles)
        codes = (first.code() if first.nodes else () for _, first in nests)
        return tuple((draft, code, title) for (draft, _, title), code in zip(made, codes, strict=True))

    def _key(self, group: Group) -> tuple[object, tuple[Named, ...]]:
        # All that the loops of a group depend on, but for its names.
        setting = self._setting
        rows = group.rows
        levels = () if rows is None else tuple(map(_variables, rows.levels))
        kind, names = kind_of((*map(_parts, group.plans), levels))
        tensors = [name for what, name in names if what == "buffer"]
        numbers: dict[str, int] = {}
        memory = tuple(
            (
                setting.tensors[name].dtype,
                setting.tensors[name].shape,
                numbers.setdefault(setting.buffers[name], len(numbers)),
                setting.types[setting.buffers[name]],
                name in setting.in_place,
                name in setting.thin,
                setting.marks.get(name),
                None if rows is None else rows.own.get(setting.buffers[name]),
            )
            for name in tensors
        )
        parts = group.swept if rows is None else rows.groups
        depths = group.depth, tuple((each.depth, len(each.plans)) for each in parts), len(group.tiled)
        return (
            depths,
            None if rows is None else rows.row,
            kind,
            tuple(name for what, name in names if what == "size"),
            memory,
        ), names

    def _again(self, known: _Made, group: Group, names: tuple[Named, ...]) -> tuple[_Code, ...]:
        setting, fresh = self._setting, self._setting.names
        others: dict[Named, str] = {}
        for (what, old), (_, new) in zip(known.names, names, strict=True):
            if what == "buffer":
                others[what, setting.buffers[old]] = setting.buffers[new]
            else:
                others[what, old] = new
        for each in known.extra:
            others["buffer", each.name] = fresh.fresh(each.name)
            tensors = tuple(others.get(("buffer", name), name) for name in each.tensors)
            setting.extra.append(replace(each, name=others["buffer", each.name], tensors=tensors))
        for what, name in known.inside:
            if (what, name) not in others and what != "size":
                others[what, name] = fresh.fresh(name)
        out: list[_Code] = []
        printed = self._are_printed_alike(known.names, names)
        if not known.patterns:
            pairs = zip(known.nests, known.titles, strict=True)
            known.patterns = tuple(
                _TitlePattern.of(draft, known.names, self._program, title) for (draft, _), title in pairs
            )
        for (draft, first), places, title in zip(known.nests, known.places, known.patterns, strict=True):
            own = replace(draft, plans=tuple([group.plans[k] for k in places]), nodes=())
            text = titled(own, self._program) if title is None or not printed else title.title(names)
            out.append((own, _renamed(first, others), text))
        return tuple(out)

    def _are_printed_alike(self, before: tuple[Named, ...], names: tuple[Named, ...]) -> bool:
        scalars = {name for what, name in names if what == "scalar"}
        return all(
            name not in self._numbers and name not in scalars if what == "buffer" else name == old
            for (_, old), (what, name) in zip(before, names, strict=True)
        )


def _renamed(first: FirstNodes, names: dict[Named, str]) -> tuple[Node, ...] | EqualNodes:
    return RenamedNodes(first, tuple([names.get(named, named[1]) for named in first.names])) if first.nodes else ()


def _places(draft: Draft, group: Group) -> tuple[int, ...]:
    found = tuple(k for k, plan in enumerate(group.plans) if any(plan is own for own in draft.plans))
    return found or tuple(range(len(group.plans)))


def _parts(plan: LoopOrder) -> tuple[Any, ...]:
    # A plan, its variables as such.
    fixed, tiles = plan.fixed, plan.contraction
    order = () if fixed is None else (_variables(fixed.variables), _variables(sorted(fixed.descending)), fixed.parallel)
    return (
        plan.statement,
        (plan.tensor.dtype, plan.tensor.shape),
        *map(_variables, (plan.cells, plan.outer, plan.inner)),
        (plan.plain, plan.scalar, plan.single, plan.full, plan.window, plan.scan),
        tuple((IndexValue(name), extent) for name, extent in plan.extents.items()),
        () if plan.whole is None else _parts(plan.whole),
        order,
        () if tiles is None else (tiles.left, tiles.guards, tiles.dense),
    )


def _variables(names: Iterable[str]) -> tuple[IndexValue, ...]:
    return tuple(map(IndexValue, names))
