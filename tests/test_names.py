"""Names mean one thing: classes, folders, and the rooms that the tour of the house lists."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from tests.test_layers import FILES, PACKAGE, ROOT, may_import, room_of, syntax_tree

# Names that several things have, and why.
CLASSES = {"Tensor": "a tensor of a program, as declared, and the user's, which becomes one"}
SYNTAX = {
    "tcdsl.frontend.comprehensions.text.syntax": "what the nodes of another language's syntax trees are called",
    "tcdsl.frontend.skriptnd.text.syntax": "the same, of a third language",
}
FOLDERS = {
    "tile": "Tile in decorated functions, and on tensors outside of them",
    "comprehensions": "what users import, and the front end behind it",
    "skriptnd": "what users import, and the front end behind it",
    "text": "programs as text: the representation's, those in the language of Tensor Comprehensions, and in SkriptND",
}


def several(places: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: found for name, found in places.items() if len(found) > 1}


def test_classes_have_names_of_their_own() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for module in FILES.keys() - SYNTAX.keys():
        for node in syntax_tree(module).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module)
    assert several(places).keys() == CLASSES.keys(), several(places)


def test_folders_have_names_of_their_own() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for folder in {FILES[module].parent for module in FILES}:
        places[folder.name].append(folder.relative_to(ROOT).as_posix())
    assert several(places).keys() == FOLDERS.keys(), several(places)


def rooms_of_the_tour() -> Iterator[tuple[str, list[str]]]:
    """The packages of the table in the tour, in order, and the rooms that it lists for each."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for package, rooms in re.findall(r"^\| \[`(\w+)`\]\([^|]*\|[^|]*\|([^|]*)\|$", page, re.MULTILINE):
        yield package, re.findall(r"`([\w/]+)`", rooms)


def test_the_tour_lists_all_packages_and_rooms() -> None:
    listed = dict(rooms_of_the_tour())
    packages = {room.split("/")[0] for room in map(room_of, FILES) if (PACKAGE / room).is_dir() and room}
    assert listed.keys() == packages
    for package, rooms in listed.items():
        found = {folder.name for folder in (PACKAGE / package).iterdir() if (folder / "__init__.py").exists()}
        if package == "targets":  # with the rooms of the first target behind its name
            found |= {folder.name for folder in (PACKAGE / "targets" / "cpu").iterdir() if folder.is_dir()}
            found.discard("__pycache__")
        assert set(rooms) == found, package


def test_the_tour_lists_rooms_in_the_order_of_imports() -> None:
    packages = [package for package, _ in rooms_of_the_tour()]
    for package, rooms in rooms_of_the_tour():
        later = set(packages[packages.index(package) + 1 :])
        inside = {name for room in map(room_of, FILES) if room.split("/")[0] == package for name in may_import(room)}
        assert not {name.split("/")[0] for name in inside} & later, package
        around = f"{package}/cpu" if package == "targets" else package
        order = rooms[rooms.index("cpu") + 1 :] if package == "targets" else rooms
        for position, room in enumerate(order):
            used = {name.removeprefix(f"{around}/").split("/")[0] for name in may_import(f"{around}/{room}")}
            assert not used & set(order[position + 1 :]), room
