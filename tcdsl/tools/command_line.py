"""``python -m tcdsl``: the demonstration, compiled programs on disk, and programs in the literal spelling."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

import tcdsl
from tcdsl.error_catalogue import entries
from tcdsl.errors import ConfigurationError, TcdslError, suggestion
from tcdsl.runtime.explanation import STAGES

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the process's exit status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    # What follows the name of a program that is run is the program's.
    own = (3 if given[1:2] == ["-m"] else 2) if given[:1] == ["run"] else len(given)
    options = _parser().parse_args(given[:own])
    options.rest = given[own:]
    console = Console()
    try:
        status: int = options.run(console, options)
    except TcdslError as error:
        Console(stderr=True).print(str(error), markup=False, highlight=False)
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tcdsl", description="Index notation on NumPy arrays.")
    parser.add_argument("--version", action="version", version=f"tcdsl {tcdsl.__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="command")

    demo = commands.add_parser("demo", help="train a classifier of handwritten digits and report")
    demo.add_argument("--epochs", type=_positive, help="times to go through the images (default 20)")
    demo.add_argument("--short", action="store_true", help="a few epochs only, for a quick check")
    demo.add_argument("--output", type=Path, default=Path("demo-output"), metavar="DIR", help="folder for the picture")
    demo.add_argument("--seed", type=int, default=0, help="of the split, the first weights and the minibatches")
    demo.add_argument("--threads", type=int, default=0, help="most threads to use (default: all cores)")
    demo.set_defaults(run=_demo)

    info = commands.add_parser("info", help="say the versions, the processor, threads, cache and settings in force")
    info.set_defaults(run=_info)

    explain = _called(commands.add_parser("explain", help="show how a function is compiled"))
    explain.add_argument("--stage", choices=STAGES, default="ir", help="what to show (default: ir)")
    explain.set_defaults(run=_explain)

    help_ = commands.add_parser("help", help="say more about an error")
    help_.add_argument("name", nargs="?", help="what the error's last line says; without it, all names")
    help_.set_defaults(run=_help)

    cache = commands.add_parser("cache", help="compiled programs on disk")
    cache.add_argument("action", choices=("info", "clear"), help="say what is there, or remove it")
    cache.set_defaults(run=_cache)

    compile_ = _called(commands.add_parser("compile", help="compile a function ahead of time, into the cache"))
    compile_.set_defaults(run=_compile)

    run = commands.add_parser(
        "run",
        help="run a program in the literal spelling",
        usage="python -m tcdsl run (file | -m module) [argument ...]",
    )
    program = run.add_mutually_exclusive_group(required=True)
    program.add_argument("file", nargs="?", help="a Python file")
    program.add_argument("-m", dest="module", metavar="module", help="a module, or a package's __main__")
    run.set_defaults(run=_run)

    model = commands.add_parser("skriptnd", help="say what a model in SkriptND has")
    model.add_argument("path", type=Path, help="a folder, a .tgz or a .sknd file")
    model.set_defaults(run=_skriptnd)

    desugar = commands.add_parser("desugar", help="print the plain Python that literal files stand for")
    desugar.add_argument("files", nargs="+", metavar="file")
    what = desugar.add_mutually_exclusive_group()
    what.add_argument(
        "--write", action="store_true", help="write it into the files, and print the names of the changed"
    )
    what.add_argument(
        "--check", action="store_true", help="only print the names of files that are not plain; exit 1 if any"
    )
    desugar.set_defaults(run=_desugar)
    return parser


def _called(command: argparse.ArgumentParser) -> argparse.ArgumentParser:
    # A function and what it is called with.
    command.add_argument("function", help="module:function")
    told = "float32[8, 3] for an array, 2 for a number, name=... by name"
    command.add_argument("arguments", nargs="*", metavar="argument", help=told)
    return command


def _skriptnd(console: Console, options: argparse.Namespace) -> int:
    from tcdsl.skriptnd import load

    for graph in load(options.path).graphs.values():
        graph.display().print(console)
        count = graph.cost().primal.operations.plain
        console.print(f"{count:,} operations on numbers at most", highlight=False)
    return 0


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive count")
    return value


def _demo(console: Console, options: argparse.Namespace) -> int:
    missing = [name for name in ("sklearn", "matplotlib") if importlib.util.find_spec(name) is None]
    if missing:
        packages = " ".join({"sklearn": "scikit-learn"}.get(name, name) for name in missing)
        console.print(f"the demo needs {' and '.join(missing)}: pip install {packages}", markup=False)
        return 2
    from tcdsl.tools.demo.main import demonstrate

    epochs = options.epochs or (3 if options.short else 20)
    rounds = 3 if options.short else 9
    demonstrate(console, epochs, rounds, options.seed, options.output, options.threads)
    return 0


def _cache(console: Console, options: argparse.Namespace) -> int:
    from tcdsl.tools.compiled_programs import clear, show

    (clear if options.action == "clear" else show)(console)
    return 0


def _info(console: Console, _: argparse.Namespace) -> int:
    from tcdsl.tools.environment import show

    show(console)
    return 0


def _explain(console: Console, options: argparse.Namespace) -> int:
    from tcdsl.tools.compiled_programs import explain_function

    return explain_function(console, options.function, options.arguments, options.stage)


def _help(console: Console, options: argparse.Namespace) -> int:
    from rich.markdown import Markdown

    known = entries()
    if options.name is None:
        for each in known.values():
            console.print(f"{each.name}: {each.title}", markup=False, highlight=False)
        return 0
    if options.name not in known:
        hint = suggestion(options.name, known, "`python -m tcdsl help` lists all names")
        raise ConfigurationError.at(f"there is no entry {options.name!r} in the catalogue of errors", hint=hint)
    console.print(Markdown(f"# {known[options.name].title}\n\n{known[options.name].text}"))
    return 0


def _compile(console: Console, options: argparse.Namespace) -> int:
    from tcdsl.tools.compiled_programs import compile_function

    return compile_function(console, options.function, options.arguments)


def _run(_: Console, options: argparse.Namespace) -> int:
    from tcdsl.tools.literal_files import run_module, run_program

    if options.module is not None:
        return run_module(options.module, options.rest)
    return run_program(options.file, options.rest)


def _desugar(console: Console, options: argparse.Namespace) -> int:
    from tcdsl.tools.literal_files import desugar_files

    return desugar_files(console, options.files, options.write, options.check)
