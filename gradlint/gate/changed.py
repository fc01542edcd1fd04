"""``--changed-since REV``: operators for which nothing changed that they are made of."""

from __future__ import annotations

import ast
import fnmatch
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property

from gradlint.base.errors import GradlintError, SpecError
from gradlint.base.files import read_regular
from gradlint.model.op import OpRef
from gradlint.model.settings import Settings
from gradlint.spec.load import load as load_spec
from gradlint.targets.locate import dotted_of_file, find_module
from gradlint.targets.source_file import MAX_BYTES, dotted, read_source

#: Endings of native sources and of what they include.
_NATIVE = (
    *(".c", ".cc", ".cpp", ".cxx", ".cu"),
    *(".h", ".hh", ".hpp", ".hxx", ".cuh", ".inl", ".inc"),
)
_INCLUDE = re.compile(r"^\s*#\s*include\s*[\"<]([^\">]+)[\">]", re.MULTILINE)

#: Calls that import a module by its name.
_IMPORTING = ("import_module", "__import__")

_OPTION = "--changed-since"


class Changes:
    """What changed in a git repository since a revision: in commits, in the working tree, and files
    that git does not know yet.

    Args:
        revision: a commit, branch or tag.

    Raises:
        GradlintError: git is not there, this is no repository, or there is no such revision.
    """

    def __init__(self, revision: str) -> None:
        self.revision = revision
        self.root = os.path.realpath(_repository())
        commit = self._commit(revision)
        diff = ("diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", commit, "--")
        others = ("ls-files", "--others", "--exclude-standard", "-z")
        self.files = {*self._paths(*diff), *self._paths(*others)}
        self._imports: dict[str, frozenset[str]] = {}

    def concern(self, files: Iterable[str]) -> bool:
        """Whether one of ``files`` changed, or something that it imports, includes or builds,
        directly or not."""
        waiting = [os.path.realpath(file) for file in files]
        seen: set[str] = set()
        while waiting:
            file = waiting.pop()
            if file in seen or not _below(file, self.root):
                continue
            seen.add(file)
            if self._changed(file):
                return True
            if file not in self._imports:
                self._imports[file] = frozenset(self._parts(file))
            waiting += self._imports[file]
        return False

    # -- git ------------------------------------------------------------------------------------

    def _commit(self, revision: str) -> str:
        if revision and not revision.startswith("-"):
            found = _git(self.root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
            if found.returncode == 0:
                return found.stdout.decode().strip()
        raise GradlintError(
            f"{revision!r} is no revision of the repository in {self.root}",
            place=_OPTION,
            hint="name a commit, a branch or a tag; in CI, fetch the whole history first "
            "(`fetch-depth: 0`), or `git fetch origin main`",
        )

    def _paths(self, *words: str) -> set[str]:
        done = _git(self.root, *words)
        if done.returncode != 0:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            raise GradlintError(
                f"git {words[0]}: {lines[-1] if lines else 'failed'}", place=_OPTION
            )
        names = filter(None, done.stdout.split(b"\0"))
        return {os.path.join(self.root, os.fsdecode(name)) for name in names}

    @cached_property
    def _native(self) -> dict[str, set[str]]:
        """The native sources of the repository, by their names without folders."""
        found: dict[str, set[str]] = {}
        for path in {*self._paths("ls-files", "-z"), *self.files}:
            if path.endswith(_NATIVE):
                found.setdefault(os.path.basename(path), set()).add(path)
        return found

    def _changed(self, file: str) -> bool:
        """Whether ``file`` changed, or a submodule that it lies in."""
        while len(file) > len(self.root):
            if file in self.files:
                return True
            file = os.path.dirname(file)
        return False

    # -- what a file is made of -----------------------------------------------------------------

    def _parts(self, file: str) -> Iterator[str]:
        if file.endswith(".py"):
            yield from self._parts_of_python(file)
        elif file.endswith((".yaml", ".yml")):
            yield from self._parts_of_spec(file)
        elif file.endswith(_NATIVE):
            try:
                text = read_regular(file, MAX_BYTES).decode(errors="replace")
            except OSError:
                return
            for name in _INCLUDE.findall(text):
                yield from self._native.get(os.path.basename(name), ())

    def _parts_of_python(self, file: str) -> Iterator[str]:
        source = read_source(file)
        root, own = dotted_of_file(file)
        package = own if os.path.basename(file) == "__init__.py" else own.rpartition(".")[0]
        yield from self._modules(package, root)
        for node in ast.walk(source.tree) if source is not None and source.tree is not None else ():
            for name in _imported(node, package):
                yield from self._modules(name, root)
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
            yield from self._modules(module, folder)
        for name in spec.import_:
            yield from self._modules(name, folder)

    def _sources(self, text: str) -> Iterator[str]:
        """The native sources that a text may name: by their names alone, as folders are often put
        together when the program runs; with ``*`` and ``?``."""
        name = text.replace("\\", "/").rpartition("/")[2]
        if not name.endswith(_NATIVE):
            return
        if "*" not in name and "?" not in name:
            yield from self._native.get(name, ())
            return
        for other, paths in self._native.items():
            if fnmatch.fnmatchcase(other, name):
                yield from paths

    def _modules(self, name: str, root: str) -> Iterator[str]:
        """The files that importing ``name`` runs: its own, and those of the packages around it,
        also if they are gone."""
        parts = name.split(".") if name else []
        here = os.getcwd()
        inside = [
            entry for entry in sys.path if entry and _below(os.path.realpath(entry), self.root)
        ]
        folders = dict.fromkeys([root, here, self.root, os.path.join(self.root, "src"), *inside])
        for folder in map(os.path.realpath, folders):
            for count in range(1, len(parts) + 1):
                stem = os.path.join(folder, *parts[:count])
                for file in (f"{stem}.py", os.path.join(stem, "__init__.py")):
                    if file in self.files or os.path.isfile(file):
                        yield file


class Saved(Changes):
    """Files that were just saved, for which no git is asked.

    Args:
        files: their paths; root: the folder below which files are looked at.
    """

    def __init__(self, files: Iterable[str], root: str) -> None:
        self.revision = "the last look"
        self.root = os.path.realpath(root)
        self.files = {os.path.realpath(file) for file in files}
        self._imports = {}

    @cached_property
    def _native(self) -> dict[str, set[str]]:
        """The native sources that were saved; what includes them is not known without git."""
        found: dict[str, set[str]] = {}
        for path in self.files:
            if path.endswith(_NATIVE):
                found.setdefault(os.path.basename(path), set()).add(path)
        return found


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


def unchanged(changes: Changes, settings: Settings, ref: OpRef) -> str:
    """Why ``ref`` is left out of a run on what changed; "" if it is not."""
    files = files_of(ref, settings)
    if not files or changes.concern(files):
        return ""
    return f"unchanged since {changes.revision}"


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _repository() -> str:
    done = _git(".", "rev-parse", "--show-toplevel")
    if done.returncode != 0:
        raise GradlintError(
            "this is not a git repository",
            place=_OPTION,
            hint=f"run gradlint inside of the checkout, or leave {_OPTION} out",
        )
    return os.fsdecode(done.stdout.removesuffix(b"\n"))


def _git(folder: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["git", *words], cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, check=False
        )
    except OSError as error:
        raise GradlintError(
            f"git can't be run: {error.strerror or error}",
            place=_OPTION,
            hint=f"install git, or leave {_OPTION} out",
        ) from None
