"""Sums of products: matrix products, convolutions and their gradients.

One factor is the left one, the product of all others the right one. Both are read, or made of what is read by a few
additions and multiplications. A variable of the target is a *row* if it indexes the left factor alone, a *lane* if it
indexes the right one alone, and *around* if it indexes both; all others are *summed*::

    C[b, i, j] += A[b, i, k] * B[b, k, j]            around b, row i, lane j, summed k
    O[n, c, x, y] += I[n, d, x + r, y + s] * W[c, d, r, s]     rows n, x, y, lane c, summed d, r, s

`tcdsl.lowering.nests.contraction_tiles` makes the loops.

The gradient of a convolution with strides is one in phases (`in_phases`), which are others, with loops around.

Where a convolution leaves out terms outside of the image, its left factor has zeros around
(`tcdsl.lowering.program_passes.prepared_contractions`). Conditions such as ``j <= i`` and ``k < i`` are *limits*: what
is beyond them is not computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache, partial
from types import MappingProxyType

import islpy as isl

from tcdsl.ir.build import apply, in_range, index, integer, product_of, size, truth
from tcdsl.ir.domain import text_of
from tcdsl.ir.expressions import (
    Boundary,
    Constant,
    Expr,
    IndexValue,
    Read,
    SizeValue,
    index_variables,
    reads,
    size_names,
    substitute,
)
from tcdsl.ir.program import Statement, Tensor
from tcdsl.ir.text.declined import Declined
from tcdsl.ir.text.printer import format_expr
from tcdsl.lowering.loopir.boundary_reads import Declarations
from tcdsl.lowering.loopir.factors import (
    TermOfFactors,
    apart_from_products,
    factors_of,
    in_phases,
    product_term,
    term_of,
    terms_of,
)
from tcdsl.lowering.loopir.kinds import EqualStatements, Renaming
from tcdsl.polyhedra.affine import NotAffine, condition_set, universe
from tcdsl.polyhedra.boxes import box_of, ends_of, sides_of
from tcdsl.polyhedra.linear import linear_expression, linear_form, normalized
from tcdsl.polyhedra.spaces import arranged, dimension_names, parameter_names
from tcdsl.recent import Recent
from tcdsl.rewrite.statement_kinds import with_names

__all__ = [
    "Side",
    "SumOfProducts",
    "contraction_of",
    "is_plain",
    "may_hold",
    "points_of",
    "ways_of",
]

# Rows and lanes from which panels pay; where dot products along memory do as well for fewer; and where panels hold what
# is made of several cells.
_FEWEST, _DOTS, _MADE = (4, 1), (24, 16), (6, 1)
# Products of a row from which panels pay where so many rows lie along the target and the left factor: these take as
# long as storing sums across.
_PRODUCTS, _ALONG = 32, 16
# Rows and columns from which products side by side pay.
_SIDE_BY_SIDE = 4, 2
# Lanes from which they pay where such rows read windows, whose terms cells take in vectors. For 1, 2, 3, 4, 6 and 8
# lanes tiles of 3 x 3 windows of 16 and 64 channels take 5, 2.7, 1.9, 1.5, 1 and 0.7 of the time at 28 x 28, more of
# larger images, with AVX-512; float64 about 0.8 of that.
_LANES = 5


@dataclass(frozen=True, slots=True)
class Side:
    """The values ``first .. first + length`` of a variable: a side of the box of all points.

    They may depend on phases, all of which have values in ``least .. least + most``. Positions count from the last one
    ``down`` where that is the way along the left factor.
    """

    variable: str
    first: Expr
    length: Expr
    least: Expr
    most: Expr
    down: bool = False

    def at(self, position: Expr) -> Expr:
        """The value at a position, counted from 0."""
        if self.down:
            position = apply("sub", apply("sub", self.length, integer(1)), position)
        return normalized(apply("add", self.first, position))

    def within(self, values: Mapping[Expr, Expr]) -> Side:
        """The side where variables have the ``values``."""
        first, length = (substitute(expr, dict(values)) for expr in (self.first, self.length))
        return replace(self, first=first, length=length)


@dataclass(frozen=True, slots=True)
class SumOfProducts:
    """A statement as such a sum: its variables, in the order of loops, and its factors.

    There is one ``lane``; ``others`` could be lanes too, or are phases. With ``guards`` the statement leaves points of
    the box out, at which the left factor is 0, and ``dense`` is the condition that these are few. ``statement`` is the
    one that was given, or the same in phases. In a ``full`` one every cell of the target has rows and lanes. A ``term``
    says how terms are made of the factors, and of what is ``own`` to a cell, and sums are multiplied by the ``scale``
    (`tcdsl.lowering.loopir.factors`). Points of the box where one of the ``limits`` is negative have no terms.
    Where rows are few, an ``unpacked`` one reads its right factor where it lies. Where tiles do not pay, cells of
    ``windows`` take all their terms at once. Products of a ``batch`` lie side by side, cell by cell. One with guards
    says why conditions are no limits: ``unlimited``.
    """

    statement: Statement
    around: tuple[Side, ...]
    rows: tuple[Side, ...]
    others: tuple[Side, ...]
    lane: Side
    summed: tuple[Side, ...]
    left: Expr
    right: Expr
    guards: bool
    dense: Expr
    phases: frozenset[str]
    full: bool
    term: Expr
    scale: Expr
    limits: tuple[Expr, ...]
    unpacked: bool = False
    windows: bool = False
    unlimited: Declined | None = None
    batch: Side | None = None

    def __str__(self) -> str:
        rows, terms = (" ".join(span.variable for span in spans) for spans in (self.rows, self.summed))
        where = " and ".join(f"{format_expr(limit)} >= 0" for limit in self.limits)
        tiles = f"tiles of {rows} by {self.lane.variable} over {terms}" + (f" where {where}" if where else "")
        tiles += f", for some {self.batch.variable} at once where there are many" if self.batch is not None else ""
        return f"{tiles}, of few rows without panels" if self.unpacked else tiles

    @property
    def one_by_one(self) -> SumOfProducts:
        """The same, one product of a batch after the other."""
        return replace(self, batch=None)

    def within(self, values: Mapping[Expr, Expr]) -> SumOfProducts:
        """The same inside of the loops around, whose variables have the ``values``."""
        rows, summed = (tuple(side.within(values) for side in sides) for sides in (self.rows, self.summed))
        return replace(self, rows=rows, summed=summed)

    def renamed(self, statement: Statement, names: Renaming) -> SumOfProducts:
        """The same of ``statement``, which has tensors with other ``names``."""
        (form,) = with_names((self.statement,), names)
        left, right, term = with_names((self.left, self.right, self.term), names)
        (apart,) = with_names((self.unlimited,), names)
        return replace(
            self, statement=replace(form, span=statement.span), left=left, right=right, term=term, unlimited=apart
        )

    @property
    def is_product(self) -> bool:
        """Whether terms are products of the factors."""
        return self.term == product_term(self.term.dtype)

    @property
    def own(self) -> tuple[Read, ...]:
        """What all terms of a cell read beside the factors."""
        return tuple(dict.fromkeys(reads(self.term)))

    def term_of(self, left: Expr, right: Expr, own: Sequence[Expr]) -> Expr:
        """The term of two factors and the values of what is `own` to the cell."""
        return term_of(substitute(self.term, dict(zip(self.own, own, strict=True))), left, right)

    @property
    def count_of_rows(self) -> Expr:
        """How many rows there are at most."""
        return product_of(tuple(span.most for span in self.rows))

    @property
    def outer(self) -> tuple[Side, ...]:
        """The variables whose loops are around a matrix product."""
        return (*self.around, *self.others)

    def is_along(self, side: Side) -> bool:
        """Whether a summed variable goes along the right factor's memory, and the lane across."""
        last = _last_variables(self.right)
        return side.variable in last and self.lane.variable not in last

    @property
    def lanes_lie_side_by_side(self) -> bool:
        """Whether the right factor is read, and has the lanes one behind the other in rows of memory."""
        if not isinstance(self.right, Read) or not self.right.indices:
            return False
        lane, (*others, last) = self.lane.variable, self.right.indices
        return linear_form(last)[0].get(index(lane)) == 1 and lane not in frozenset().union(
            *map(index_variables, others)
        )

    @property
    def products_side_by_side(self) -> Side | None:
        """The variable around that goes along memory in the target and in all that is read."""
        if self.guards or self.limits or self.phases or self.own:
            return None
        cells = [self.statement.target.indices, *(read.indices for read in (*reads(self.left), *reads(self.right)))]
        for side in self.around:
            name = side.variable
            if all(_goes_along(indices, name) for indices in cells):
                return side
        return None

    def pays_in_lanes(self, lanes: int) -> Expr:
        """Whether products fill 7/8 of so many lanes, and are large enough for tiles, a condition on sizes.

        With fewer, as 12 of 16, it takes as long to make them one by one, and to transpose what is read and stored.
        """
        assert self.batch is not None
        count = self.batch.length
        registers = apply("floor_div", apply("add", count, integer(lanes - 1)), integer(lanes))
        enough = apply("ge", apply("mul", integer(8), count), apply("mul", integer(7 * lanes), registers))
        return apply("and_", enough, _enough(self.count_of_rows, self.lane.length, _SIDE_BY_SIDE))

    @property
    def pays(self) -> Expr:
        """Whether there are enough rows, lanes and terms for tiles, a condition on sizes."""
        if not isinstance(self.right, Read):
            return apply("and_", self.dense, _enough(self.count_of_rows, self.lane.length, _MADE))
        last = _last_variables(self.left)
        dots = any(self.is_along(side) and side.variable in last for side in self.summed)
        dots = dots and last.isdisjoint(side.variable for side in self.rows)
        enough = _enough(self.count_of_rows, self.lane.length, _DOTS if dots else _FEWEST)
        for side in self.rows:
            if side.variable in last.intersection(*map(index_variables, self.statement.target.indices[-1:])):
                products = normalized(product_of((self.lane.length, *(each.most for each in self.summed))))
                many = apply("ge", products, integer(_PRODUCTS))
                if self.windows and self._reads_windows(side):
                    many = apply("and_", many, apply("ge", self.lane.length, integer(_LANES)))
                enough = apply("and_", enough, apply("or_", apply("lt", side.most, integer(_ALONG)), many))
        return apply("and_", self.dense, enough)

    def _reads_windows(self, row: Side) -> bool:
        # Whether the left factor has cells of several rows among the terms of each, side by side along ``row``.
        if not isinstance(self.left, Read) or linear_form(self.left.indices[-1])[0].get(index(row.variable)) != 1:
            return False
        terms = {each.variable for each in self.summed}
        named = map(index_variables, self.left.indices)
        return any(axis & terms and axis - terms for axis in named)


def contraction_of(
    statement: Statement,
    tensors: Declarations,
    context: isl.Set,
    zeros_around: Mapping[str, Expr] = MappingProxyType({}),
) -> SumOfProducts | Declined:
    """The contraction that ``statement`` of a program with ``tensors`` is, if it is one that may pay, or why not.

    ``zeros_around`` are the tensors that are 0 wherever a statement that reads them has no point, with the condition
    that there are few zeros.
    """
    every = ways_of(statement, tensors, context)
    if isinstance(every, Declined):
        return every
    plain = [each for each in every if is_plain(each.left)]
    if not plain:
        return Declined("what is read beyond the ends of {} is not 0", (every[0].left,))
    ways = [each for each in plain if not each.guards or _tensor(each.left) in zeros_around]
    if not ways:
        return Declined(
            "conditions leave out terms of {} other than by a triangle's or an image's border", (plain[0].left,)
        )
    found = min(ways, key=lambda each: len(each.limits) > 0)
    return replace(found, dense=zeros_around[_tensor(found.left)]) if found.guards else found


def _rank(each: SumOfProducts, statement: Statement) -> tuple[bool, bool]:
    # Lanes that lie side by side in the target are the better ones.
    return len(each.others) > 0, index(each.lane.variable) != statement.target.indices[-1]


def ways_of(statement: Statement, tensors: Declarations, context: isl.Set) -> list[SumOfProducts] | Declined:
    """The contractions that ``statement`` may be made as, the best one first, or why there are none."""
    apart = apart_from_products(statement, tensors)
    if apart is not None:
        return apart
    ways = _WAYS.of(statement, tensors, context)
    return ways if isinstance(ways, Declined) else sorted(ways, key=lambda each: _rank(each, statement))


def _found_ways(statement: Statement, tensors: Declarations, context: isl.Set) -> list[SumOfProducts] | Declined:
    tensor = tensors[statement.target.tensor]
    form, phases = in_phases(statement, factors_of(statement.value), tensors)
    pairs = zip(form.target.indices, tensor.shape, strict=True)
    extents = {axis.name: extent for axis, extent in pairs if isinstance(axis, IndexValue)}
    cells = frozenset().union(*map(index_variables, form.target.indices))
    spaces = cache(partial(_spaces, form, tensors, phases, context))
    ways: list[SumOfProducts] = []
    apart: list[Declined] = []
    for made in terms_of(form.value, cells) or ():
        if ways and ways[0].is_product and made.term != ways[0].term:
            break  # A product is the better one.
        roles = _Roles.of(form, phases.keys(), made.left, made.right)
        if isinstance(roles, Declined):
            apart.insert(0, roles)
            continue
        for each in _ways_of_term(form, made, roles, extents, spaces, frozenset(phases)):
            if isinstance(each, Declined):
                apart.append(each)
            else:
                ways.append(each)
    # The last one to decline was nearest.
    return ways or (apart[-1] if apart else Declined("there is no box around its points"))


def _ways_of_term(
    form: Statement,
    made: TermOfFactors,
    roles: _Roles,
    extents: Mapping[str, Expr],
    spaces: Callable[[], list[_Space]],
    phases: frozenset[str],
) -> Iterator[SumOfProducts | Declined]:
    left, right = made.left, made.right
    if not (is_plain(right) and is_plain(made.term)):
        yield Declined("what is read beyond the ends of {} is not 0", (right,))
        return
    sizes = [extents[name] for name in (*roles.rows, roles.lanes[-1]) if name in extents]
    fewest = _FEWEST if isinstance(right, Read) else _MADE
    if len(sizes) > len(roles.rows) and not may_hold(_enough(product_of(tuple(sizes[:-1])), sizes[-1], fewest)):
        # Before isl is asked.
        yield _too_few(product_of(tuple(sizes[:-1])), sizes[-1])
        return
    unlimited: Declined | None = None
    for each in spaces():
        sides = roles.sides(each.spans, left)
        scale, full, limits = made.scale, each.full, each.limits
        way = SumOfProducts(form, *sides, left, right, each.guards, truth(True), phases, full, made.term, scale, limits)
        # Nothing but a product is 0 where the left factor is.
        if not may_hold(way.pays):
            yield _too_few(way.count_of_rows, way.lane.length)
        elif each.guards and not way.is_product:
            yield Declined("conditions leave out terms, which are no products: {}", (form.value,))
        elif not roles.may_have(each.limits):
            beyond = apply("ge", each.limits[0], integer(0))
            unlimited = Declined("{} is a condition on more than one row and one term", (beyond,))
            yield unlimited
        else:
            yield replace(way, unlimited=unlimited) if unlimited is not None else way


def _too_few(rows: Expr, lanes: Expr) -> Declined:
    return Declined("{} rows by {} columns are too few", (rows, lanes))


@dataclass(frozen=True, slots=True)
class _Space:
    # A box around all points, as far as cells go too if ``full``, and which of its points have terms: all of them, all
    # but those of ``guards``, or those within ``limits``.
    spans: _Spans
    guards: bool
    full: bool
    limits: tuple[Expr, ...]

    @staticmethod
    def of(sides: _Sides, phases: Set[str], guards: bool, full: bool, limits: tuple[Expr, ...]) -> _Space | None:
        spans = _spans(sides, phases)
        return None if spans is None else _Space(spans, guards, full, limits)


def _spaces(form: Statement, tensors: Declarations, phases: Mapping[str, int], context: isl.Set) -> list[_Space]:
    tensor = tensors[form.target.tensor]
    points = points_of(form, context, tensor.shape)
    if points.is_empty():
        return []
    sides = sides_of(form.domain.variables, points, phases.keys())
    box = box_of(form.domain.variables, sides)
    guards = not box.is_subset(points)
    every = _every_cell(form, tensor, phases, context)
    full = every is not None and every.is_subset(box_of(dimension_names(every), sides))
    spaces: list[_Space | None] = []
    if guards and not phases:
        limits = _limits(form, points, box, tensors)
        cells = frozenset().union(*map(index_variables, form.target.indices))
        whole = full and not any(index_variables(each) <= cells for each in limits)
        spaces += [_Space.of(sides, frozenset(), False, whole, limits)] if limits else []
    if guards and every is not None and not full:
        # Where the left factor is 0, it may as well be so in more cells.
        sides |= sides_of(dimension_names(every), every, phases.keys())
        full = True
    spaces.append(_Space.of(sides, phases.keys(), guards, full, ()))
    return [each for each in spaces if each is not None]


def _limits(form: Statement, points: isl.Set, box: isl.Set, tensors: Declarations) -> tuple[Expr, ...]:
    # What is not negative at points of the box where the statement has some; none if that is not known.
    try:
        for read in reads(form.value):
            for axis, extent in zip(read.indices, tensors[read.tensor].shape, strict=True):
                if not box.is_subset(condition_set(in_range(axis, extent), box)):
                    return ()
    except NotAffine:
        return ()
    beyond = points.gist(box).coalesce()
    if beyond.n_basic_set() != 1:
        return ()
    found: list[Expr] = []
    for constraint in beyond.get_basic_sets()[0].get_constraints():
        if constraint.is_equality() or constraint.dim(isl.dim_type.div):
            return ()
        terms: dict[Expr, int] = {}
        for kind, names, make in (
            (isl.dim_type.set, dimension_names(beyond), index),
            (isl.dim_type.param, parameter_names(beyond), size),
        ):
            for k, name in enumerate(names):
                terms[make(name)] = constraint.get_coefficient_val(kind, k).to_python()
        offset = constraint.get_constant_val().to_python()
        found.append(linear_expression({atom: scale for atom, scale in terms.items() if scale}, offset))
    return tuple(found)


def _renamed(
    ways: list[SumOfProducts] | Declined, statement: Statement, tensors: Declarations, names: Renaming
) -> list[SumOfProducts] | Declined:
    if isinstance(ways, Declined):
        return with_names((ways,), names)[0]
    return [each.renamed(statement, names) for each in ways]


_WAYS = EqualStatements(_found_ways, _renamed)


@dataclass(frozen=True, slots=True)
class _Roles:
    # What the variables are for a left and a right factor.
    around: tuple[str, ...]
    rows: tuple[str, ...]
    lanes: tuple[str, ...]
    summed: tuple[str, ...]

    @staticmethod
    def of(form: Statement, phases: Set[str], left: Expr, right: Expr) -> _Roles | Declined:
        variables, mine, its = form.domain.variables, index_variables(left), index_variables(right)
        cells = [name for axis in form.target.indices for name in sorted(index_variables(axis), key=variables.index)]
        rows = [name for name in cells if name in mine and name not in its]
        lanes = [name for name in cells if name in its and name not in mine]
        # Loops over phases are outside.
        lanes.sort(key=lambda name: name not in phases)
        summed = [name for name in variables if name not in cells]
        if not rows or not lanes:
            own, other = (left, right) if not rows else (right, left)
            if index_variables(own).isdisjoint(cells):
                return Declined("{} has no index of the target", (own,))
            return Declined("all indices of the target that {} has, {} has too", (own, other))
        if not summed or not set(variables) <= mine | its:
            return Declined("neither {} nor {} has all that is summed over", (left, right))
        if not phases.isdisjoint(rows) or lanes[-1] in phases:
            return Declined("{} goes in steps along the target", (left,))
        axes = (axis for read in reads(left) for axis in read.indices)
        order = [name for axis in axes for name in sorted(index_variables(axis))]
        # Along rows of the left factor last.
        summed.sort(key=lambda name: order.index(name) if name in order else -1)
        around = tuple(name for name in cells if name in mine and name in its)
        return _Roles(around, tuple(rows), tuple(lanes), tuple(summed))

    def may_have(self, limits: Sequence[Expr]) -> bool:
        """Whether tiles know where limits are: rows are one variable, one that is summed has limits, by rows alone."""
        steps: set[tuple[str, int]] = set()
        for limit in limits:
            scales = linear_form(limit)[0]
            own = [(name, abs(scales[index(name)])) for name in self.summed if index(name) in scales]
            if own and index(self.lanes[-1]) in scales:
                return False
            steps.update(own)
        return not limits or (len(self.rows) == 1 and len(steps) <= 1 and all(step == 1 for _, step in steps))

    def sides(self, spans: _Spans, left: Expr) -> tuple[_Many, _Many, _Many, Side, _Many]:
        """Those around, rows, other lanes, the lane, and those that are summed."""
        around, rows, others = (
            tuple(spans[name] for name in names) for names in (self.around, self.rows, self.lanes[:-1])
        )
        terms = tuple(replace(spans[name], down=_goes_down(left, name)) for name in self.summed)
        return around, rows, others, spans[self.lanes[-1]], terms


def points_of(statement: Statement, context: isl.Set, extents: Sequence[Expr] = ()) -> isl.Set:
    """The points of a statement, in the order of its variables, with what is known of the sizes of its ``extents``."""
    points = arranged(statement.domain.set, statement.domain.variables)
    known = _known(points, context, extents)
    return points if known is None else points.align_params(known.get_space()).intersect_params(known)


def _known(points: isl.Set, context: isl.Set, extents: Sequence[Expr]) -> isl.Set | None:
    # What is known of the sizes that the points and ``extents`` depend on: isl takes longer for every other one.
    names = parameter_names(points)
    used = {name for k, name in enumerate(names) if points.involves_dims(isl.dim_type.param, k, 1)}
    used = used.union(*map(size_names, extents))
    if not used:
        return None
    key = text_of(context), frozenset(used)
    known = _KNOWN.get(key)
    if known is None:
        known = context
        for k in reversed(range(known.dim(isl.dim_type.param))):
            if known.get_dim_name(isl.dim_type.param, k) not in used:
                known = known.project_out(isl.dim_type.param, k, 1)
        _KNOWN[key] = known
    return known


_KNOWN: Recent[tuple[str, frozenset[str]], isl.Set] = Recent(1000)


def _last_variables(factor: Expr) -> frozenset[str]:
    # Those along which cells lie side by side.
    return frozenset[str]().union(*(index_variables(read.indices[-1]) for read in reads(factor) if read.indices))


def _goes_along(indices: Sequence[Expr], name: str) -> bool:
    # Whether a variable counts cells side by side, or none.
    *others, last = indices or (integer(0),)
    alone = all(name not in index_variables(axis) for axis in others)
    return alone and (name not in index_variables(last) or linear_form(last)[0].get(index(name)) == 1)


def _enough(rows: Expr, lane: Expr, fewest: tuple[int, int]) -> Expr:
    return apply("and_", *(apply("ge", each, integer(few)) for each, few in zip((rows, lane), fewest, strict=True)))


def may_hold(condition: Expr) -> bool:
    """Whether a condition on sizes is not known to be false."""
    return not isinstance(condition, Constant) or bool(condition.value)


def _tensor(factor: Expr) -> str:
    return factor.tensor if isinstance(factor, Read) else ""


def _goes_down(factor: Expr, name: str) -> bool:
    scales = [linear_form(axis)[0].get(index(name), 0) for read in reads(factor) for axis in read.indices]
    return any(scale < 0 for scale in scales) and not any(scale > 0 for scale in scales)


def is_plain(factor: Expr) -> bool:
    """Whether nothing is out of range where a factor is read."""
    return all(set(read.boundaries) <= {Boundary.SKIP} for read in reads(factor))


_Spans = Mapping[str, Side]
_Many = tuple[Side, ...]

_Sides = Mapping[str, isl.Set]
"""What holds of each variable, and of phases, whatever the others are."""


def _spans(sides: _Sides, phases: Set[str]) -> _Spans | None:
    spans: dict[str, Side] = {}
    for name, side in sides.items():
        whole, own = ends_of(arranged(side, (name,))), ends_of(arranged(side, (name,), phases - {name}))
        if whole is None or own is None:
            return None
        # Phases are variables here, and not sizes.
        values: dict[Expr, Expr] = {SizeValue(phase): index(phase) for phase in phases}
        first, length = (substitute(end, values) for end in own)
        if not any(phases & index_variables(end) for end in (first, length)):
            first, length = whole
        spans[name] = Side(name, first, length, *whole)
    return spans


def _every_cell(form: Statement, tensor: Tensor, phases: Mapping[str, int], context: isl.Set) -> isl.Set | None:
    """All cells of the target, in terms of the variables that they have; None where isl cannot say it."""
    cells = [name for axis in form.target.indices for name in index_variables(axis)]
    every = universe(cells, sorted(frozenset().union(*map(size_names, tensor.shape))))
    known = _known(form.domain.set, context, tensor.shape)
    if known is not None:
        every = every.align_params(known.get_space()).intersect_params(known)
    try:
        for axis, extent in zip(form.target.indices, tensor.shape, strict=True):
            every = every.intersect(condition_set(in_range(axis, extent), every))
        for name, step in phases.items():
            every = every.intersect(condition_set(in_range(index(name), integer(step)), every))
    except NotAffine:
        return None
    return every
