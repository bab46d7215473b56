"""How many threads rounds of loops go on: the choice is told what time stretches take."""

from __future__ import annotations

import pytest

from tcdsl.targets.cpu.call import pace
from tcdsl.targets.cpu.call.pace import Pace


class Clock:
    """A clock that stands still but when it is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(pace, "perf_counter", found)
    return found


def chosen(choice: Pace, clock: Clock, rates: dict[int, float], stretches: int) -> list[int]:
    found = []
    for _ in range(stretches):
        threads, work = choice.next_stretch()
        clock.now += 1e-6 * work * rates[threads]
        choice.done(work)
        found.append(threads)
    return found


def test_the_faster_one_goes_on(clock: Clock) -> None:
    for slow, tried, best in ((0.3, [1, 4, 4], 4), (2.0, [1, 4, 4], 1), (50.0, [1, 4], 1)):
        choice = Pace(4, 1000)
        found = chosen(choice, clock, {1: 1.0, 4: slow}, len(tried) + 8)
        assert found == tried + [best] * 8
        # The other one is tried ever more seldom.
        later = chosen(choice, clock, {1: 1.0, 4: slow}, 300)
        assert later.count(best) >= 286
        assert later[-60:].count(best) >= 58


def test_the_other_one_has_another_try_now_and_then(clock: Clock) -> None:
    choice = Pace(4, 1000)
    assert chosen(choice, clock, {1: 1.0, 4: 9.0}, 30)[2:].count(4) <= 2
    # The machine has become idle.
    found = chosen(choice, clock, {1: 1.0, 4: 0.3}, 60)
    assert found.count(1) < 40
    assert found[-20:].count(4) >= 18


def test_after_a_change_the_other_one_is_soon_tried_again(clock: Clock) -> None:
    choice = Pace(4, 1000)
    assert chosen(choice, clock, {1: 1.0, 4: 0.5}, 190)[-5:] == [4] * 5
    # Another program keeps the cores busy for a while. What one thread took, when they were idle, it takes again.
    assert chosen(choice, clock, {1: 1.0, 4: 2.0}, 5)[-1] == 1
    assert chosen(choice, clock, {1: 1.0, 4: 0.5}, 12)[-2:] == [4] * 2


def test_one_thread_has_no_trials(clock: Clock) -> None:
    choice = Pace(1, 1000)
    assert [choice.next_stretch() for _ in range(3)] == [(1, 1000)] * 3
    choice.done(1000)


@pytest.mark.parametrize("threads", [1, 4])
def test_stretches_are_as_short_as_interrupts_need(clock: Clock, threads: int) -> None:
    choice, rate, before = Pace(threads, 1 << 22, first=1 << 10), 1e-3, 0.0
    for stretch in range(40):
        work = choice.next_stretch()[1]
        clock.now += rate * work
        # The first one finds out; later ones adapt where rounds become slower or faster.
        assert clock.now - before < (2.0 if stretch in (0, 20) else 0.1)
        before = clock.now
        choice.done(work)
        rate = 1e-3 if stretch < 19 else 1e-2
    for _ in range(60):
        choice.done(choice.next_stretch()[1])
    assert choice.next_stretch()[1] >= (1 << 22) // 8


def test_a_trial_in_which_the_loop_ends_is_made_by_the_next_one(clock: Clock) -> None:
    choice = Pace(4, 1000)
    for _ in range(3):
        assert choice.next_stretch() == (1, 125)
        clock.now += 1.0
    assert chosen(choice, clock, {1: 1.0, 4: 0.5}, 4) == [1, 4, 4, 4]
    # What is known stays.
    assert choice.next_stretch() == choice.next_stretch() == (4, 1000)


def test_rounds_longer_than_a_stretch_are_counted_whole(clock: Clock) -> None:
    choice = Pace(4, 1000)
    found = []
    for slow in [2.0] * 8 + [0.3] * 60:
        threads, _ = choice.next_stretch()
        clock.now += 5000 * (1.0 if threads == 1 else slow)
        choice.done(5000)
        found.append(threads)
    assert found[:8] == [1, 4, 4, 1, 1, 1, 1, 1]
    assert found[-20:].count(4) >= 18


def test_trials_take_a_small_part_of_the_time(clock: Clock) -> None:
    choice, taken = Pace(4, 1000), {1: 0.0, 4: 0.0}
    for _ in range(1000):
        threads, work = choice.next_stretch()
        # Threads wait for a time slice, however little there is to do.
        seconds = 1.0 if threads == 1 else 150.0
        clock.now += seconds
        taken[threads] += seconds
        choice.done(work)
    assert taken[4] <= 150.0 + taken[1] / 8


def test_one_stretch_that_is_held_up_decides_nothing(clock: Clock) -> None:
    choice = Pace(4, 1000)
    assert chosen(choice, clock, {1: 1.0, 4: 0.5}, 2) == [1, 4]
    assert chosen(choice, clock, {4: 2.0}, 1) == [4]
    assert chosen(choice, clock, {4: 0.5}, 2) == [4, 4]
    assert chosen(choice, clock, {4: 1.2}, 1) == [4]
    assert chosen(choice, clock, {4: 0.5}, 4) == [4] * 4
    # Several do, and the trials of the other one confirm it.
    assert chosen(choice, clock, {1: 1.0, 4: 3.0}, 9)[-6:] == [1] * 6
