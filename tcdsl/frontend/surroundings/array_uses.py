"""Whether all that a function does with an array of its surroundings became part of the program.

What Python computed of its cells, such as ``np.mean(table)`` beside ``x * table``, stays in the program as it was: such
a program serves only while the cells are the same. Python does not say when it reads an array, but the program knows
what it took: wherever the user's code loads the array, the expression around it must be one in which it was captured.
"""

from __future__ import annotations

import dis
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any

from tcdsl.frontend.surroundings.named_values import is_installed
from tcdsl.frontend.surroundings.readings import Reading

__all__ = ["ArrayUses"]

_Place = tuple[int, int, int, int]
"""Line, column, last line, last column."""

# What gives rounds the items as they are: Python's, and the recorder's (`tcdsl.frontend.python.recorder`).
_HANDING_ON = frozenset(("zip", "rounds", "iterated"))
_OF_CALLS = ("LOAD_", "PUSH_NULL", "PRECALL", "CALL")
_STORES = ("STORE_FAST", "STORE_DEREF")
_ATTRIBUTES = frozenset(("LOAD_ATTR", "LOAD_METHOD"))


class ArrayUses:
    """``uses.note(array, frame)`` whenever an array is captured, and ``uses.all_captured(reading)`` at the end.

    ``codes`` are those of decorated functions, ``filenames`` where they come from, and ``outside`` the code that runs
    what is staged: frames around it have nothing to do with it.
    """

    def __init__(self) -> None:
        self.codes: dict[CodeType, None] = {}
        self.filenames: set[str] = set()
        self.outside: CodeType | None = None
        # By array: where it was captured, and the local names that held it.
        self._captured: dict[int, dict[CodeType, set[_Place]]] = {}
        self._local: dict[int, set[tuple[CodeType, str]]] = {}
        self._read: set[int] = set()

    def note(self, array: Any, frame: FrameType | None) -> None:
        """An array was captured by the expressions that are being executed, from ``frame`` on outwards."""
        captured = self._captured.setdefault(id(array), {})
        local = self._local.setdefault(id(array), set())
        while frame is not None and frame.f_code is not self.outside:
            code = frame.f_code
            if code.co_filename in self.filenames or not is_installed(code.co_filename):
                places = captured.setdefault(code, set())
                place = _place(list(code.co_positions())[frame.f_lasti // 2])
                if place is not None:
                    places.add(place)
                local.update((code, name) for name, value in frame.f_locals.items() if value is array)
            frame = frame.f_back

    def note_read(self, value: Any) -> None:
        """Python has this value in an expression whose result the program depends on."""
        self._read.add(id(value))

    def all_captured(self, reading: Reading, readings: Iterable[Reading]) -> bool:
        """Whether the array of ``reading`` was captured wherever code has loaded it.

        ``readings`` tell which plain functions could run.
        """
        key = id(reading.seen)
        if key in self._read:
            return False
        plain = [each.seen for each in readings if isinstance(each.seen, CodeType)]
        captured = self._captured.get(key, {})
        name, is_attribute = next(
            (step, number > 0) for number, step in [*enumerate(reading.names)][::-1] if isinstance(step, str)
        )
        around = [code for code in (*self.codes, *plain) if is_attribute or not _binds(code, name)]
        in_container = not isinstance(reading.names[-1], str)
        return all(_all_captured(code, name, is_attribute, captured, in_container) for code in around) and all(
            _all_captured(code, local, False, captured) for code, local in self._local.get(key, ())
        )


def _all_captured(
    code: CodeType,
    name: str,
    is_attribute: bool,
    captured: Mapping[CodeType, Collection[_Place]],
    is_container: bool = False,
) -> bool:
    # In the code and what is nested in it.
    places = captured.get(code, ())
    for place, around in _loads(code, name, is_attribute):
        if is_container:
            # `x * weights[0]`: the item is what is captured, and not what a helper does with all of them.
            item = next((each for each in _items(code) if each != place and _is_in(place, (each,))), None)
            wider = [] if item is None else [each for each in _places(code) if each != item and _is_in(item, (each,))]
            captured_item = bool(wider) and min(wider, key=_extent) in places
        # Rewriting puts loads of a statement where the statement is.
        elif place in places or around in places:
            continue
        else:
            captured_item = False
        if not captured_item:
            # `for weight in weights`: then it is the uses of `weight` that count.
            targets = _targets_of_rounds(code, place) if is_container else ()
            if not targets or not all(_all_captured(code, target, False, captured) for target in targets):
                return False
    for inner in code.co_consts:
        if not isinstance(inner, CodeType) or (_binds(inner, name) and not is_attribute):
            continue
        if not _all_captured(inner, name, is_attribute, captured):
            # What a statement means in Python, and was not run if the statement is one of tensors.
            statement = inner.co_name == "<lambda>" and inner not in captured
            calls = _calls(inner)
            if not statement or not all(
                _is_in(place, places) and around not in calls for place, around in _loads(inner, name, is_attribute)
            ):
                return False
    return True


def _targets_of_rounds(code: CodeType, place: _Place | None) -> tuple[str, ...]:
    # The names that a loop over what is loaded at ``place``, alone or in `zip`, gives to what it finds there.
    every = [each for each in dis.get_instructions(code) if each.opname not in ("CACHE", "EXTENDED_ARG")]
    for number, each in enumerate(every[:-2]):
        if each.opname != "GET_ITER":
            continue
        begin = number
        while begin and every[begin - 1].opname.startswith(_OF_CALLS):
            begin -= 1
        inside = every[begin:number]
        if all(_place(one.positions) != place for one in inside):
            continue
        handed_on = sum(one.opname.startswith("LOAD_") and one.argval in _HANDING_ON for one in inside)
        if sum(one.opname.startswith("CALL") for one in inside) > handed_on:
            return ()
        first = every[number + 2]
        count = int(first.arg or 0) if first.opname == "UNPACK_SEQUENCE" else 1
        begin = number + (3 if first.opname == "UNPACK_SEQUENCE" else 2)
        stores = every[begin : begin + count]
        return tuple(str(one.argval) for one in stores) if all(one.opname in _STORES for one in stores) else ()
    return ()


def _places(code: CodeType) -> list[_Place]:
    found = [_place(each.positions) for each in dis.get_instructions(code)]
    return [each for each in found if each is not None]


def _items(code: CodeType) -> list[_Place]:
    # Where something is subscripted, the smallest first; rewritten code asks the recorder for items.
    found = [
        _place(each.positions)
        for each in dis.get_instructions(code)
        if each.opname == "BINARY_SUBSCR" or each.argrepr == "[]" or _asks(each) == "item"
    ]
    return sorted((place for place in found if place is not None), key=_extent)


def _calls(code: CodeType) -> set[_Place | None]:
    # Where the user's code calls something: what a call is given, it may read. Operators are calls of the recorder.
    every = list(dis.get_instructions(code))
    own = {_place(each.positions) for each in every if _asks(each) not in (None, "call", "called")}
    return {_place(each.positions) for each in every if each.opname.startswith("CALL")} - own


def _asks(instruction: dis.Instruction) -> str | None:
    return str(instruction.argval) if instruction.opname in _ATTRIBUTES else None


def _binds(code: CodeType, name: str) -> bool:
    return name in code.co_varnames or name in code.co_cellvars


def _loads(code: CodeType, name: str, is_attribute: bool) -> Iterator[tuple[_Place | None, _Place | None]]:
    # Where the name is loaded, and the smallest expression around that.
    every = [(instruction, _place(instruction.positions)) for instruction in dis.get_instructions(code)]
    for instruction, place in every:
        kind = instruction.opname
        loaded = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
        if kind.startswith("LOAD_") and name in loaded and is_attribute == (kind in _ATTRIBUTES):
            around = [each for _, each in every if each is not None and each != place and _is_in(place, (each,))]
            yield place, min(around, key=_extent, default=None)


def _is_in(inner: _Place | None, places: Collection[_Place]) -> bool:
    return inner is not None and any(outer[:2] <= inner[:2] and inner[2:] <= outer[2:] for outer in places)


def _extent(place: _Place) -> tuple[int, int, int, int]:
    # Of places around the same one, the smallest ends first and begins last.
    return place[2], place[3], -place[0], -place[1]


def _place(positions: Any) -> _Place | None:
    # None where Python keeps no columns.
    line, last_line, column, last_column = positions or (None,) * 4
    if line is None or last_line is None or column is None or last_column is None:
        return None
    return line, column, last_line, last_column
