"""Groups of statements that differ in names alone have nests that differ in names alone: of each kind one is made.

::

    h[n, k] += w[k, d] * x[n, d]        the loops of this one, made by isl and by the passes over nests,
    g[n, k] += v[k, d] * h[n, d]        are those of this one with other names
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from tcdsl.ir.expressions import IndexValue
from tcdsl.lowering.loopir.kinds import Named, kind_of, with_names
from tcdsl.lowering.loopir.loops import Buffer, Check, Node
from tcdsl.lowering.loopir.traversal import walk_nodes
from tcdsl.lowering.nests.bodies import NestContext
from tcdsl.lowering.program_passes.merging import Group
from tcdsl.lowering.program_passes.schedule import LoopOrder
from tcdsl.lowering.scheduling.schedules import Draft

__all__ = ["Drafted", "EqualGroups"]

Drafted = tuple[Draft, tuple[Node, ...]]
"""What a nest is for, and its loops after all passes over nests."""


@dataclass(frozen=True, slots=True)
class _Made:
    # What was made of a group, which of its plans each nest is for, the names in the group and in its nests, and the
    # memory that these need besides.
    nests: tuple[Drafted, ...]
    places: tuple[tuple[int, ...], ...]
    names: tuple[Named, ...]
    inside: tuple[Named, ...]
    extra: tuple[Buffer, ...]


class EqualGroups:
    """The nests of the groups of one program."""

    def __init__(self, setting: NestContext) -> None:
        self._setting = setting
        self._known: dict[object, _Made] = {}

    def nests(self, group: Group, make: Callable[[Group], Iterable[Drafted]]) -> tuple[Drafted, ...]:
        """What ``make`` gives for ``group``, or has given for one of its kind, under the names of this one."""
        setting = self._setting
        key, names = self._key(group)
        known = self._known.get(key)
        if known is not None:
            return self._again(known, group, names)
        before = len(setting.extra)
        made = tuple(make(group))
        # What is told of a check are the user's own names and place.
        if not any(isinstance(node, Check) for _, nodes in made for node in walk_nodes(nodes)):
            places = tuple(_places(draft, group) for draft, _ in made)
            self._known[key] = _Made(
                made, places, names, kind_of(nodes for _, nodes in made)[1], tuple(setting.extra[before:])
            )
        return made

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

    def _again(self, known: _Made, group: Group, names: tuple[Named, ...]) -> tuple[Drafted, ...]:
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
        return tuple(
            (replace(draft, plans=tuple(group.plans[k] for k in places), nodes=()), with_names(nodes, others))
            for (draft, nodes), places in zip(known.nests, known.places, strict=True)
        )


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
