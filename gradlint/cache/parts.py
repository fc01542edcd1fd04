"""What an operator is made of: its file, and all that this imports, includes and builds, found from
texts alone."""

from __future__ import annotations

import ast
import fnmatch
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator

from gradlint.base.errors import SpecError
from gradlint.base.files import read_regular
from gradlint.model.op import OpRef
from gradlint.model.settings import Settings
from gradlint.spec.load import load as load_spec
from gradlint.targets.locate import dotted_of_file, find_module
from gradlint.targets.source_file import MAX_BYTES, dotted, read_source

#: Endings of native sources and of what they include.
NATIVE = (
    *(".c", ".cc", ".cpp", ".cxx", ".cu"),
    *(".h", ".hh", ".hpp", ".hxx", ".cuh", ".inl", ".inc"),
)
_INCLUDE = re.compile(r"^\s*#\s*include\s*[\"<]([^\">]+)[\">]", re.MULTILINE)

#: Calls that import a module by its name.
_IMPORTING = ("import_module", "__import__")


def below(path: str, folder: str) -> bool:
    """Whether ``path`` is ``folder`` or lies in it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def anywhere(name: str) -> Iterator[str]:
    """The files that importing ``name`` runs, wherever they lie: its own, and those of the packages
    around it."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        found = find_module(".".join(parts[:count]))
        if found is None:
            return
        if found.file is not None:
            yield found.file


class Parts:
    """Finds the files that others are made of, and remembers what it found.

    Args:
        root: folder of the repository; what lies outside of it is looked at where ``modules`` finds
            it.
        native: gives the native sources of the repository, by their names without folders.
        exists: whether there is, or was, a file.
        concerns: whether a file is looked at, and what it is made of.
        modules: gives the files of a module that lie elsewhere than in the repository.
    """

    def __init__(
        self,
        root: str,
        native: Callable[[], dict[str, set[str]]],
        *,
        exists: Callable[[str], bool] = os.path.isfile,
        concerns: Callable[[str], bool] | None = None,
        modules: Callable[[str], Iterable[str]] = lambda _: (),
    ) -> None:
        self._root = root
        self._native = native
        self._exists = exists
        self._concerns = concerns or (lambda file: below(file, root))
        self._elsewhere = modules
        self._known: dict[str, frozenset[str]] = {}

    def closure(self, files: Iterable[str]) -> Iterator[str]:
        """``files``, and all that they are made of, directly or not, each once."""
        waiting = [os.path.realpath(file) for file in files]
        seen: set[str] = set()
        while waiting:
            file = waiting.pop()
            if file in seen or not self._concerns(file):
                continue
            seen.add(file)
            yield file
            if file not in self._known:
                self._known[file] = frozenset(self._parts(file))
            waiting += self._known[file]

    # -- inner workings -------------------------------------------------------------------------

    def _parts(self, file: str) -> Iterator[str]:
        if file.endswith(".py"):
            yield from self._parts_of_python(file)
        elif file.endswith((".yaml", ".yml")):
            yield from self._parts_of_spec(file)
        elif file.endswith(NATIVE):
            try:
                text = read_regular(file, MAX_BYTES).decode(errors="replace")
            except OSError:
                return
            for name in _INCLUDE.findall(text):
                yield from self._native().get(os.path.basename(name), ())

    def _parts_of_python(self, file: str) -> Iterator[str]:
        source = read_source(file)
        root, own = dotted_of_file(file)
        package = own if os.path.basename(file) == "__init__.py" else own.rpartition(".")[0]
        yield from self.modules(package, root)
        for node in ast.walk(source.tree) if source is not None and source.tree is not None else ():
            for name in _imported(node, package):
                yield from self.modules(name, root)
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from self._sources(node.value)

    def _parts_of_spec(self, file: str) -> Iterator[str]:
        try:
            spec = load_spec(file)
        except SpecError:
            return
        folder = os.path.dirname(file)
        for source in spec.extension.sources if spec.extension is not None else ():
            yield os.path.realpath(os.path.join(folder, source))
        module = (spec.op or "").replace("::", ":").partition(":")[0]
        if module.endswith(".py"):
            yield os.path.realpath(os.path.join(folder, module))
            yield os.path.realpath(module)
        elif module and not module.startswith("torch."):
            yield from self.modules(module, folder)
        for name in spec.import_:
            yield from self.modules(name, folder)

    def _sources(self, text: str) -> Iterator[str]:
        """The native sources that a text may name: by their names alone, as folders are often put
        together when the program runs; with ``*`` and ``?``."""
        name = text.replace("\\", "/").rpartition("/")[2]
        if not name.endswith(NATIVE):
            return
        if "*" not in name and "?" not in name:
            yield from self._native().get(name, ())
            return
        for other, paths in self._native().items():
            if fnmatch.fnmatchcase(other, name):
                yield from paths

    def modules(self, name: str, root: str) -> Iterator[str]:
        """The files that importing ``name`` runs: its own, and those of the packages around it,
        also if they are gone.

        Args:
            name: dotted; may end with a name that is no module.
            root: folder in which the importing file's own modules lie.
        """
        parts = name.split(".") if name else []
        here = os.getcwd()
        inside = [
            entry for entry in sys.path if entry and below(os.path.realpath(entry), self._root)
        ]
        folders = dict.fromkeys([root, here, self._root, os.path.join(self._root, "src"), *inside])
        for folder in map(os.path.realpath, folders):
            for count in range(1, len(parts) + 1):
                stem = os.path.join(folder, *parts[:count])
                for file in (f"{stem}.py", os.path.join(stem, "__init__.py")):
                    if self._exists(file):
                        yield file
        if name:
            yield from map(os.path.realpath, self._elsewhere(name))


def _imported(node: ast.AST, package: str) -> Iterator[str]:
    """Absolute dotted names of what a statement or call imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = package.split(".") if package else []
        base = base[: len(base) - node.level + 1] if node.level else []
        whole = ".".join([*base, *(node.module.split(".") if node.module else [])])
        yield whole
        yield from (f"{whole}.{alias.name}" if whole else alias.name for alias in node.names)
    elif isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in _IMPORTING:
        first = node.args[0] if node.args else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            name = first.value
            yield f"{package}{name}" if name.startswith(".") else name


def files_of(ref: OpRef, settings: Settings) -> list[str]:
    """The files that ``ref`` and its inputs come from, as far as its text says; empty where it does
    not, as for an operator that is known to PyTorch by its name alone."""
    files = []
    if ref.source in ("file", "spec"):
        files.append(ref.path)
    elif ref.source == "module":
        found = find_module(ref.path)
        files += [found.file] if found is not None and found.file is not None else []
    if ref.location is not None:
        files.append(ref.location.file)
    given = (settings.inputs or "").partition(":")[0]
    if files and given.endswith(".py") and os.path.isfile(given):
        files.append(given)
    return files
