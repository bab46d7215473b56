"""``python -m tcdsl cache info`` and ``cache clear``: the compiled programs on disk."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from tcdsl.config import settings
from tcdsl.targets.cache.store import cache_entries, cache_size, clear_cache, default_cache_dir

__all__ = ["clear", "show"]


def _folder() -> Path:
    return Path(settings().cache_dir) if settings().cache_dir else default_cache_dir()


def _counted(programs: int) -> str:
    return f"{programs} program{'' if programs == 1 else 's'}"


def show(console: Console) -> None:
    """List every compiled program, newest first, and what all of them take with their machine code."""
    entries = sorted(cache_entries(_folder()), key=lambda entry: -entry.modified)
    if entries:
        table = Table()
        table.add_column("program")
        table.add_column("compiled")
        table.add_column("file", overflow="fold")
        for entry in entries:
            when = datetime.fromtimestamp(entry.modified).strftime("%Y-%m-%d %H:%M")
            name = entry.path.stem.rpartition("_")[0]
            table.add_row(name, when, entry.path.name)
        console.print(table)
    total = decimal(cache_size(_folder()))
    console.print(f"{_counted(len(entries))}, {total}, in {_folder()}", soft_wrap=True, highlight=False)


def clear(console: Console) -> None:
    """Remove every compiled program; other files in the folder stay."""
    removed = clear_cache(_folder())
    console.print(f"removed {_counted(removed)} from {_folder()}", soft_wrap=True, highlight=False)
