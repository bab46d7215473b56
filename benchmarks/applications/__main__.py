"""``python -m benchmarks.applications`` lists the applications; with names, runs them one after the other."""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

__all__ = ["applications", "main"]


def applications() -> dict[str, str]:
    """The name of each application and the sentence that its file opens with."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("[!_]*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in tree.body):
            words = " ".join((ast.get_docstring(tree) or "").split())
            found[path.stem] = words[: words.find(". ") + 1] or words
    return found


def main(arguments: list[str] | None = None) -> int:
    """The command line; the exit status is that of the first application that fails."""
    found = applications()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.applications", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(found)}, or all")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    options = parser.parse_args(arguments)
    names = list(found) if options.names == ["all"] else options.names
    for name in names:
        if name not in found:
            parser.error(f"there is no application {name!r}: choose from {', '.join(found)}")
    if not names:
        table = Table("application", "what it does", box=box.SIMPLE, show_edge=False)
        for row in found.items():
            table.add_row(*row)
        Console().print(table)
        return 0
    for name in names:
        command = [sys.executable, "-m", f"benchmarks.applications.{name}", *(["--quick"] if options.quick else [])]
        status = subprocess.run(command, check=False).returncode
        if status:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
