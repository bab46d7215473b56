"""What is kept of a staged program, for the calls that it served: plain values, which `marshal` writes.

A `KeptProgram` is to repeated calls what an `Executable` is, and knows neither program nor loops. What it cannot do, it
leaves to the program itself, which is then staged: another layout of arrays, larger sizes, and whatever is an error.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tcdsl.config import Settings
from tcdsl.frontend.staging.program_inputs import CapturedArray, CarriedInteger
from tcdsl.frontend.surroundings.readings import Layout, ReadCells, Reading, Together
from tcdsl.ir.sizes.size_functions import SizeFunction
from tcdsl.runtime.calling.launches import LaunchedProgram, Shapes
from tcdsl.runtime.calling.repeated import Served
from tcdsl.runtime.calling.structure import Structure
from tcdsl.targets.protocol.loaded_kernel import NestStopped

if TYPE_CHECKING:
    from tcdsl.runtime.calling.entries import Entry
    from tcdsl.targets.protocol.loaded_kernel import LaunchedKernel

__all__ = ["KeptProgram", "kept_entry", "readable_records", "record_of", "written_records"]

_PLAIN = (bool, int, float, str, bytes, type(None))


class KeptProgram(LaunchedProgram):
    """What an earlier process has kept of a program: machine code for one layout, and the sizes as a function."""

    def __init__(self, record: Mapping[str, Any], kernel: LaunchedKernel, current: Settings) -> None:
        super().__init__(record["types"], record["updated"], record["cells"])
        self._contiguous = record["contiguous"]
        self._harmless: int = record["harmless"]
        self._values = SizeFunction(*record["values"]).bound()
        self._kernel = kernel
        self._made_with = _choices(current)

    def sized(self, shapes: Shapes) -> tuple[tuple[int, ...], int] | None:
        """The values of all sizes in order and the largest one, where nothing is unusual."""
        try:
            found: tuple[tuple[int, ...], int] | None = self._values(shapes)
        except (ZeroDivisionError, IndexError):
            return None
        return None if found is None or found[1] >= self._harmless else found

    def fitting(self, contiguous: tuple[bool, ...], current: Settings, largest: int) -> LaunchedKernel | None:
        """The machine code for inputs of this layout and such settings; None if it was not kept."""
        fits = contiguous == self._contiguous and _choices(current) == self._made_with
        return self._kernel if fits and largest <= self._kernel.limit else None

    def check_written(self, inputs: Sequence[np.ndarray]) -> None:
        """Arrays may share memory with one that is written."""
        raise NestStopped


def kept_entry(record: Mapping[str, Any], executable: KeptProgram, readings: Sequence[Reading]) -> Served:
    """What was kept in ``record``, with what it reads in this process."""
    return Served(
        record["name"],
        executable,
        _structure(record["structure"]),
        tuple(_source(each, readings) for each in record["inputs"]),
        tuple(readings),
        record["constants"],
        guarded=None if record["guards"] is None else SizeFunction(*record["guards"]).bound(),
    )


def _choices(current: Settings) -> tuple[Any, ...]:
    # The settings that machine code depends on.
    return current.optimize, current.target


def record_of(
    entry: Entry, readings: Sequence[Reading], numbers: tuple[int, ...], kernel: Any, contiguous: tuple[bool, ...]
) -> Any:
    """What is kept of ``entry``, whose call ``kernel`` served; None for what is not kept.

    ``readings`` are those of its content, and ``numbers`` the positions of inputs that are numbers.
    """
    program = entry.executable.program
    kept = getattr(kernel, "kept", None)
    kernel_values = None if kept is None else kept(numbers)
    inputs = [_input(each, readings) for each in entry.inputs]
    structure = _values(entry.structure)
    plain = all(type(value) in _PLAIN for value in entry.constants.values())
    # Another process has other cells behind the same names.
    plain = plain and not any(isinstance(each.seen, ReadCells | Layout | Together) for each in entry.readings)
    if kernel_values is None or None in inputs or structure is None or entry.narrowed or entry.linear or not plain:
        return None
    plan = entry.executable.size_plan
    guards = entry.written_guards() if entry.guards else None
    return {
        "name": program.name,
        "constants": dict(entry.constants),
        "inputs": tuple(inputs),
        "types": tuple((str(tensor.dtype), len(tensor.shape)) for tensor in program.inputs),
        "updated": tuple(entry.executable.updated),
        "cells": tuple(entry.executable.with_cells),
        "structure": structure,
        "contiguous": contiguous,
        "harmless": plan.harmless,
        "values": (plan.written.code, plan.written.constants),
        "guards": None if guards is None else (guards.code, guards.constants),
        "kernel": kernel_values,
    }


def written_records(records: Sequence[Any]) -> bytes | None:
    """The records as bytes; None for what cannot be written."""
    try:
        return marshal.dumps(tuple(records))
    except ValueError:
        return None


def readable_records(payload: bytes) -> tuple[Any, ...]:
    """What `written_records` wrote, in a file whose name and checksum have been tested."""
    records: tuple[Any, ...] = marshal.loads(payload)
    return records


def _input(source: Any, readings: Sequence[Reading]) -> Any:
    if isinstance(source, int):
        return source
    if isinstance(source, CarriedInteger):
        return source.tensor, source.place, source.negative, source.least
    place = None if source.reading is None else source.reading.place
    position = next((k for k, each in enumerate(readings) if each.place == place), None)
    return None if position is None else (source.tensor, position)


def _source(kept: Any, readings: Sequence[Reading]) -> int | CapturedArray | CarriedInteger:
    if isinstance(kept, int):
        return kept
    if len(kept) > 2:
        return CarriedInteger(*kept)
    tensor, position = kept
    return CapturedArray(tensor, readings[position].seen, readings[position])


def _values(structure: Structure) -> Any:
    # None for a structure with values that are not plain.
    if structure.kind == "namedtuple" or type(structure.value) not in _PLAIN:
        return None
    parts = [_values(part) for part in structure.parts]
    if None in parts or not all(type(key) in _PLAIN for key in structure.keys):
        return None
    return structure.kind, tuple(parts), structure.keys, structure.value


def _structure(values: Any) -> Structure:
    kind, parts, keys, value = values
    return Structure(kind, tuple(map(_structure, parts)), keys, value)
