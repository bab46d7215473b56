"""Models in SkriptND, the language of NNEF 2.0, as functions of arrays."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcdsl.errors import ConfigurationError, DslSyntaxError
from tcdsl.locks import without_collecting
from tcdsl.tracebacks import missing_name, user_facing

if TYPE_CHECKING:
    from tcdsl.skriptnd.modules import SkriptModule

__all__ = ["load", "parse"]


@user_facing
@without_collecting()
def parse(
    text: str, folder: str | PathLike[str] | None = None, attributes: Mapping[str, Any] | None = None
) -> SkriptModule:
    """The graphs that a text in SkriptND defines.

    ::

        module = tc.skriptnd.parse('''
            import nn;
            graph net {
                @input { x: real[~|64, 8]; }
                @output { y: real[~, 4]; }
                @variable { w: real[4, 8]; b: real[4]; }
                @compose { h = nn.linear(x, w, b); y = nn.relu(h); }
            }
        ''')
        net = module.graphs["net"]
        net.variables["w"] = w
        y = net(x)                               # float32[N, 8] -> float32[N, 4]

    Modules that the text imports come from the library, then from ``folder``. ``attributes`` are those of the first
    graph. Faults are `TcdslError`s that show their places; what depends on sizes is checked at each call.
    """
    from tcdsl.skriptnd.files import ModelFiles
    from tcdsl.skriptnd.modules import SkriptModule

    if not isinstance(text, str):
        fact = f"a text in SkriptND is a str, not a {type(text).__name__}"
        raise DslSyntaxError.at(fact, hint="`tc.skriptnd.load(path)` reads files")
    if folder is not None and not isinstance(folder, str | PathLike):
        raise ConfigurationError.at(f"`folder` is a path, not a {type(folder).__name__}")
    read = dict[str, tuple[str, str]]().get if folder is None else ModelFiles(Path(folder)).module
    return SkriptModule(text, "", read, attributes)


@user_facing
@without_collecting()
def load(path: str | PathLike[str], attributes: Mapping[str, Any] | None = None) -> SkriptModule:
    """The graphs of a ``.sknd`` file, of a model's folder, or of its ``.tgz``, with the values of variables.

    ::

        net = tc.skriptnd.load("models/alexnet").graphs["alexnet"]
        y = net(x)

    A folder holds the text ``main.sknd``, other modules beside it, and a file for each variable.
    """
    from tcdsl.skriptnd.files import opened
    from tcdsl.skriptnd.modules import SkriptModule

    files, text, filename = opened(path)
    return SkriptModule(text, filename, files.module, attributes, files)


def __getattr__(name: str) -> Any:
    raise missing_name(f"module {__name__}", name, sys.modules[__name__], __all__)
