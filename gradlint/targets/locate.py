"""Where a dotted module name lives, found without importing or executing anything."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder

from gradlint.base.files import read_regular
from gradlint.base.text import nearest

#: Folders without source of the user.
SKIPPED = ("__pycache__", "build", "dist", "node_modules", "site-packages", "venv", "env")

#: A YAML file in a folder is taken for a spec when a line starts with one of these.
_MARKS = re.compile(
    r"^(?:['\"]?(?:op|forward|surrogate|extension)['\"]?\s*:|#.*\$?schema\b.*gradlint)",
    re.MULTILINE,
)

#: At most so many bytes are read to decide whether a YAML file is a spec.
_HEAD_BYTES = 65_536


@dataclass(frozen=True)
class FoundModule:
    """A module that could be imported.

    Args:
        name: dotted name.
        file: its .py file; None for extension modules, built-ins and namespace packages.
        folders: where its submodules are searched; empty when it is not a package.
    """

    name: str
    file: str | None
    folders: tuple[str, ...] = ()


def search_path() -> list[str]:
    """``sys.path`` with the working directory first, as under ``python -m``."""
    here = os.getcwd()
    return [here, *(entry or here for entry in sys.path if entry != here)]


def find_module(name: str) -> FoundModule | None:
    """The module called ``name``; None when no such module exists."""
    return _find(name, tuple(search_path()))


def forget_modules() -> None:
    """Clear caches of the file system, so that new files are found."""
    importlib.invalidate_caches()
    _find.cache_clear()


@lru_cache(maxsize=4096)
def _find(name: str, path: tuple[str, ...]) -> FoundModule | None:
    parts = name.split(".")
    if not all(part.isidentifier() for part in parts):
        return None
    spec = _top_level(parts[0], list(path))
    for part in parts[1:]:
        folders = list(spec.submodule_search_locations or ()) if spec is not None else []
        if not folders:
            return None
        # Only the last part is passed on: with the full name, the finder of a namespace package
        # looks its parent up in sys.modules, where it is not.
        spec = _guarded(partial(PathFinder.find_spec, part, folders))
    return None if spec is None else _found(name, spec)


def split_module(name: str) -> tuple[FoundModule, str] | None:
    """The longest prefix of ``name`` that is a module, and the attribute path that is left."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        found = find_module(".".join(parts[:count]))
        if found is not None:
            return found, ".".join(parts[count:])
    return None


def submodules(module: FoundModule) -> Iterator[tuple[str, str]]:
    """(dotted name, file) of ``module`` and of every module below it, sorted, a folder's
    own modules before those of its subfolders."""
    if module.file is not None:
        yield module.name, module.file
    for folder in module.folders:
        entries = sorted(_entries(folder), key=lambda item: item.name)
        for entry in entries:
            stem, extension = os.path.splitext(entry.name)
            if extension == ".py" and stem.isidentifier() and stem != "__init__":
                yield f"{module.name}.{stem}", entry.path
        for entry in entries:
            if entry.is_dir() and not skipped_folder(entry.path) and entry.name.isidentifier():
                init = os.path.join(entry.path, "__init__.py")
                file = init if os.path.isfile(init) else None
                yield from submodules(
                    FoundModule(f"{module.name}.{entry.name}", file, (entry.path,))
                )


def skipped_folder(path: str) -> bool:
    """Whether a folder is hidden, generated or a virtual environment."""
    name = os.path.basename(path)
    return (
        name.startswith(".")
        or name in SKIPPED
        or name.endswith(".egg-info")
        or os.path.exists(os.path.join(path, "pyvenv.cfg"))
    )


def folder_files(folder: str) -> Iterator[str]:
    """Every .py, .yaml and .yml file below ``folder``, sorted; hidden folders, caches, build
    folders and virtual environments are left out, links to folders are not followed."""
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if not skipped_folder(os.path.join(parent, name))
        )
        for name in sorted(files):
            if name.endswith((".py", ".yaml", ".yml")) and not name.startswith("."):
                yield os.path.normpath(os.path.join(parent, name))


def is_spec(path: str) -> bool:
    """Whether a YAML file found in a folder is an op spec rather than some tool's settings."""
    try:
        text = read_regular(path, _HEAD_BYTES, head=_HEAD_BYTES).decode(errors="replace")
    except OSError:
        return False
    return _MARKS.search(text) is not None


def dotted_of_file(path: str) -> tuple[str, str]:
    """(root folder, dotted name) of the .py file at ``path``.

    The root is the first folder above that has no ``__init__.py``, or a name such as ``my-ops``,
    which no import statement can name; for a file outside packages it is the file's own folder and
    the dotted name is its stem.
    """
    folder, base = os.path.split(os.path.abspath(path))
    stem = os.path.splitext(base)[0]
    parts = [] if stem == "__init__" else [stem]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        above, name = os.path.split(folder)
        if not name.isidentifier():
            break
        folder = above
        parts.insert(0, name)
    return folder, ".".join(parts) or stem


def nearest_modules(name: str) -> list[str]:
    """Importable modules whose names look like ``name``."""
    head, _, tail = name.rpartition(".")
    if not head:
        return nearest(name, _top_level_names(), limit=3)
    parent = find_module(head)
    if parent is None:
        return [
            f"{other}.{tail}" for other in nearest_modules(head) if find_module(f"{other}.{tail}")
        ]
    names = [
        os.path.splitext(entry.name)[0] for folder in parent.folders for entry in _entries(folder)
    ]
    near = nearest(tail, filter(str.isidentifier, names), limit=3)
    return [f"{head}.{other}" for other in near]


def _top_level(name: str, path: list[str]) -> ModuleSpec | None:
    spec = _guarded(partial(PathFinder.find_spec, name, path))
    regular = spec is not None and spec.loader is not None and spec.origin is not None
    if regular and name not in sys.builtin_module_names:
        return spec
    for finder in list(sys.meta_path):
        if finder is PathFinder or not hasattr(finder, "find_spec"):
            continue
        other = _guarded(partial(finder.find_spec, name, None, None))
        if other is not None and (other.loader is not None or spec is None):
            return other
    return spec


def _guarded(find: Callable[[], ModuleSpec | None]) -> ModuleSpec | None:
    # Finders belong to installed packages and may raise whatever they like.
    try:
        return find()
    except Exception:
        return None


def _found(name: str, spec: ModuleSpec) -> FoundModule:
    origin = spec.origin
    if origin == "frozen":
        origin = getattr(spec.loader_state, "filename", None)
    file = origin if origin and origin.endswith(".py") and os.path.isfile(origin) else None
    folders = spec.submodule_search_locations
    return FoundModule(name, file, tuple(folders) if folders is not None else ())


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _top_level_names() -> set[str]:
    names = set(sys.stdlib_module_names)
    suffixes = (".py", *EXTENSION_SUFFIXES)
    for folder in search_path():
        for entry in _entries(folder):
            stem = entry.name.split(".")[0]
            if stem.isidentifier() and (entry.name == stem or entry.name.endswith(suffixes)):
                names.add(stem)
    return names
