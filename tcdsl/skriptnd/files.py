"""Folders of models: the texts of modules, and a binary file for each variable.

The format of the files is that of Khronos' tools: 128 bytes of header, then the items in row-major order, all little
endian. Sizes are compared before anything is allocated.
"""

from __future__ import annotations

import math
import os
import struct
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tcdsl.errors import ConfigurationError, ShapeError, TcdslError
from tcdsl.frontend.skriptnd.text.parsing import MOST_CHARACTERS

__all__ = ["ModelFiles", "opened", "read_array", "write_array", "write_folder"]

_MAGIC, _VERSION, _HEADER, _MOST_AXES = b"\x4e\xef", (1, 0), 128, 8
_WORDS = struct.Struct("<31I")
_REAL, _UNSIGNED, _QUANTIZED, _QUANTIZED_SIGNED, _SIGNED, _BOOL = range(6)
_KINDS = {_REAL: "f", _UNSIGNED: "u", _QUANTIZED: "u", _QUANTIZED_SIGNED: "i", _SIGNED: "i"}
_MOST_BYTES = 2**32 - 1
_MOST_TEXT = 4 * MOST_CHARACTERS  # in UTF-8
_UNREADABLE = (OSError, tarfile.TarError, EOFError, ValueError, zlib.error)
#: ``read({name: most})``: the bytes of the files that there are, at most as many of each as that.
Read = Callable[[Mapping[str, int]], Iterator[tuple[str, memoryview]]]


def _fault(name: str, fact: str) -> TcdslError:
    return ConfigurationError.at(f"{name}: {fact}")


def read_array(data: bytes | memoryview, name: str) -> np.ndarray:
    """The array in the bytes of a file, which it may share; ``name`` is what errors call it."""
    if len(data) < _HEADER or data[:2] != _MAGIC:
        raise _fault(name, "is no file of a variable")
    if (data[2], data[3]) != _VERSION:
        raise _fault(name, f"has version {data[2]}.{data[3]}, and 1.0 is known")
    size, rank, *rest = _WORDS.unpack_from(data, 4)
    extents, (bits, kind, *reserved) = rest[:_MOST_AXES], rest[_MOST_AXES:]
    if rank > _MOST_AXES:
        raise _fault(name, f"has rank {rank}, and {_MOST_AXES} is the most")
    shape = tuple(extents[:rank])
    count = math.prod(shape)
    if len(data) != _HEADER + size or size != (count * bits + 7) // 8:
        fact = f"and {count} items of {bits} bits are declared as {size} bytes"
        raise _fault(name, f"holds {len(data) - _HEADER} bytes of data, {fact}")
    if kind == _BOOL and bits == 1:
        return np.unpackbits(np.frombuffer(data, np.uint8, offset=_HEADER), count=count).astype(bool).reshape(shape)
    letter = _KINDS.get(kind, "")
    if kind == _UNSIGNED and reserved[0]:
        letter = "i"
    if not letter or bits not in ((16, 32, 64) if letter == "f" else (8, 16, 32, 64)):
        raise _fault(name, f"has items of type {kind} with {bits} bits, which is not known")
    found = np.frombuffer(data, np.dtype(f"<{letter}{bits // 8}"), offset=_HEADER).reshape(shape)
    return found.astype(f"={letter}{bits // 8}", copy=False)


def write_array(array: np.ndarray, name: str) -> bytes:
    """The bytes of a file with ``array``."""
    if array.ndim > _MOST_AXES:
        raise _fault(name, f"has rank {array.ndim}, and {_MOST_AXES} is the most")
    kind = {"f": _REAL, "u": _UNSIGNED, "i": _SIGNED, "b": _BOOL}.get(array.dtype.kind)
    if kind is None:
        raise _fault(name, f"an array of {array.dtype} cannot be written")
    bits = 1 if kind == _BOOL else array.dtype.itemsize * 8
    body = (np.packbits(array) if kind == _BOOL else array.astype(array.dtype.newbyteorder("<"))).tobytes()
    if len(body) > _MOST_BYTES or any(extent > _MOST_BYTES for extent in array.shape):
        raise _fault(name, f"{len(body)} bytes are more than the format can say")
    extents = [*array.shape, *(0,) * (_MOST_AXES - array.ndim)]
    words = _WORDS.pack(len(body), array.ndim, *extents, bits, kind, *(0,) * 19)
    return _MAGIC + bytes(_VERSION) + words + body


def _is_archive(place: Path) -> bool:
    return place.name.endswith((".tgz", ".tar.gz"))


class ModelFiles:
    """The files of a model, in a folder or a ``.tgz``."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._read: Read = _archive(root) if _is_archive(root) else _folder(root)

    def text(self, name: str) -> tuple[str, str] | None:
        """The text in a file, and where that is; None if there is none."""
        place = os.path.join(self._root, name)
        data = dict(self._read({name: _MOST_TEXT})).get(name)
        try:
            return None if data is None else (str(data, "utf-8"), place)
        except UnicodeDecodeError as error:
            raise _fault(place, f"is no text in UTF-8: {error}") from None

    def module(self, name: str) -> tuple[str, str] | None:
        """The text of a module, and the name of its file."""
        # `blocks.deep` is a file in a folder, or has the dot in its name.
        return self.text(f"{name.replace('.', '/')}.sknd") or self.text(f"{name}.sknd")

    def arrays(self, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, np.ndarray, bool]]:
        """The arrays of the files that there are, by name, and whether each holds levels of quantization."""
        for name, data in self._read({name: _HEADER + 8 * math.prod(shape) for name, shape in shapes.items()}):
            place = os.path.join(self._root, name)
            found = read_array(data, place)
            if found.shape != shapes[name]:
                raise ShapeError.at(f"{place} has shape {found.shape}, and its variable {shapes[name]}")
            kind = _WORDS.unpack_from(data, 4)[3 + _MOST_AXES]
            yield name, found, kind in (_QUANTIZED, _QUANTIZED_SIGNED)


def opened(path: str | os.PathLike[str]) -> tuple[ModelFiles, str, str]:
    """The files of a folder, of an archive, or beside a ``.sknd`` file; the main text, and the name of its file."""
    place = _path(path)
    beside = not _is_archive(place) and not place.is_dir()
    files, name = ModelFiles(place.parent if beside else place), place.name if beside else "main.sknd"
    found = files.text(name)
    if found is None:
        raise ConfigurationError.at(f"{place} cannot be read: there is no text `{name}`")
    return files, *found


def _path(path: str | os.PathLike[str]) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise ConfigurationError.at(f"a model has a path, not a {type(path).__name__}")
    return Path(path)


def _folder(folder: Path) -> Read:
    def read(wanted: Mapping[str, int]) -> Iterator[tuple[str, memoryview]]:
        for name, most in wanted.items():
            place = folder / name
            if not os.path.lexists(place):
                continue
            if not os.path.isfile(place):
                raise _fault(str(place), "is no file")
            try:
                with place.open("rb") as file:
                    data = _limited(file, place.stat().st_size, most, str(place))
            except OSError as error:
                raise _fault(str(place), f"cannot be read: {error}") from None
            yield name, data

    return read


def _limited(stream: Any, size: int, most: int, name: str) -> memoryview:
    # Nothing is read, or allocated, that is longer than it may be. Large arrays are not copied, nor cleared before.
    if size > most:
        raise _fault(name, f"holds {size} bytes, and {most} are the most")
    found = np.empty(size, np.uint8).data
    return found[: stream.readinto(found)]


def _archive(place: Path) -> Read:
    try:
        with tarfile.open(place, "r:gz") as archive:
            # Of several members with one name the last counts.
            members = {os.path.normpath(each.name): each for each in archive.getmembers()}
    except _UNREADABLE as error:
        raise _fault(str(place), f"cannot be read: {error}") from None
    # Some tools put a folder around the files.
    mains = sorted((name for name in members if os.path.basename(name) == "main.sknd"), key=len)
    around = os.path.dirname(mains[0]) if mains else ""

    def read(wanted: Mapping[str, int]) -> Iterator[tuple[str, memoryview]]:
        places = {name: members.get(os.path.normpath(os.path.join(around, name))) for name in wanted}
        known = {name: each for name, each in places.items() if each is not None}
        try:
            # In the order of the archive, which is unpacked once.
            with tarfile.open(place, "r:gz") as archive:
                for name, member in sorted(known.items(), key=lambda pair: pair[1].offset_data):
                    stream = archive.extractfile(member) if member.isfile() else None
                    if stream is None:
                        raise _fault(os.path.join(place, name), "is no file")
                    yield name, _limited(stream, member.size, wanted[name], os.path.join(place, name))
        except _UNREADABLE as error:
            raise _fault(str(place), f"cannot be read: {error}") from None

    return read


def write_folder(folder: str | os.PathLike[str], texts: Mapping[str, str], arrays: Mapping[str, np.ndarray]) -> None:
    """Write a model: ``texts`` by module, ``arrays`` by the names of their files."""
    place = _path(folder)
    files = {place.joinpath(*name.split(".")).with_suffix(".sknd"): text.encode() for name, text in texts.items()}
    files |= {place / name: write_array(np.asarray(array), name) for name, array in arrays.items()}
    try:
        for target, data in files.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    except OSError as error:
        raise _fault(str(place), f"cannot be written: {error}") from None
