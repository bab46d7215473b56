"""The literal spelling: operators that are not Python, in functions decorated with `op` and `cd`; see README.md.

``tcdsl.literal`` (`tcdsl.syntax.literal`) turns it on for imports, `tcdsl.syntax.notebook` in IPython and Jupyter,
`tcdsl.syntax.pytest_plugin` for test files.
"""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["literal"]


def __getattr__(name: str) -> Any:
    # pytest imports this package in every run of every user, for its plugin: nothing else is loaded before it is used.
    if name not in __all__:
        from tcdsl.tracebacks import missing_name

        raise missing_name(f"module {__name__}", name, sys.modules[__name__], __all__)
    import importlib

    return importlib.import_module(f"{__name__}.{name}")
