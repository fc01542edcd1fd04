"""Importing the module of a target in a worker, as ``python -m`` or a script would."""

from __future__ import annotations

import importlib
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

import torch

from gradlint.base.errors import TargetError
from gradlint.model.op import OpRef
from gradlint.model.settings import Settings
from gradlint.targets._missing import unknown_file, unknown_module
from gradlint.targets.bytecode import compiled_ahead
from gradlint.targets.load_error import attempt
from gradlint.targets.locate import dotted_of_file, find_module, forget_modules
from gradlint.targets.source_file import refuse_unusable

_LIBRARIES = (".so", ".dll", ".dylib", ".pyd")


def import_target(ref: OpRef, settings: Settings) -> ModuleType:
    """The module that ``ref`` points into, after those that the settings name.

    Raises:
        TargetError: no such module exists.
        LoadError: its code raised.
    """
    import_named(settings)
    with compiled_ahead():
        return import_file(ref.path) if ref.source == "file" else import_module(ref.path)


def import_named(settings: Settings) -> None:
    """Import what ``--import`` names: modules, .py files, shared libraries of ops."""
    here_importable()
    for name in settings.imports:
        if name.endswith(_LIBRARIES) and os.path.exists(name):
            attempt(f"loading `{name}`", partial(torch.ops.load_library, name))
        elif name.endswith(".py"):
            import_file(name)
        else:
            import_module(name)


def here_importable() -> None:
    """Put the working directory first on ``sys.path``, as ``python -m`` does."""
    here = os.getcwd()
    if "" not in sys.path[:1] and here not in sys.path:
        sys.path.insert(0, here)


def import_module(name: str) -> ModuleType:
    """The module with the dotted name ``name``."""
    here_importable()
    loaded = sys.modules.get(name)
    if loaded is not None:
        return loaded
    forget_modules()
    found = find_module(name)
    root = found.file or (found.folders[0] if found.folders else "") if found else ""
    top = find_module(name.partition(".")[0])
    if top is not None and top.folders:
        root = top.folders[0]
    try:
        return attempt(f"importing `{name}`", lambda: importlib.import_module(name), root)
    except Exception as error:
        missing = getattr(getattr(error, "error", None), "name", None)
        kind = getattr(error, "kind", "")
        if kind == "missing" and missing and f"{name}.".startswith(f"{missing}."):
            raise unknown_module(name) from None
        raise


def import_file(path: str) -> ModuleType:
    """The module in the .py file at ``path``.

    A file of a package is imported under its dotted name, so that relative imports work; any
    other is loaded with its folder importable, as a script would be.
    """
    here_importable()
    if not os.path.exists(path):
        raise unknown_file(path)
    refuse_unusable(path)
    absolute = os.path.abspath(path)
    root, name = dotted_of_file(absolute)
    in_package = os.path.dirname(absolute) != root
    for known in (name, _own_name(absolute)):
        loaded = sys.modules.get(known)
        if loaded is not None and _same(loaded, absolute):
            return loaded
    forget_modules()
    shadows = _shadows(name, absolute) and not in_package
    where = os.path.join(root, name.partition(".")[0]) if in_package else absolute
    with _importable(root, last=shadows):
        if not shadows and all(part.isidentifier() for part in name.split(".")):
            module = attempt(f"importing `{path}`", lambda: _import(name, absolute), where)
            if module is not None:
                return module
        return attempt(f"importing `{path}`", lambda: _execute(absolute), where)


@dataclass(frozen=True)
class PlaceOfFile:
    """How the .py file of a module is imported.

    Args:
        root: the folder that must be importable.
        name: the dotted name that the module has then.
        in_package: whether it is part of a package.
        shadows: whether it is no part of one, and has the name of another module.
    """

    root: str
    name: str
    in_package: bool
    shadows: bool


def place_of_file(path: str) -> PlaceOfFile:
    """How :func:`import_file` imports ``path``; nothing is imported for this."""
    forget_modules()
    absolute = os.path.abspath(path)
    root, name = dotted_of_file(absolute)
    in_package = os.path.dirname(absolute) != root
    shadows = not in_package and _shadows(name, absolute)
    return PlaceOfFile(root, name, in_package, shadows)


def _import(name: str, path: str) -> ModuleType | None:
    """The module called ``name`` if that is the file at ``path``, else None."""
    top = sys.modules.get(name.partition(".")[0])
    if top is not None and name.partition(".")[0] == name:
        return None  # taken by another module of that name
    if top is not None and not _below(top, path):
        return None
    module = importlib.import_module(name)
    return module if _same(module, path) else None


def _execute(path: str) -> ModuleType:
    name = _own_name(path)
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TargetError(f"`{path}` can't be loaded as a Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look their module up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


@contextmanager
def _importable(folder: str, *, last: bool) -> Iterator[None]:
    """Put ``folder`` on ``sys.path``, first unless ``last``. After the body it is at the end, so
    that imports inside functions find it but it hides no module of Python."""
    if not last:
        sys.path.insert(0, folder)
    elif folder not in sys.path:
        sys.path.append(folder)
    try:
        yield
    finally:
        if not last and folder in sys.path:
            sys.path.remove(folder)
        if folder not in sys.path:
            sys.path.append(folder)


def _own_name(path: str) -> str:
    stem = os.path.splitext(os.path.basename(path))[0]
    letters = "".join(letter if letter.isalnum() else "_" for letter in stem)
    return f"_gradlint_{letters}_{zlib.crc32(os.path.realpath(path).encode()):08x}"


def _shadows(name: str, path: str) -> bool:
    """Whether a file outside packages has the name of another module: ``random.py``, or an
    ``entmax.py`` that itself imports the package entmax."""
    if name in sys.stdlib_module_names:
        return True
    other = find_module(name)
    return other is not None and not (other.file and os.path.realpath(other.file) == _real(path))


def _below(package: ModuleType, path: str) -> bool:
    folders = [
        os.path.realpath(folder) + os.sep for folder in module_attribute(package, "__path__", [])
    ]
    return any(_real(path).startswith(folder) for folder in folders)


def _same(module: ModuleType, path: str) -> bool:
    file = module_attribute(module, "__file__")
    return isinstance(file, str) and os.path.realpath(file) == _real(path)


def module_attribute(module: ModuleType, name: str, default: Any = None) -> Any:
    """An attribute of a module, without calling its ``__getattr__``, which may raise."""
    return vars(module).get(name, default) if isinstance(module, ModuleType) else default


def _real(path: str) -> str:
    return os.path.realpath(path)
