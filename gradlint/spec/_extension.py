"""The ``extension`` of a spec: building and loading its sources, and their functions as ops."""

from __future__ import annotations

import ast
import inspect
import os
import re
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from gradlint.base.errors import NotHere, SpecError
from gradlint.base.files import unusable
from gradlint.base.text import nearest
from gradlint.model.op import Op
from gradlint.model.settings import Settings
from gradlint.native.errors import BuildError
from gradlint.native.extension import CPP_ENDINGS, CUDA_ENDINGS, load_extension
from gradlint.native.reference import usable_devices, why_no_cuda
from gradlint.spec._model import Extension, OpSpec
from gradlint.spec._yaml import Document, Path
from gradlint.targets.build import from_object
from gradlint.targets.signature import signature_of_node

_SOURCES: Path = ("extension", "sources")

#: What ninja, which runs the compilers, takes for syntax in a path, and spaces in the name of a
#: source, which torch's extension builder writes without the escape that ninja asks for.
_UNBUILT = re.compile(r"[\x00-\x1f\x7f$:]|\s[^/]*$")
_WHY_UNBUILT = "torch's extension builder can't build a path with `:` or `$`, or a name with spaces"

#: Names that pybind11 gives to arguments that have none.
_UNNAMED = re.compile(r"arg\d+")


@dataclass(frozen=True)
class Opened:
    """A loaded extension.

    Args:
        name: of the extension.
        module: its Python module, if it has one.
        sources: what it was built from.
        notes: what was left out, in words.
    """

    name: str
    module: ModuleType | None
    sources: tuple[str, ...]
    notes: tuple[str, ...]

    def attribute(self, op: str) -> str | None:
        """What ``op`` names in the extension (``name:function``); None if it is not in it."""
        found = re.match(rf"^{self.name}(?:::?|\.)(?P<attribute>[^\W\d][\w.]*)$", op)
        return found["attribute"] if found else None


def open_extension(spec: OpSpec, document: Document, settings: Settings) -> Opened:
    """Build and load the extension that ``spec`` names.

    Raises:
        SpecError: a source is missing or can't be built; at the source's place in the spec.
        NotHere: it needs CUDA, which is absent here.
    """
    wanted = spec.extension
    assert wanted is not None
    folder = os.path.dirname(os.path.abspath(spec.path))
    name = wanted.name or _identifier(spec)
    sources = _sources(wanted, document, folder)
    include_dirs = _folders(wanted, document, folder)
    if not name.isidentifier():
        document.problem(
            document.value(("extension", "name")),
            f"`{name}` is not a valid extension name",
            "a word of letters, digits and underscores that begins with a letter",
        )
    _raise(document)
    used, notes, cuda = _for_this_machine(spec, document, settings, sources)
    try:
        loaded = load_extension(
            name,
            used,
            cflags=wanted.extra_cflags,
            cuda_cflags=wanted.extra_cuda_cflags,
            ldflags=wanted.extra_ldflags,
            include_dirs=include_dirs,
            with_cuda=cuda,
        )
    except BuildError as error:
        _note_failures(document, sources, error, notes)
        raise SpecError(document.path, document.problems) from None
    return Opened(name, loaded.module, tuple(used), tuple(notes))


def function_op(opened: Opened, attribute: str, spec: OpSpec, document: Document) -> Op:
    """The op for a function of the extension's Python module.

    Raises:
        SpecError: the extension has no module, or the module no such name.
    """
    thing: Any = opened.module
    for part in attribute.split("."):
        thing = getattr(thing, part, None)
    if thing is None:
        message = f"`{opened.name}` defines no `{attribute}`"
        names = [n for n in dir(opened.module) if not n.startswith("_")] if opened.module else []
        found = nearest(attribute, names)
        hint = f"did you mean `{opened.name}:{found[0]}`?" if found else ""
        if opened.module is None:
            message = f"the extension `{opened.name}` has no Python module"
            hint = (
                "bind the function with PYBIND11_MODULE(TORCH_EXTENSION_NAME, m), or name the "
                "operator that it registers: torch.ops.ns.name"
            )
        document.problem(document.value(("op",)), message, hint)
        raise SpecError(document.path, document.problems)
    op = from_object(thing, name=attribute.rpartition(".")[2])
    op.signature = op.signature or _signature(thing, spec)
    return op


# -- sources ------------------------------------------------------------------------------------


def _sources(wanted: Extension, document: Document, folder: str) -> list[str]:
    made = []
    stems: dict[str, str] = {}
    for index, text in enumerate(wanted.sources):
        mark = document.value((*_SOURCES, index))
        path = os.path.normpath(os.path.join(folder, os.path.expanduser(text)))
        stem, ending = os.path.splitext(os.path.basename(path))
        made.append(path)
        if ending not in (*CPP_ENDINGS, *CUDA_ENDINGS):
            document.problem(
                mark,
                f"`{text}` is not a source file: its name must end in one of "
                f"{', '.join((*CPP_ENDINGS, *CUDA_ENDINGS))}",
                "headers are found next to the sources and in `include_dirs`",
            )
        elif not os.path.exists(path):
            document.problem(mark, f"there is no file `{text}`", _near_file(text, path, folder))
        elif not os.path.isfile(path):
            document.problem(mark, f"`{text}` {unusable(path)}")
        elif _UNBUILT.search(path):
            document.problem(mark, f"`{text}`: {_WHY_UNBUILT}", "rename it, or its folder")
        other = stems.setdefault(stem + (ending if ending in CUDA_ENDINGS else ""), text)
        if other is not text:
            document.problem(
                mark,
                f"`{other}` and `{text}` would give object files of the same name",
                "rename one of them",
            )
    return made


def _near_file(text: str, path: str, folder: str) -> str:
    parent = os.path.dirname(path)
    try:
        names = sorted(os.listdir(parent))
    except OSError:
        return f"there is no folder {parent}; paths are relative to the spec"
    found = nearest(os.path.basename(path), names)
    if not found:
        return "paths are relative to the spec"
    return f"did you mean `{os.path.relpath(os.path.join(parent, found[0]), folder)}`?"


def _folders(wanted: Extension, document: Document, folder: str) -> list[str]:
    made = []
    for index, text in enumerate(wanted.include_dirs):
        path = os.path.normpath(os.path.join(folder, os.path.expanduser(text)))
        made.append(path)
        mark = document.value(("extension", "include_dirs", index))
        if not os.path.isdir(path):
            document.problem(mark, f"there is no folder `{text}`", "paths are relative to the spec")
        elif re.search(r"[\x00-\x1f\x7f]|\s$", path):
            document.problem(
                mark, f"`{text}` has a line end in it, or ends in a space", "rename it"
            )
    return made


def _for_this_machine(
    spec: OpSpec, document: Document, settings: Settings, sources: list[str]
) -> tuple[list[str], list[str], bool]:
    """The sources that can be compiled here, notes on the others, and whether CUDA is used."""
    assert spec.extension is not None
    needing = [path for path in sources if path.endswith(CUDA_ENDINGS)]
    if not needing and not spec.extension.with_cuda:
        return sources, [], False
    if "cuda" in usable_devices():
        return sources, [], True
    what, step = why_no_cuda() or ("torch finds no GPU here", "run where there is one")
    if "cuda" in settings.devices:
        path = (*_SOURCES, sources.index(needing[0])) if needing else ("extension", "with_cuda")
        document.problem(document.value(path), f"can't be built for CUDA: {what}", step)
        raise SpecError(document.path, document.problems)
    rest = [path for path in sources if path not in needing]
    names = ", ".join(os.path.basename(path) for path in needing) or "the extension"
    if not rest or spec.devices == ["cuda"] or not needing:
        raise NotHere(f"needs cuda, not available here: {names} was not built: {what}")
    return rest, [f"{names} was left out, and WITH_CUDA is not defined: {what}"], False


def _note_failures(
    document: Document, sources: list[str], error: BuildError, notes: list[str]
) -> None:
    """Note in ``document`` what failed, at each source."""
    real = [os.path.realpath(path) for path in sources]
    hint = error.hint
    if notes:
        hint += f"; {notes[0]}: guard what needs it by #ifdef WITH_CUDA, or write devices: [cuda]"
    placed = [item for item in error.failures if os.path.realpath(item.source) in real]
    for item in placed:
        index = real.index(os.path.realpath(item.source))
        document.problem(
            document.value((*_SOURCES, index)),
            f"compiling {os.path.basename(item.source)} failed\n{item.text}\n",
            hint,
        )
    if not placed:
        document.problem(document.key(("extension",)), error.message, hint)


def _raise(document: Document) -> None:
    if document.problems:
        raise SpecError(document.path, document.problems)


def _identifier(spec: OpSpec) -> str:
    stem = os.path.basename(spec.path).rsplit(".", 1)[0]
    made = re.sub(r"\W", "_", stem)
    return made if made[:1].isalpha() else f"extension_{made}"


# -- signatures of pybind11 ---------------------------------------------------------------------


def _signature(function: Any, spec: OpSpec) -> inspect.Signature | None:
    """The signature in the first line of a pybind11 function's documentation.

    Arguments that have no names there get those of the spec's inputs, and go by position.
    """
    line = (getattr(function, "__doc__", None) or "").strip().splitlines()[:1]
    name = getattr(function, "__name__", "")
    if not line or not line[0].startswith(f"{name}("):
        return None
    # Defaults that are not literals are shown as <…>.
    text = re.sub(r"<[^<>]*>", "None", line[0])
    try:
        node = ast.parse(f"def {text}: ...").body[0]
    except SyntaxError:
        return None
    assert isinstance(node, ast.FunctionDef)

    found = signature_of_node(node, {})
    given = [n for n, item in spec.inputs.items() if not item.keyword]
    parameters = list(found.parameters.values())
    if all(_UNNAMED.fullmatch(p.name) for p in parameters) and len(given) == len(parameters):
        parameters = [
            p.replace(name=n, kind=inspect.Parameter.POSITIONAL_ONLY)
            for n, p in zip(given, parameters, strict=True)
        ]
    return found.replace(parameters=parameters)
