"""Threads: those of Numba, whose threading layers share the cores with the user's own Numba code.

Numba takes half a second to import, and its layers are small libraries beside it: unless it is there already, or
settings speak of threads, the library of OpenMP is loaded alone.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.machinery
import importlib.util
import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["ThreadingLayer", "default_threads", "most_threads", "threading_layer"]

_LIBRARIES = {"tbb": "tbbpool", "omp": "omppool", "workqueue": "workqueue"}


@dataclass(frozen=True, slots=True)
class ThreadingLayer:
    """``parallel_for`` is the address of ``void (void *function, char **args, size_t *dimensions, size_t *steps, void
    *data, size_t inner_dimensions, size_t arrays, int threads)``; whether several threads may call it at once.
    """

    parallel_for: int
    concurrent: bool


def default_threads() -> int:
    """The number of threads that Numba uses: what `numba.set_num_threads` says, ``NUMBA_NUM_THREADS``, or the cores."""
    if "numba" in sys.modules or _settings():
        from numba import get_num_threads

        return int(get_num_threads())
    return _cores()


def most_threads() -> int:
    """The number of threads that there are, whatever `numba.set_num_threads` says at the moment."""
    if "numba" in sys.modules or _settings():
        from numba import config

        return int(config.NUMBA_NUM_THREADS)
    return _cores()


@cache
def threading_layer() -> ThreadingLayer:
    """Numba's threading layer of this process; its threads start with the first use."""
    library = None if "numba" in sys.modules or _settings() else _library_alone()
    name = "omp"
    if library is None:
        name, library = _library_of_numba()
    return ThreadingLayer(int(library.parallel_for), name != "workqueue")


@cache
def _settings() -> bool:
    # Read once, as Numba reads them; what they mean is its business.
    told = any(name.startswith("NUMBA_") and "THREAD" in name for name in os.environ)
    return told or Path(".numba_config.yaml").exists()


@cache
def _cores() -> int:
    # As Numba counts them.
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return max(1, os.cpu_count() or 1)


def _library_of_numba() -> tuple[str, Any]:
    import numba

    numba.get_num_threads()  # starts the layer, and so chooses it
    name = numba.threading_layer()
    return name, importlib.import_module(f"numba.np.ufunc.{_LIBRARIES[name]}")


def _library_alone() -> ModuleType | None:
    # Under its own name, so that Numba, if it is imported later, finds it.
    name = "numba.np.ufunc.omppool"
    package = importlib.util.find_spec("numba")
    folders = package.submodule_search_locations if package is not None else None
    for folder in folders or ():
        finder = importlib.machinery.FileFinder(
            os.path.join(folder, "np", "ufunc"),
            (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
        )
        spec = finder.find_spec(name)
        if spec is None or spec.loader is None:
            continue
        try:
            library = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(library)
            for function in (library.launch_threads, library.set_num_threads):
                ctypes.CFUNCTYPE(None, ctypes.c_int)(function)(_cores())
        except (ImportError, AttributeError):
            return None
        sys.modules[name] = library
        return library
    return None
