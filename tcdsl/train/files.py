"""Files of tensors: ``.npz``, which NumPy reads, and ``.safetensors``, which other frameworks read.

::

    tc.save("model.npz", loss)            # the parameters of the loss, by label
    tc.load("model.npz", loss)            # into the same parameters, all or none
    tc.load("model.npz")                  # as a dict of arrays
"""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tcdsl.errors import ConfigurationError
from tcdsl.ir.dtypes import is_floating
from tcdsl.tensors.functions.parameters import by_label
from tcdsl.tensors.graph_linking.asked_values import read_memory
from tcdsl.tensors.graphs.element_types import FloatingType
from tcdsl.tensors.graphs.location import fault
from tcdsl.tensors.graphs.tensor import Tensor
from tcdsl.tensors.routines import Routine
from tcdsl.tracebacks import user_facing
from tcdsl.train.gradients import parameters

__all__ = ["load", "save"]

SavedArrays = Mapping[str, np.ndarray]


@user_facing
def save(path: str | os.PathLike[str], *sources: Any) -> None:
    """``tc.save("model.npz", loss)``: write the values of tensors, each under its label, in the order of storage.

    ``sources`` say which: a leaf stands for itself, a computed tensor for the parameters that it depends on, a layer or
    an op for its parameters, a routine for all tensors that a run changes (the state of optimizers included), and lists
    hold any of these. A dict gives tensors names of its own. Tensors of equal labels get numbers: ``w``, ``w_2``. The
    ending decides on the format, ``.npz`` or ``.safetensors`` (which needs the package: ``pip install
    safetensors``). The file is replaced once it is complete. `ConfigurationError` for other endings and where
    there is nothing to save.
    """
    target = _path(path)
    write = _format(target)[0]
    # Copies, because a file format may keep references until it is written.
    arrays = {name: np.array(read_memory(tensor.buffer("value"))) for name, tensor in _named(sources).items()}
    if not target.parent.is_dir():
        raise fault(ConfigurationError, f"tc.save: there is no folder {target.parent}", "make it first")
    handle, temporary = tempfile.mkstemp(suffix=target.suffix, prefix=f".{target.stem}-", dir=target.parent)
    os.close(handle)
    try:
        write(Path(temporary), arrays)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@user_facing
def load(path: str | os.PathLike[str], *sources: Any) -> dict[str, np.ndarray]:
    """``tc.load("model.npz", loss)``: give tensors the values that `save` wrote for the same ``sources``.

    Returns the arrays by name, and without sources does nothing else. The names, shapes and element types must be those
    of the tensors; a parameter whose type is open takes that of the file. `ConfigurationError` lists everything that
    does not fit, and then nothing has changed.
    """
    source = _path(path)
    read = _format(source)[1]
    if not source.is_file():
        raise fault(ConfigurationError, f"there is no file {source}")
    try:
        arrays = read(source)
    except UnreadableError as error:
        raise fault(ConfigurationError, f"{source} cannot be read as {source.suffix}: {error}") from None
    if sources:
        tensors = _named(sources)
        _check(source, arrays, tensors)
        for name, tensor in tensors.items():
            if _is_open(tensor, arrays[name]):
                FloatingType.meeting([tensor.floating, FloatingType(str(arrays[name].dtype))])
            tensor.buffer("value").assign(arrays[name])
    return arrays


# -- which tensors -------------------------------------------------------------------------------------------


def _named(sources: tuple[Any, ...]) -> dict[str, Tensor]:
    if len(sources) == 1 and isinstance(sources[0], Mapping):
        given = dict(sources[0])
        for name, tensor in given.items():
            if not isinstance(name, str) or not isinstance(tensor, Tensor) or not tensor.is_leaf:
                raise _nothing(f"{name!r}: {tensor!r} is no leaf of a graph")
        return given
    found: dict[int, Tensor] = {}
    for source in sources:
        found.update((id(tensor), tensor) for tensor in _tensors(source))
    if not found:
        raise _nothing("there are no tensors to save or load here")
    return by_label(found.values())


def _nothing(fact: str) -> Exception:
    return fault(
        ConfigurationError,
        fact,
        "give parameters, a loss, a layer, a routine or a list of these; the parameters of a layer are known "
        "after its first call",
    )


def _tensors(source: Any) -> list[Tensor]:
    if isinstance(source, Routine):
        written = [buffer.owner for buffer in source.linked.written if buffer.kind == "value"]
        return [tensor for tensor in written if tensor.is_leaf]
    if isinstance(source, Tensor) and source.is_leaf:
        return [source]
    if isinstance(source, list | tuple):
        return [tensor for each in source for tensor in _tensors(each)]
    return parameters(source)


def _check(path: Path, arrays: SavedArrays, tensors: Mapping[str, Tensor]) -> None:
    missing = [name for name in tensors if name not in arrays]
    unexpected = [name for name in arrays if name not in tensors]
    different = []
    for name, tensor in tensors.items():
        if name not in arrays:
            continue
        array = arrays[name]
        dtype = str(array.dtype) if _is_open(tensor, array) else tensor.element_type
        if array.shape != tensor.sizes or str(array.dtype) != dtype:
            here = f"{dtype}{list(tensor.sizes)}"
            different.append(f"`{name}` is {array.dtype}{list(array.shape)} in the file, and {here} here")
    if not missing and not unexpected and not different:
        return
    notes = [f"not in the file: {', '.join(missing)}"] if missing else []
    notes += [f"only in the file: {', '.join(unexpected)}"] if unexpected else []
    raise fault(
        ConfigurationError,
        f"{path} does not fit; nothing was loaded",
        "arrays = tc.load(path) gives what is in the file; assign by hand with `tensor.value = array`",
        notes=(*notes, *different),
    )


def _is_open(tensor: Tensor, array: np.ndarray) -> bool:
    # A parameter that has met no data takes the type of the file.
    return tensor.floating is not None and tensor.floating.known is None and is_floating(str(array.dtype))


# -- formats -------------------------------------------------------------------------------------------------


class UnreadableError(Exception):
    """A file that is not what its name says."""


def _write_npz(path: Path, arrays: SavedArrays) -> None:
    # np.savez takes names as keyword arguments, so it cannot write a tensor called `file`.
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    try:
        archive = np.load(path, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise UnreadableError("it holds one array without a name")
        with archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise UnreadableError(str(error)) from error


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError:
        raise fault(
            ConfigurationError,
            "files that end in .safetensors need the package safetensors, which is not installed",
            "pip install safetensors, or use .npz",
        ) from None
    return safetensors.numpy


def _write_safetensors(path: Path, arrays: SavedArrays) -> None:
    _safetensors().save_file(dict(arrays), path)


def _read_safetensors(path: Path) -> dict[str, np.ndarray]:
    package = _safetensors()
    try:
        loaded: dict[str, np.ndarray] = package.load_file(path)
    except Exception as error:
        raise UnreadableError(str(error)) from error
    return loaded


_FORMATS: dict[str, tuple[Callable[[Path, SavedArrays], None], Callable[[Path], dict[str, np.ndarray]]]] = {
    ".npz": (_write_npz, _read_npz),
    ".safetensors": (_write_safetensors, _read_safetensors),
}


def _path(given: Any) -> Path:
    try:
        return Path(given)
    except TypeError:
        raise fault(ConfigurationError, f"{given!r} as a path", 'write a text, "model.npz", or a `Path`') from None


def _format(path: Path) -> tuple[Callable[[Path, SavedArrays], None], Callable[[Path], dict[str, np.ndarray]]]:
    if path.suffix not in _FORMATS:
        raise fault(ConfigurationError, f"the ending of {path.name!r} says no format", f"use {' or '.join(_FORMATS)}")
    if path.suffix == ".safetensors":
        _safetensors()
    return _FORMATS[path.suffix]
