"""Groups of statements that differ in names alone have nests that differ in names alone: of each kind one is made.

::

    h[n, k] += w[k, d] * x[n, d]        the loops of this one, made by isl and by the passes over nests,
    g[n, k] += v[k, d] * h[n, d]        are those of this one with other names
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tcdsl.ir.expressions import Expr
from tcdsl.ir.nodes import replace
from tcdsl.ir.program import Program
from tcdsl.ir.text.expression_printer import NUMBER_NAMES
from tcdsl.lowering.loopir.kinds import FirstNodes, RenamedNodes
from tcdsl.lowering.loopir.loops import Buffer, Check, EqualNodes, Node
from tcdsl.lowering.loopir.traversal import walk_nodes
from tcdsl.lowering.nests.bodies import NestContext
from tcdsl.lowering.program_passes.merging import Group
from tcdsl.lowering.program_passes.schedule import LoopOrder
from tcdsl.lowering.scheduling.schedules import Draft, titled, work_of
from tcdsl.rewrite.statement_kinds import KindWriter, Named, with_names

__all__ = ["Drafted", "EqualGroups"]

Drafted = tuple[Draft, tuple[Node, ...]]
"""What a nest is for, and its loops after all passes over nests."""
_First = tuple[Draft, tuple[Node, ...], str, Expr]
_Code = tuple[Draft, tuple[Node, ...] | EqualNodes, str, Expr]


@dataclass(slots=True)
class _Made:
    # What was made of a group, which of its plans each nest is for, the names in the group and in its nests, and the
    # memory that these need besides; the titles, the work, and patterns of titles once there is another such group.
    nests: tuple[tuple[Draft, FirstNodes], ...]
    places: tuple[tuple[int, ...], ...]
    names: tuple[Named, ...]
    inside: tuple[Named, ...]
    extra: tuple[Buffer, ...]
    titles: tuple[str, ...]
    work: tuple[Expr, ...]
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

    def made(self, group: Group, make: Callable[[Group], Iterable[Drafted]]) -> Iterator[_First]:
        """What ``make`` gives for ``group``, with titles and the work."""
        for draft, nodes in make(group):
            yield draft, nodes, titled(draft, self._program), work_of(draft, self._setting)

    def nests(self, group: Group, make: Callable[[Group], Iterable[Drafted]]) -> tuple[_Code, ...]:
        """What ``make`` gives for ``group``, or has given for one of its kind, under the names of this one."""
        setting = self._setting
        key, names = self._key(group)
        known = self._known.get(key)
        if known is not None:
            return self._again(known, group, names)
        before = len(setting.extra)
        made = tuple(self.made(group, make))
        # What is told of a check are the user's own names and place.
        if any(isinstance(node, Check) for _, nodes, *_ in made for node in walk_nodes(nodes)):
            return made
        places = tuple(_places(draft, group) for draft, *_ in made)
        nests = tuple((draft, FirstNodes(nodes)) for draft, nodes, *_ in made)
        inside = tuple(dict.fromkeys(named for _, first in nests for named in first.names))
        titles, work = tuple(each[2] for each in made), tuple(each[3] for each in made)
        self._known[key] = _Made(nests, places, names, inside, tuple(setting.extra[before:]), titles, work)
        codes = (first.code() if first.nodes else () for _, first in nests)
        return tuple((draft, code, title, points) for (draft, _, title, points), code in zip(made, codes, strict=True))

    def _key(self, group: Group) -> tuple[object, tuple[Named, ...]]:
        # All that the loops of a group depend on, but for its names.
        setting = self._setting
        rows = group.rows
        writing = KindWriter()
        writing.word(len(group.plans))
        for plan in group.plans:
            _write(plan, writing)
        for level in () if rows is None else rows.levels:
            writing.scalars(level)
        kind, names = writing.written()
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
        parts = zip(known.nests, known.places, known.patterns, known.work, strict=True)
        for (draft, first), places, title, work in parts:
            own = replace(draft, plans=tuple([group.plans[k] for k in places]), nodes=())
            text = titled(own, self._program) if title is None or not printed else title.title(names)
            out.append((own, _renamed(first, others), text, work))
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


def _write(plan: LoopOrder, writing: KindWriter) -> None:
    statement, tensor, fixed, tiles = plan.statement, plan.tensor, plan.fixed, plan.contraction
    writing.statement(statement)
    writing.word(statement.label, tensor.dtype, tensor.shape)
    for each in (plan.cells, plan.outer, plan.inner, plan.extents):
        writing.scalars(each)
    writing.word(plan.plain, plan.scalar, plan.single, plan.full, plan.window, plan.scan)
    writing.parts(tuple(plan.extents.values()))
    writing.word(plan.whole is not None, fixed is not None, tiles is not None)
    if plan.whole is not None:
        _write(plan.whole, writing)
    if fixed is not None:
        writing.scalars(fixed.variables)
        writing.scalars(sorted(fixed.descending))
        writing.word(fixed.parallel)
    if tiles is not None:
        writing.parts((tiles.left, tiles.guards, tiles.dense))
