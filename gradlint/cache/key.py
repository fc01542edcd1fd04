"""The key of a verdict: a hash of everything that it depends on, as far as texts tell.

What the texts do not tell, the worker sees when the verdict is made (files that are read, modules
that are imported by a name which is put together): ``gradlint.cache.verdicts`` holds that against
the files of today as well.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from gradlint.base.digests import digest, digest_of, gradlint_digest
from gradlint.cache import here
from gradlint.cache.parts import NATIVE, Parts, anywhere, below, files_of
from gradlint.model.op import OpRef
from gradlint.model.report import jsonable
from gradlint.model.settings import Settings
from gradlint.targets.beside import MOST_FILES as MOST_BESIDE
from gradlint.targets.beside import example_folders, texts_beside
from gradlint.targets.locate import skipped_folder
from gradlint.targets.source_file import read_source

#: Changes with what is kept, and how. Part of every key.
FORMAT = 1

#: Settings that say nothing of what is found out about one operator.
NO_MATTER = frozenset(
    (
        *("baseline", "cache", "cluster", "debug", "fail_on", "jobs", "max_failures"),
        *("paths", "require_coverage", "require_device"),
    )
)

#: Files of the operator's own that are part of a key (heuristic: beyond it the files are those of a
#: whole framework, and to hash them for every operator takes longer than to check it).
MOST_FILES = 20_000

#: Names by which the environment is read.
_ENVIRON = ("environ", "environb")
_GETENV = ("getenv", "getenvb")
_BY_NAME = ("get", "pop", "setdefault", "__getitem__", "__contains__")


@dataclass(frozen=True)
class Key:
    """What a verdict depends on.

    Args:
        text: the hash; "" where there can be none.
        why: why there can be none, in words that complete "it …".
        parts: the hash of each kind of thing, by name.
        files: the files that count by their content.
    """

    text: str
    why: str = ""
    parts: dict[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Made:
    """What operators that come from the same files share."""

    files: tuple[str, ...] = ()
    why: str = ""
    parts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Text:
    """What one file says that matters beside its content."""

    constants: frozenset[str] = frozenset()
    every: bool = False


class Keys:
    """Makes the keys of a run.

    Args:
        settings: of the run.
        folder: the working directory.
    """

    def __init__(self, settings: Settings, folder: str | None = None) -> None:
        self._settings = settings
        self.folder = os.path.realpath(folder or os.getcwd())
        self.root = _repository(self.folder)
        self._parts = Parts(
            self.root, lambda: self._native, concerns=self.counts, modules=_modules_elsewhere
        )
        self._digests: dict[str, str] = {}
        self._made: dict[tuple[str, ...], _Made] = {}
        self._beside: dict[str, dict[str, bytes]] = {}

    def counts(self, file: str) -> bool:
        """Whether ``file`` counts by its content, and not as a part of what is installed."""
        return not file.startswith(here.installed_folders()) and not below(file, _GRADLINT)

    def key(self, ref: OpRef) -> Key:
        """The key of the verdict on ``ref``, as its files are now."""
        given = tuple(self._given(ref))
        if ref.source != "library" and not given:
            return Key("", "comes from no file that can be found")
        if given not in self._made:
            self._made[given] = self._made_of(given)
        made = self._made[given]
        if made.why:
            return Key("", made.why)
        parts = {
            "format": str(FORMAT),
            "examples": self._examples(ref),
            "operator": digest(json.dumps(jsonable(ref), sort_keys=True)),
            "settings": digest(json.dumps(self._told(), sort_keys=True)),
            **made.parts,
            "python": here.python_digest(),
            "gradlint": gradlint_digest(),
            "installed": here.installed_digest(),
            "processor": digest(here.processor()),
        }
        if any(device != "cpu" for device in self._settings.devices):
            parts["graphics"] = digest(here.graphics())
        text = digest(*(f"{name} {value}" for name, value in sorted(parts.items())))
        return Key(text, "", parts, made.files)

    def shown(self, file: str) -> str:
        """``file`` as a key names it: seen from the working directory where it lies in the
        repository, so that another checkout of it has the same keys."""
        inside = below(file, self.root) or below(file, self.folder)
        return os.path.relpath(file, self.folder) if inside else file

    def changed(self, key: Key) -> bool:
        """Whether one of the files of ``key`` changed since it was made."""
        try:
            return any(digest_of(file) != self._digests[file] for file in key.files)
        except OSError:
            return True

    # -- inner workings -------------------------------------------------------------------------

    def _given(self, ref: OpRef) -> list[str]:
        """The files that the search begins with."""
        settings = self._settings
        files = [*files_of(ref, settings)]
        named = [*settings.imports]
        if ref.source == "module":
            named.append(ref.path)
        inputs = (settings.inputs or "").partition(":")[0]
        if inputs.endswith(".py"):
            files.append(inputs)
        elif inputs.replace(".", "").isidentifier():
            named.append(inputs)
        for name in named:
            files += self._parts.modules(name, self.folder)
        return files

    def _made_of(self, given: tuple[str, ...]) -> _Made:
        files = sorted(self._parts.closure(given))
        if len(files) > MOST_FILES:
            return _Made(why=f"is made of more than {MOST_FILES:,} files")
        try:
            for file in files:
                if file not in self._digests:
                    self._digests[file] = digest_of(file)
        except OSError as error:
            return _Made(why=f"has a file that can't be read ({error.strerror or error})")
        texts = [_said(file, self._digests[file]) for file in files if file.endswith(".py")]
        constants = {text for found in texts for text in found.constants}
        variables = here.variables(constants, every=any(found.every for found in texts))
        parts = {
            "sources": digest(*(f"{self.shown(file)} {self._digests[file]}" for file in files)),
            "variables": digest(json.dumps(variables, sort_keys=True)),
        }
        if any(file.endswith(NATIVE) for file in files):
            parts["compilers"] = digest(here.compilers())
        return _Made(tuple(files), "", parts)

    def _examples(self, ref: OpRef) -> str:
        """Of the files that are not imported and that mention the operator, where inputs that are
        inferred are looked for."""
        file = ref.location.file if ref.location is not None else ref.path
        if not file.endswith(".py"):
            return ""
        name = ref.attribute.rpartition(".")[2].encode()
        found = []
        for folder in example_folders(file):
            if folder not in self._beside:
                # One more, as the operator's own is among them here.
                self._beside[folder] = dict(texts_beside("", folder, MOST_BESIDE + 1))
            found += [
                f"{self.shown(path)} {digest(data)}"
                for path, data in self._beside[folder].items()
                if name in data
            ]
        return digest(*found)

    def _told(self) -> dict[str, object]:
        """The settings that matter."""
        return {
            item.name: jsonable(getattr(self._settings, item.name))
            for item in dataclasses.fields(self._settings)
            if item.name not in NO_MATTER
        }

    @cached_property
    def _native(self) -> dict[str, set[str]]:
        """The native sources of the repository, by their names without folders."""
        found: dict[str, set[str]] = {}
        for parent, folders, names in os.walk(self.root):
            folders[:] = [
                name for name in folders if not skipped_folder(os.path.join(parent, name))
            ]
            for name in names:
                if name.endswith(NATIVE):
                    found.setdefault(name, set()).add(os.path.join(parent, name))
        return found


_GRADLINT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def _modules_elsewhere(name: str) -> Iterator[str]:
    """The files of a module that lies on ``sys.path``, but for those of what is installed."""
    for file in anywhere(name):
        if not os.path.realpath(file).startswith(here.installed_folders()):
            yield file


def _repository(folder: str) -> str:
    """The folder upward that git, or another of its kind, knows as the root; else ``folder``."""
    above = folder
    while True:
        if any(os.path.exists(os.path.join(above, name)) for name in (".git", ".hg", ".jj")):
            return above
        parent = os.path.dirname(above)
        if parent == above:
            return folder
        above = parent


@lru_cache(maxsize=4096)
def _said(file: str, digest: str) -> _Text:
    source = read_source(file)
    if source is None or source.tree is None:
        return _Text(every=True)
    constants: set[str] = set()
    named = told = 0
    for node in ast.walk(source.tree):
        match node:
            case ast.Constant(value=str(text)):
                constants.add(text)
            case ast.alias(name=name, asname=other) if other and name in (*_ENVIRON, *_GETENV):
                named += 1  # by another name, under which it is not looked for
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in (*_ENVIRON, *_GETENV):
                named += 1
            case ast.Constant(value=bytes(data)):
                constants.add(data.decode(errors="replace"))
        told += _by_constant(node)
    return _Text(frozenset(constants), every=named > told)


def _by_constant(node: ast.AST) -> bool:
    """Whether ``node`` reads one variable of the environment, whose name is a constant."""
    match node:
        case ast.Subscript(value=value, slice=ast.Constant()):
            return _is(value, _ENVIRON)
        case ast.Compare(left=ast.Constant(), ops=[ast.In() | ast.NotIn()], comparators=[value]):
            return _is(value, _ENVIRON)
        case ast.Call(func=ast.Attribute(value=value, attr=name), args=[ast.Constant(), *_]):
            return (name in _BY_NAME and _is(value, _ENVIRON)) or name in _GETENV
        case ast.Call(func=ast.Name(id=name), args=[ast.Constant(), *_]):
            return name in _GETENV
    return False


def _is(node: ast.AST, names: tuple[str, ...]) -> bool:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name in names
    return False
