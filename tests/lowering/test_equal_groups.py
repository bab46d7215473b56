"""Statements that differ in names alone: their loops are made once, and compute what each says."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.autodiff.statement_derivatives import reverse
from tcdsl.ir.build import integer
from tcdsl.ir.expressions import Read
from tcdsl.lowering import equal_groups, pipeline
from tcdsl.lowering.linking.joined_nests import joined
from tcdsl.lowering.loopir import contraction
from tcdsl.lowering.loopir.kinds import EqualNests, FirstNodes, RenamedNodes, kind_of_nest, nodes_alike
from tcdsl.lowering.loopir.loops import Loop, Nest, Store
from tcdsl.lowering.lower import lower
from tcdsl.lowering.program_passes import schedule
from tcdsl.rewrite.statement_kinds import kind_of


@op
def layer(x, *, label, units):
    return tanh("w"[units] @ x + "b"[units])


def loss_of(depth):
    x = tc.tensor(np.linspace(-1, 1, 15).reshape(3, 5), batch=1, label="x")
    for number in range(depth):
        x = layer(units=5, label=f"L{number}")(x)
    return (x * x).mean()


@pytest.fixture
def drafted(monkeypatch):
    """The groups whose loops isl makes."""
    groups = []

    def drafts(group, setting):
        groups.append(group)
        return original(group, setting)

    original = pipeline.drafts_of
    monkeypatch.setattr(pipeline, "drafts_of", drafts)
    return groups


@pytest.mark.parametrize("update", [tc.train.sgd_update, tc.train.adam_update])
def test_further_layers_take_their_loops_from_the_first_ones(drafted, update):
    counts = []
    for depth in (4, 8):
        drafted.clear()
        loss = loss_of(depth)
        kernel = lower((tc.train.grad_update(loss) + update(loss, learning_rate=0.1)).program())
        counts.append(len(drafted))
        equal = EqualNests.of(kernel.nests, {})
        counts.append(len(equal.firsts))
        assert equal.spread(equal.firsts) == list(kernel.nests)
    assert counts[:2] == counts[2:]


@op
def standardized(x):
    centred[n, d] = x[n, d] - mean(x[n, c])
    y[n, d] = centred[n, d] / sqrt(mean(square(centred[n, c])) + 1e-5)
    return y


@op
def normed(x, *, label, units):
    return relu("w"[units] @ standardized(x) + "b"[units])


class Watch:
    """Looks on, so that every nest is made by itself."""

    def begin(self, work):
        pass

    after = after_nest = lambda *given: None


def test_later_passes_go_through_the_first_nests_alone(monkeypatch):
    # Bodies, what is pickled and titles: of each kind one is written out.
    printed = []
    original = equal_groups.titled
    monkeypatch.setattr(equal_groups, "titled", lambda *given: printed.append(given) or original(*given))
    counts = []
    for depth in (6, 9):
        printed.clear()
        x = tc.tensor(np.ones((3, 5)), batch=1, label="x")
        for number in range(depth):
            x = normed(units=5, label=f"L{number}")(x)
        loss = (x * x).mean()
        program = (tc.train.grad_update(loss) + tc.train.adam_update(loss, learning_rate=0.1)).program()
        kernel = lower(program)
        read = pickle.loads(pickle.dumps(kernel))
        counts.append((len(printed), *(len({id(nodes_alike(nest)) for nest in each.nests}) for each in (kernel, read))))
        watched = lower(program, watch=Watch())
        for one, other, apart in zip(kernel.nests, read.nests, watched.nests, strict=True):
            assert kind_of_nest(one) == kind_of(one.body) == kind_of_nest(other)
            assert kind_of(one.body)[0] == kind_of(apart.body)[0]
            assert (one.title, one.schedule, one.work) == (apart.title, apart.schedule, apart.work)
            assert one == other
    # Where a name is that of a variable, a title is printed by itself.
    assert counts[1][0] - counts[0][0] < 3
    assert counts[0][1:] == counts[1][1:] == (counts[0][1],) * 2
    assert counts[0][1] < 12


def _scalar_code(target, source):
    return (Store(target, (), Read(source, (), (), "float64")),)


def test_bodies_are_joined_under_their_own_names():
    one, other = FirstNodes(_scalar_code("a", "b")), FirstNodes(_scalar_code("c", "a"))
    names = [
        (("a", "b"), ("c", "a")),
        (("d", "b"), ("e", "d")),  # the same with other names
        (("d", "b"), ("e", "f")),  # not what the first one has written
        (("d", "c"), ("c", "d")),  # what the first one reads is written
        (("b", "a"), ("c", "b")),
    ]
    for pairs in (names, names[::-1]):
        nests = []
        for mine, its in pairs:
            nests += [Nest("", "", RenamedNodes(first, own), integer(1)) for first, own in ((one, mine), (other, its))]
            nests.append(Nest("", "", (Loop("i", integer(0), integer(4), 1, (), "parallel"),), integer(1)))
        made = joined(nests)
        assert all(kind_of_nest(nest) == kind_of(nest.body) for nest in made)
        assert [nest.body for nest in made[::2]] == [_scalar_code(*mine) + _scalar_code(*its) for mine, its in pairs]


@op
def convolution(x, *, label, channels):
    N, H, W, D = x.shape
    K = param("K", o=(3, 3, D, channels))
    Y: real[N, H, W, channels]
    Y[n, i, j, c] += x[n, i + k - 1, j + l - 1, d] * K[k, l, d, c]
    return relu(Y)


# An index variable gets another name where a tensor has its own.
@pytest.mark.parametrize(("label", "widths"), [("x", (3, 5)), ("n", (9, 10))])
def test_isl_is_asked_about_the_first_of_equal_layers(monkeypatch, label, widths):
    asked = []

    def counted(module, name):
        original = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given: asked.append(name) or original(*given))

    counted(contraction, "sides_of")
    counted(schedule, "covers")
    counts = []
    for depth, channels in zip(
        (3, 6), widths, strict=True
    ):  # other channels: what is known of the first ones does not help
        asked.clear()
        x = tc.tensor(np.ones((2, 6, 6, channels)), batch=1, label=label)
        for number in range(depth):
            x = convolution(channels=channels, label=f"L{number}")(x)
        loss = (x * x).mean()
        lower((tc.train.grad_update(loss) + tc.train.adam_update(loss, learning_rate=0.1)).program())
        counts.append((asked.count("sides_of"), asked.count("covers")))
    assert counts[0] == counts[1]
    assert min(counts[0]) > 0


def test_of_equal_layers_one_passes_its_derivative_on_by_sets(monkeypatch, own_cache):
    asked = []
    original = reverse.places
    monkeypatch.setattr(reverse, "places", lambda *given: asked.append(given) or original(*given))
    counts = []
    for depth in (5, 9):
        asked.clear()
        tc.train.grad_update(loss_of(depth)).program()
        counts.append(len(asked))
    assert counts[0] == counts[1] > 0


def test_steps_of_equal_layers_are_those_of_numpy():
    loss = loss_of(3)
    step = tc.compile(tc.train.grad_update(loss), tc.train.sgd_update(loss, learning_rate=0.5))
    parameters = sorted(tc.train.parameters(loss), key=lambda each: (each.labels[-1], -len(each.sizes)))
    held = [np.array(each.value) for each in parameters]
    step.run()

    def value(cells):
        x = np.linspace(-1, 1, 15).reshape(3, 5)
        for w, b in zip(cells[::2], cells[1::2], strict=True):
            x = np.tanh(x @ w.T + b)
        return (x * x).mean()

    assert [each.sizes for each in parameters] == [(5, 5), (5,)] * 3
    for place, each in enumerate(parameters):
        moved = [cells + (1e-6 * each.grad if number == place else 0) for number, cells in enumerate(held)]
        change = (value(moved) - value(held)) / 1e-6
        np.testing.assert_allclose((each.grad * each.grad).sum(), change, rtol=1e-4)
        np.testing.assert_allclose(each.value, held[place] - 0.5 * each.grad)


def test_sums_in_parts_have_memory_of_their_own(drafted):
    x, y = (tc.tensor(np.linspace(k, 1, 2_000_000), label=f"x{k}") for k in range(2))
    sums = (x * x).sum(), (y * y).sum()
    routine = tc.compile(*sums)
    kernel = lower(routine.code.program())
    assert len([each.name for each in kernel.buffers if each.name.startswith("parts_")]) == 2
    assert len(drafted) == 1
    routine.run()
    for each, found in zip((x, y), sums, strict=True):
        np.testing.assert_allclose(found.value, (each.value**2).sum())


@pytest.mark.parametrize("same", [True, False])
def test_memory_of_another_type_makes_another_kind(drafted, same):
    x, y = tc.tensor(np.linspace(0, 1, 7), label="x"), tc.tensor(np.linspace(0, 1, 7), label="y")
    y = y if same else tc.tensor(np.linspace(0, 1, 7).astype(np.float32), label="y")
    code = tc.compile(x.sum(), y.sum()).code
    lower(code.program())
    assert len(drafted) == (1 if same else 2)


def test_scalars_of_equal_nests_do_not_meet():
    @op
    def soft(x, y):
        a[i] = exp(x[i]) / sum(exp(x[j]))
        b[i] = exp(y[i]) / sum(exp(y[j]))
        return a, b

    x, y = np.linspace(0, 1, 9), np.linspace(2, -1, 9)
    for found, z in zip(soft(x, y), (x, y), strict=True):
        np.testing.assert_allclose(found, np.exp(z) / np.exp(z).sum())
