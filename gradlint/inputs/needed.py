"""What an op needs beside its arguments and does not find here, which no arguments change.

A package whose compiled extension was not built imports all the same: ``try: from . import _C`` and
``except ImportError: _C = None``. Its forward then raises for every input, as does one that takes
tensors on a GPU only. Both are told from the error and the line that raised it, so that the search
for inputs can end early, and the report can say what is missing.
"""

from __future__ import annotations

import ast
import itertools
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch.utils import cpp_extension

from gradlint.diagnosis.engine_errors import explain_text
from gradlint.inputs._attempt import Failure, Frame
from gradlint.inputs._source import file_syntax, resolve, statements_at
from gradlint.inputs.not_found import NoInputsFound
from gradlint.model.report import Location
from gradlint.targets.source_file import read_source, shown_path

#: Explained errors that say that a GPU is needed. (Kernels of Triton also run in its interpreter.)
_OF_CUDA = frozenset({"cuda-tensors-only", "cuda-not-available"})

#: Errors of Python and of PyTorch that name what is missing.
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")
_NO_NAME = re.compile(r"cannot import name '(\w+)' from (?:partially \w+ module )?'([\w.]+)'")
_LIBRARY = re.compile(r"([^\s:/]+\.(?:so|pyd|dll|dylib)[\d.]*)\b.*(undefined symbol|cannot open)")
_NO_OPERATOR = re.compile(r"'_OpNamespace' '(\w+)' object has no attribute '(\w+)'")
_OTHER_BACKENDS = re.compile(
    r"Could not run '([\w:.]+)' with arguments from the 'CPU' backend.* only available for these "
    r"backends: \[[^\]]*\bCUDA\b",
    re.S,
)
_ON_NONE = re.compile(r"'NoneType' object (has no attribute|is not callable|is not subscriptable)")
_UNDEFINED = re.compile(r"name '(\w+)' is not defined")

#: Errors that speak of the CPU alone.
_OF_CPU = re.compile(r"(?i)^(?!.*(cuda|gpu)).*\bcpu\b", re.S)

#: Functions that load something, by their names.
_LOADERS = re.compile(r"(?i)load|import|build|compile|dll|_ext|cuda")

#: Functions that build an extension, and return it.
_BUILDERS = ("load", "load_inline")

#: What compiled extensions are called, apart from a leading underscore.
_COMPILED = re.compile(r"(?i)^_|(^|_)(c|cpp|cuda|ext|extension|kernels?|native|backend|cext)$|cuda")

_BUILD = "Build it, as the package says (often `pip install .` in its checkout), then run gradlint "
_BUILD += "again; or check the op where it is built."
_VERSION = "Install the versions that the package asks for, then run gradlint again."
_INSTALL = "Install it, or run gradlint from the folder that it is imported from."


@dataclass(frozen=True)
class Need:
    """Something that an op needs and that is not here.

    Args:
        kind: "extension" (compiled code), "module" (one that is not installed, or whose style
            PyTorch has given up) or "cuda".
        message: what it needs, in words that complete "calling it …".
        hint: the next step.
        error: what was raised.
        location: the line of the op's file that raised it.
        sure: whether this line is reached whatever the arguments are.
    """

    kind: str
    message: str
    hint: str
    error: str
    location: Location | None
    sure: bool


class Lacking(NoInputsFound):
    """No inputs were found, because of something else that the op needs.

    Args:
        need: what that is.
        tried: what was tried all the same.
    """

    def __init__(self, need: Need, tried: NoInputsFound) -> None:
        super().__init__(tried.attempts, tried.line_to_add, tried.count)
        self.need = need
        self.tried = tried

    def __reduce__(self) -> tuple[type[Lacking], tuple[Need, NoInputsFound]]:  # type: ignore[override]
        return Lacking, (self.need, self.tried)


def needed(failure: Failure) -> Need | None:
    """What an attempt lacked that no arguments give; None where the arguments may be at fault."""
    if failure.phase != "forward":
        return None
    if not failure.frames:
        return _without_kernel(failure)
    found = _said(failure) or _read(failure)
    if found is None:
        return None
    kind, message, hint = found
    frame = _own_frames(failure)[-1]
    place = _place(frame)
    if kind == "cuda" and place is not None:
        message = f"{message} (at {place.file}:{place.line})"
    sure = all(_is_reached(own) and not _is_sent(own) for own in _own_frames(failure))
    # What is "not supported on the CPU" may be a dtype.
    sure = sure and (kind != "cuda" or not _OF_CPU.search(failure.text))
    return Need(kind, message, hint, str(failure), place, sure)


def _said(failure: Failure) -> tuple[str, str, str] | None:
    """What the text of the error says."""
    text = failure.text
    if found := _NO_OPERATOR.search(text):
        name = f"torch.ops.{found[1]}.{found[2]}"
        return "extension", f"needs the operator `{name}`, which no library registers", _BUILD
    return _other_backend(text) or _not_imported(failure) or _explained(str(failure))


def _other_backend(text: str) -> tuple[str, str, str] | None:
    found = _OTHER_BACKENDS.search(text)
    return ("cuda", f"`{found[1]}` runs on CUDA only", "") if found else None


def _without_kernel(failure: Failure) -> Need | None:
    """What the dispatcher says of a custom op, no line of which has run."""
    if found := _other_backend(failure.text):
        kind, message, hint = found
        return Need(kind, message, hint, str(failure), None, sure=True)
    return None


def _not_imported(failure: Failure) -> tuple[str, str, str] | None:
    """What could not be imported: a library, or a module, of the op's own package or not."""
    raised = failure.kind.rpartition(".")[2]
    if not raised.endswith(("ImportError", "ModuleNotFoundError", "OSError")):
        return None
    if found := _LIBRARY.search(failure.text):
        what = f"needs its compiled library `{found[1]}`, which can't be loaded"
        return "extension", what, _BUILD
    if found := _NO_MODULE.search(failure.text):
        module = found[1]
    elif found := _NO_NAME.search(failure.text):
        module = f"{found[2]}.{found[1]}"
    else:
        return None
    own = str(_own_frames(failure)[0].globals.get("__name__") or "")
    inside = "." in module and module.partition(".")[0] == own.partition(".")[0]
    package, _, name = module.rpartition(".")
    compiled = _COMPILED.search(name) is not None
    if not compiled and not _NO_MODULE.search(failure.text) and (name[:1].isupper() or not inside):
        what = f"imports `{name}` from `{package}`, which does not have it"
        return "module", what, _VERSION
    if inside or compiled:
        return "extension", f"needs its compiled extension `{module}`, which is not loaded", _BUILD
    return "module", f"needs the module `{module}`, which can't be found", _INSTALL


def _explained(error: str) -> tuple[str, str, str] | None:
    found = explain_text(error)
    if found is not None and found.slug in _OF_CUDA:
        return "cuda", found.meaning, found.fix
    if found is not None and found.slug == "legacy-function":
        what = "instantiates a torch.autograd.Function and calls it, which PyTorch refuses"
        return "module", what, f"{found.fix[0].upper()}{found.fix[1:]}."
    if found is not None and found.slug == "module-not-installed":
        return "module", found.meaning.removeprefix("it "), f"{found.fix.capitalize()}."
    return None


def _read(failure: Failure) -> tuple[str, str, str] | None:
    """What the code shows that raised the error."""
    frame = failure.frames[-1]
    statements = statements_at(frame.filename, frame.line, frame.column)
    if not statements:
        return None
    if found := _unbound(failure, frame, statements[-1]):
        return found
    if name := _built(frame, statements[-1]):
        what = f"builds its extension with `{name}`, which fails here"
        return "extension", what, "Let the build work by itself: a compiler may be missing."
    if _asks_for_cuda(statements):
        return "cuda", "the op takes tensors on a GPU only", ""
    return None


# Names that stand for nothing because an import failed.


@dataclass(frozen=True)
class _Binding:
    """A statement that loads something and binds it to ``name``; ``cuda`` says whether it is left
    out where there is no GPU."""

    name: str
    line: int
    cuda: bool


def _unbound(failure: Failure, frame: Frame, statement: ast.stmt) -> tuple[str, str, str] | None:
    """What a name in ``statement`` should stand for that is None, or undefined."""
    if failure.kind == "NameError" and (found := _UNDEFINED.search(failure.text)):
        name = found[1]
        binding = None if name in frame.names else _loading(name, frame.filename)
        return _not_loaded(name, binding)
    told = _ON_NONE.search(failure.text)
    if told is None or failure.kind not in ("AttributeError", "TypeError"):
        return None
    for node in ast.walk(statement):
        owner = _owner(node, told[1], failure.attribute)
        if owner is not None and _is_none(owner, frame):
            return _not_loaded(ast.unparse(owner), _loading_of(owner, frame))
    return None


def _not_loaded(name: str, binding: _Binding | None) -> tuple[str, str, str] | None:
    if binding is None:
        return None
    if binding.cuda:
        return "cuda", f"`{name}` is loaded where there is CUDA (line {binding.line})", ""
    failed = f"line {binding.line} failed to load it"
    return (
        "extension",
        f"needs its compiled extension `{name}`, which is not loaded: {failed}",
        _BUILD,
    )


def _owner(node: ast.AST, what: str, attribute: str) -> ast.expr | None:
    """The expression that ``node`` takes an attribute or an item of, or calls."""
    if isinstance(node, ast.Attribute) and what == "has no attribute":
        return node.value if node.attr == attribute or not attribute else None
    if isinstance(node, ast.Call) and what == "is not callable":
        return node.func
    return node.value if isinstance(node, ast.Subscript) and "subscript" in what else None


def _is_none(node: ast.expr, frame: Frame) -> bool:
    """Whether a name of the module, or of one that it imports, stands for None."""
    root = node
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or root.id in frame.names or root.id not in frame.globals:
        return False
    if isinstance(node, ast.Attribute):
        owner = resolve(node.value, frame.globals)
        return owner is not None and getattr(owner, node.attr, owner) is None
    return frame.globals[root.id] is None


def _loading_of(node: ast.expr, frame: Frame) -> _Binding | None:
    """The statement that was to load what a name stands for. (One that is None until a function
    assigns its own argument to it waits for the caller.)"""
    if isinstance(node, ast.Attribute):
        owner = resolve(node.value, frame.globals)
        return _loading(node.attr, getattr(owner, "__file__", "") or "")
    return _loading(node.id, frame.filename) if isinstance(node, ast.Name) else None


def _loading(name: str, filename: str, depth: int = 3) -> _Binding | None:
    """The statement of a file that was to load ``name``, or that of the module which the file
    imports the name from."""
    tree = file_syntax(filename) if filename else None
    if tree is None or not depth:
        return None
    for binding in _bindings(tree):
        if binding.name == name:
            return binding
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _loading(alias.name, _file_of(node, filename), depth - 1)
    return None


def _file_of(node: ast.ImportFrom, filename: str) -> str:
    """The file of the module that a statement of ``filename`` imports from; empty if unknown."""
    if not node.level:
        module = sys.modules.get(node.module or "")
        return getattr(module, "__file__", "") or ""
    folder = filename
    for _ in range(node.level):
        folder = os.path.dirname(folder)
    path = os.path.join(folder, *(node.module or "").split("."))
    files = (path + ".py", os.path.join(path, "__init__.py"))
    return next((file for file in files if os.path.isfile(file)), "")


def _bindings(tree: ast.Module) -> Iterator[_Binding]:
    """What a module tries to load: under ``try`` or a condition at its top, by a call that says so,
    and as ``global`` names in functions."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            shared = {n for s in ast.walk(node) if isinstance(s, ast.Global) for n in s.names}
            yield from (item for item in _bound(node, guarded=True) if item.name in shared)
    yield from _bound(tree)


def _bound(scope: ast.AST, *, guarded: bool = False, cuda: bool = False) -> Iterator[_Binding]:
    """The names that ``scope`` binds to what it loads, functions inside of it left out."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, (ast.Import, ast.ImportFrom)) and guarded:
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                yield _Binding(name, node.lineno, cuda)
        elif isinstance(node, ast.Assign):
            called = ast.unparse(node.value.func) if isinstance(node.value, ast.Call) else ""
            if called and (guarded or _LOADERS.search(called)):
                parts = (part for target in node.targets for part in ast.walk(target))
                for part in parts:
                    if isinstance(part, ast.Name):
                        yield _Binding(part.id, node.lineno, cuda)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            within = guarded or isinstance(node, (ast.Try, ast.If))
            only = cuda or (isinstance(node, ast.If) and _on_cpu(node.test) is False)
            yield from _bound(node, guarded=within, cuda=only)


def _built(frame: Frame, statement: ast.stmt) -> str:
    """The call in ``statement`` that builds an extension, as it is written; empty without one."""
    builders = [getattr(cpp_extension, name) for name in _BUILDERS]
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and resolve(node.func, frame.globals) in builders:
            return ast.unparse(node.func)
    return ""


# Conditions that only a tensor on a GPU fulfils.


def _asks_for_cuda(statements: list[ast.stmt]) -> bool:
    """Whether the innermost of nested ``statements`` refuses all that is not on a GPU."""
    last = statements[-1]
    if isinstance(last, ast.Assert):
        return _on_cpu(last.test) is False
    if not isinstance(last, ast.Raise):
        return False
    for outer, inner in zip(statements[-2::-1], statements[:0:-1], strict=False):
        if isinstance(outer, ast.If):
            return _on_cpu(outer.test) is (inner in outer.body)
        before = _before(outer, inner)
        if any(_leaves(other) and _on_cpu(other.test) is False for other in before):
            return True
    return False


def _before(outer: ast.stmt, inner: ast.stmt) -> list[ast.If]:
    """The conditions before ``inner`` in the body of ``outer``."""
    body = getattr(outer, "body", [])
    count = body.index(inner) if inner in body else 0
    return [item for item in body[:count] if isinstance(item, ast.If)]


def _leaves(condition: ast.If) -> bool:
    return isinstance(condition.body[-1], (ast.Return, ast.Raise))


def _on_cpu(test: ast.expr) -> bool | None:
    """What a condition about devices comes to for tensors on the CPU, where no GPU is; None where
    other things decide."""
    match test:
        case ast.UnaryOp(ast.Not(), operand):
            value = _on_cpu(operand)
            return None if value is None else not value
        case ast.BoolOp(operator, operands):
            values, decisive = list(map(_on_cpu, operands)), isinstance(operator, ast.Or)
            undecided = None if None in values else not decisive
            return decisive if decisive in values else undecided
        case ast.Call(ast.Name("all" | "any"), [ast.GeneratorExp(each) | ast.ListComp(each)]):
            return _on_cpu(each)
        case ast.Compare(left, [operator], [ast.Constant(("cuda" | "cpu") as name)]):
            return _is_device(ast.unparse(left), operator, name)
    last = ast.unparse(test).rpartition(".")[2]
    return {"is_available()": False, "is_cuda": False, "is_cpu": True}.get(last)


def _is_device(left: str, operator: ast.cmpop, name: str) -> bool | None:
    """:func:`_on_cpu` of ``x.device.type == "cuda"``."""
    if "device" not in left or not isinstance(operator, (ast.Eq, ast.NotEq)):
        return None
    return (name == "cpu") is isinstance(operator, ast.Eq)


# Places.


def _own_frames(failure: Failure) -> list[Frame]:
    """The frames in the file of the first one, which is the op's."""
    return [frame for frame in failure.frames if frame.filename == failure.frames[0].filename]


def _is_reached(frame: Frame) -> bool:
    """Whether the line of ``frame`` is reached whatever the arguments are: it stands under no
    condition but of devices, and nothing before it returns."""
    statements = statements_at(frame.filename, frame.line, frame.column)
    inside = [s for s in statements if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef))]
    if not inside:
        return False
    path = statements[statements.index(inside[-1]) :]
    for outer, inner in itertools.pairwise(path):
        if isinstance(outer, (ast.While, ast.For, ast.Try, ast.Match)):
            return False
        if isinstance(outer, ast.If) and _on_cpu(outer.test) is None:
            return False
        for other in _before(outer, inner):
            if _may_return(other) and _on_cpu(other.test) is not False:
                return False
    return not any(isinstance(node, ast.IfExp) for node in ast.walk(path[-1]))


def _is_sent(frame: Frame) -> bool:
    """Whether an argument, or what is made of one, names a GPU: another one may not."""
    return any(
        value.startswith("cuda") if isinstance(value, str) else value.type == "cuda"
        for value in frame.names.values()
        if isinstance(value, (str, torch.device))
    )


def _may_return(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Return) for node in ast.walk(statement))


def _place(frame: Frame) -> Location | None:
    source = read_source(frame.filename)
    statements = statements_at(frame.filename, frame.line, frame.column)
    if source is None or not statements:
        return Location(shown_path(frame.filename), frame.line, 1)
    return source.span(statements[-1])
