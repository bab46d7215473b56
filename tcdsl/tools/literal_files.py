"""``python -m tcdsl run`` and ``desugar``: programs in the literal spelling, and their plain form."""

from __future__ import annotations

import io
import runpy
import sys
import tokenize
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType, TracebackType

from rich.console import Console

from tcdsl.errors import TcdslError
from tcdsl.installation import FOLDER
from tcdsl.syntax import literal
from tcdsl.syntax.finder import LiteralLoader
from tcdsl.syntax.literal_code import compile_literal, decoded

__all__ = ["desugar_files", "run_module", "run_program"]

_RUNNERS = (runpy.__file__, "<frozen runpy>")


def run_program(path: str, arguments: Sequence[str]) -> int:
    """Run a literal file as Python runs a file. Modules that it imports may be marked as literal.

    The result is the exit status: 1 after an exception, which has been shown, 2 if there is no such file.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        _complain(f"cannot read {path}: {error.strerror}")
        return 2
    literal.install()
    module = ModuleType("__main__")
    module.__file__ = path
    module.__loader__ = LiteralLoader("__main__", path)
    sys.modules["__main__"] = module
    sys.argv = [path, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = str(Path(path).resolve().parent)
    return _reporting(lambda: exec(compile_literal(data, path), module.__dict__))  # noqa: S102  # the user's program


def run_module(name: str, arguments: Sequence[str]) -> int:
    """Run a literal module, or a package's ``__main__``, as ``python -m`` does."""
    literal.install()
    literal.install(name)
    sys.argv = [name, *arguments]
    return _reporting(lambda: runpy.run_module(name, run_name="__main__", alter_sys=True))


def _reporting(program: Callable[[], object]) -> int:
    try:
        program()
    except Exception as error:
        error.__traceback__ = _of_the_program(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


def _of_the_program(trace: TracebackType | None) -> TracebackType | None:
    # Without the frames that lead to its first one.
    while trace is not None:
        filename = trace.tb_frame.f_code.co_filename
        if not filename.startswith(FOLDER) and filename not in _RUNNERS:
            break
        trace = trace.tb_next
    return trace


def desugar_files(console: Console, paths: Sequence[str], write: bool, check: bool) -> int:
    """Print the plain form of files, ``write`` it into them, or ``check`` whether they are plain.

    All files are read before any is written: a fault in one leaves all as they are.
    """
    made: list[tuple[str, str, bytes]] = []
    status = 0
    for path in paths:
        try:
            data = Path(path).read_bytes()
            text = literal.desugar(decoded(data), path)
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        except OSError as error:
            _complain(f"cannot read {path}: {error.strerror}")
            status = 2
        except TcdslError as error:
            _complain(str(error))
            status = max(status, 1)
        except (SyntaxError, UnicodeDecodeError) as error:
            _complain("".join(traceback.format_exception_only(error)).rstrip())
            status = max(status, 1)
        else:
            changed = text.encode(encoding)
            if write or check:
                made.extend([(path, text, changed)] if changed != data else [])
            else:
                made.append((path, text, changed))
    if status:
        return status
    for path, text, changed in made:
        if write:
            Path(path).write_bytes(changed)
        if write or check:
            console.print(path, markup=False, highlight=False, soft_wrap=True)
        else:
            sys.stdout.write(text)
    return 1 if check and made else 0


def _complain(text: str) -> None:
    Console(stderr=True).print(text, markup=False, highlight=False, soft_wrap=True)
