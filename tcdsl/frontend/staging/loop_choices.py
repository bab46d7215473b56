"""Loops over integers of Python's: which of them run in the program all the same, as staging finds by trying.

::

    @op
    def power(A, v, steps):             # in tc.grad(lambda A: power(A, v, 200)[0]) `steps` is an integer of Python's,
        for _ in range(steps):          # but where `power` is called by itself it is a number of the call
            v = A @ v
        return v
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

__all__ = ["LoopChoices", "RunInProgram", "asked_for"]


class RunInProgram(BaseException):
    """Data ends a loop of Python's: stage again with ``loop``, which rewriting has named, as one that runs.

    ``None`` is for a loop that is left out, which `LoopChoices` knows.
    """

    def __init__(self, loop: object | None) -> None:
        super().__init__(loop)
        self.loop = loop


def asked_for(error: Exception) -> BaseException:
    """What staging has asked for, where ``error`` has come of `finally` or ``except`` of a user; else ``error``."""
    found: BaseException | None = error
    while isinstance(found, Exception):
        found = None if found.__suppress_context__ else found.__context__
    return error if found is None or isinstance(found, KeyboardInterrupt | SystemExit) else found


class LoopChoices:
    """What is known of the loops of a function that is staged until they are chosen; ``fixed`` if it is staged once.

    A loop over numbers that are given to an op inside another function runs, as it does where numbers are given to the
    op itself, unless its rounds need Python. So does one over numbers of the call that are constants only because they
    are small: what is accepted does not depend on what they are.
    """

    def __init__(self, fixed: bool = False) -> None:
        self._fixed = fixed
        self._run: set[object] = set()
        #: The loops and arms that Python has left out, by the declared targets to which they write first.
        self._left_out: dict[int, list[object]] = {}
        self._staged: set[object] = set()
        self._unroll: set[str] = set()
        #: The loops that have run because their rounds read what is declared before them.
        self._carrying: set[object] = set()
        #: The names that loops bind first and that are read after them, with the loops.
        self._outlasting: set[tuple[object, str]] = set()
        self._first: Exception | None = None
        #: The loops that run, and those that are unrolled, without need, while the function is staged.
        self._tried: dict[str, object] = {}
        self._unrolled: set[object] = set()

    def begin(self) -> None:
        """The function is staged from its beginning."""
        self._tried.clear()
        self._unrolled.clear()
        self._left_out.clear()

    def runs(self, loop: object, given: bool, empty: bool) -> bool:
        """Whether a loop over integers runs; ``given`` says that they are made of arguments, ``empty`` that it has no
        rounds here, which data cannot end.
        """
        name = f"loop {id(loop)}"
        if given and not self._fixed and name not in self._unroll:
            self._tried[name] = loop
        return (loop in self._run and not empty) or name in self._tried

    def tried(self, loop: object) -> frozenset[str]:
        """The name of a loop that runs without need, beside those of arguments that a loop depends on."""
        return frozenset(name for name in self._tried if self._tried[name] is loop)

    def unrolls(self, loop: object) -> None:
        """A loop over integers is Python's."""
        self._unrolled.add(loop)

    def ended_by_data(self, loop: object) -> bool:
        """Have the function staged again with a ``loop`` that runs, if that is a matter of choice.

        Else whether it is a loop over integers.
        """
        if not self._fixed and loop in self._unrolled:
            raise RunInProgram(loop)
        return loop in self._unrolled

    def leaves_out(self, loop: object, declared: Iterable[object]) -> bool:
        """Python leaves out what writes to ``declared`` targets, a loop's body or an arm: whether to stage it, to run
        never, for the type of what it writes.
        """
        name = f"loop {id(loop)}"
        if loop in self._staged and name not in self._unroll:
            self._tried[name] = loop
            return True
        for target in declared:
            self._left_out.setdefault(id(target), []).append(loop)
        return False

    def left_as_declared(self, target: object, around: Iterable[object]) -> None:
        """Have the function staged again if Python has left out what writes to ``target``, which is read.

        Also if that is a round of Python's: a loop that runs carries what is declared before it. ``around`` are such.
        """
        loops = [each for each in self._left_out.get(id(target), ()) if each not in self._staged]
        if loops and not self._fixed:
            self._staged.update(loops)
            raise RunInProgram(None)
        self._first = None  # what these loops, staged all the same, have raised is of no interest
        for loop in around:
            if loop in self._unrolled and loop not in self._carrying and not self._fixed:
                self._carrying.add(loop)
                raise RunInProgram(loop)

    def outlasts(self, loop: object, name: str) -> None:
        """Have the function staged again: what each round of ``loop`` binds to ``name`` is read after the loop."""
        if not self._fixed and (loop, name) not in self._outlasting:
            self._outlasting.add((loop, name))
            raise RunInProgram(None)

    def is_read_after(self, loop: object, name: str) -> bool:
        """Whether it is known to be."""
        return (loop, name) in self._outlasting

    def run(self, loop: object | None) -> None:
        """From now on the loop runs."""
        if loop is not None:
            self._run.add(loop)

    def unroll(self, names: Collection[str]) -> bool:
        """From now on the loops with these names are Python's; whether there are any that were not."""
        new = (self._tried.keys() & names) - self._unroll
        self._unroll |= new
        return bool(new)

    def leave_to_python(self, error: Exception, around: Iterable[object]) -> None:
        """From now on loops that ran without need are Python's: those ``around`` an error, or all where there are none.

        Without any, the first error is raised.
        """
        if self._run & self._carrying:
            self._run -= self._carrying  # their rounds may need Python: what they read is to be written first
            return
        self._first = self._first or error
        names = frozenset().union(*map(self.tried, around))
        if not self.unroll(names or self._tried.keys()):
            raise self._first
