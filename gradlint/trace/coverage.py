"""Coverage of the user's own code: which statements, ways and outcomes of comparisons occurred.

Only Python is seen. What C++ does, or what ``torch.compile`` made of a function, is not.
"""

from __future__ import annotations

import ast
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import lru_cache
from types import CodeType
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction

import gradlint
from gradlint.model.coverage import CodePhase, FunctionCoverage, WayCoverage
from gradlint.model.op import Op
from gradlint.targets.executable import (
    Extent,
    Way,
    condition_text,
    divisors_in,
    executable,
    functions_of,
    has_imaginary_numbers,
    names_in,
    takes_parts,
)
from gradlint.targets.nodes import code_of, vars_of
from gradlint.targets.source_file import SourceFile, dotted, read_source, shown_path
from gradlint.trace._masks import Masks
from gradlint.trace.executed import Executed, Span, spans

#: Methods of a Function that run in forward, and in backward.
_FORWARD, _BACKWARD = ("forward", "setup_context"), ("backward", "vjp")

#: What dynamo calls in the code that it puts in place of a function's own.
_COMPILED = "__compiled_fn"

#: Functions that tell whether a mode is active.
_OVERRIDDEN = frozenset(
    ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
)

#: Attribute of what ``torch.compile`` returns.
_ORIGINAL = "_torchdynamo_orig_callable"

_HERE = os.path.dirname(os.path.abspath(gradlint.__file__))
_TORCH = os.path.dirname(os.path.abspath(torch.__file__))
_PYTHON = sysconfig.get_path("stdlib")
_INSTALLED = ("site-packages", "dist-packages")

#: Why there is no coverage, or not of everything.
NOT_PYTHON = "code outside of Python"
COMPILED = "code for torch.compile"
TOO_LONG = "too many instructions to watch"

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

#: A place that a call reached: file, line, and what happened there ("" for the statement itself).
Place = tuple[str, int, str]


class Coverage:
    """What the calls of an op that were watched reached of its own code.

    Args:
        op: the operator. Its own code are the functions in the files that define it.

    Attributes:
        note: why there is no coverage, or not of everything; empty where there is.
        moved: arguments that checks judged at other values than those of the samples.
    """

    def __init__(self, op: Op) -> None:
        self.note = ""
        self.moved: set[str] = set()
        self._op = op
        self._files = _own_files(op)
        self._roots = _roots(self._files)
        self._executed = Executed(self._is_users)
        self._masked = Masks(self._executed.is_wanted)
        self._functions: list[FunctionCoverage] | None = None
        self._watched = False
        self._inside: dict[str, bool] = {}
        self._size = 0
        # A compiled function would be compiled again under a mode, so none is active there.
        self._minds_modes = any(map(_minds_modes, self._files))
        if any(hasattr(thing, _ORIGINAL) for thing in (op.call, op.module, op.defining)):
            self.note = COMPILED
        elif not self._files and op.kind != "formula":
            self.note = NOT_PYTHON
        #: Whether there is code that can be watched.
        self.possible = bool(self._files) and not self.note

    @contextmanager
    def watching(self, *, masks: bool = True) -> Iterator[None]:
        """Watch what runs in the body; ``masks``: the masks of comparisons, too."""
        if not self.possible:
            yield
            return
        self._watched = True
        with ExitStack() as stack:
            masks = masks and not self._minds_modes
            if masks:
                stack.callback(self._masked.forget)
                stack.enter_context(self._masked)
            stack.enter_context(self._executed.watching())
            stack.enter_context(self._in_nodes(masks))
            yield

    @contextmanager
    def in_backward(self) -> Iterator[None]:
        """Watch what runs in the body, which belongs to backward."""
        before, self._executed.phase = self._executed.phase, "backward"
        try:
            with self.watching():
                yield
        finally:
            self._executed.phase = before

    @contextmanager
    def _in_nodes(self, masks: bool) -> Iterator[None]:
        """Watch the backward of Python Functions, in whichever thread the engine calls it; and its
        masks, since ``torch.autograd.grad`` switches modes off while it runs."""

        def watched(original: Any) -> Any:
            def apply(node: Any, *args: Any) -> Any:
                mode = self._masked if masks else nullcontext()
                with self._executed.in_this_thread(), mode:
                    return original(node, *args)

            return apply

        names = [name for name in ("apply", "apply_boxed") if hasattr(BackwardCFunction, name)]
        before = {name: getattr(BackwardCFunction, name) for name in names}
        for name, original in before.items():
            setattr(BackwardCFunction, name, watched(original))
        try:
            yield
        finally:
            for name, original in before.items():
                setattr(BackwardCFunction, name, original)

    def add_files_of(self, functions: Iterable[type]) -> None:
        """The code of these Functions is the op's own too, if it lies in the same package."""
        for function in functions:
            found = _files_of_class(function)
            self._files.update(path for path in found if self._is_inside(path))

    def add_native(self) -> None:
        """A backward in C++ ran, of which nothing can be watched."""
        self.note = self.note or NOT_PYTHON

    def functions(self) -> list[FunctionCoverage]:
        """What was reached of each function that ran, and of the op's own backward."""
        size = len(self._files) + self._executed.size + self._masked.size
        if self._watched and (self._functions is None or size != self._size):
            self._functions, self._size = self._measured(), size
        return self._functions or []

    @property
    def full(self) -> bool:
        """Whether nothing is left to reach: something was watched, and all of it ran."""
        if not self.possible:
            return True
        return self._watched and all(item.full for item in self.functions())

    def places(self) -> frozenset[Place]:
        """The places that were reached."""
        found: set[Place] = set()
        for item in self.functions():
            found.update((item.file, line, "") for line in item.ran)
            found.update((item.file, way.line, way.text) for way in item.ways if way.ran)
        return frozenset(found)

    def mentions(self, names: frozenset[str]) -> bool:
        """Whether one of ``names`` occurs in the op's own functions that ran, or its backward."""
        return any(names_in(node) & names for _, _, node in self._nodes())

    def takes_parts(self) -> bool:
        """Whether these functions take the real or the imaginary part of a number, and have no
        imaginary number of their own."""
        return any(takes_parts(node) for _, _, node in self._nodes())

    def has_imaginary_numbers(self) -> bool:
        """Whether an imaginary number stands in these functions, ``1j``."""
        return any(has_imaginary_numbers(node) for _, _, node in self._nodes())

    def divisors(self) -> frozenset[str]:
        """Names of the numbers by which the op's own functions that ran, or its backward, divide
        sizes: of blocks, groups, heads."""
        return frozenset().union(*(divisors_in(node) for _, _, node in self._nodes()))

    def ends_early(self) -> bool:
        """Whether a loop in these functions ends at what it computes, as an iteration does that
        stops at a tolerance."""
        return any(_ends_early(node) for _, _, node in self._nodes())

    # -- which code counts ----------------------------------------------------------------------
    def _is_users(self, code: CodeType) -> bool:
        path = code.co_filename
        if path not in self._inside:
            self._inside[path] = self._is_inside(path)
        return self._inside[path] and not code.co_name.startswith("<")

    def _is_inside(self, path: str) -> bool:
        if path in self._files:
            return True
        if not os.path.isabs(path) or _is_library(path):  # not absolute: `<frozen abc>`, `<string>`
            return False
        return any(
            path.startswith(root + os.sep)
            and not set(_INSTALLED) & set(path[len(root) :].split(os.sep))
            for root in self._roots
        )

    # -- from instructions to places ------------------------------------------------------------
    def _nodes(self) -> Iterator[tuple[CodeType, SourceFile, FunctionNode]]:
        """The op's own functions that ran, and its backward, with their source."""
        own = {os.path.abspath(path) for path in self._files}
        for code in dict.fromkeys((*self._executed.offsets, *_backward_codes(self._op))):
            source = None
            if os.path.abspath(code.co_filename) in own:
                source = read_source(code.co_filename)
            node = functions_of(source).get((code.co_firstlineno, code.co_name)) if source else None
            if source is not None and node is not None:
                yield code, source, node

    def _measured(self) -> list[FunctionCoverage]:
        found = []
        for code, source, node in self._nodes():
            if any(name.startswith(_COMPILED) for name in code.co_names):
                self.note = COMPILED
            else:
                found.append(self._function(code, source, node))
        if not self._executed.complete:
            self.note = TOO_LONG
            return []
        return _joined(found)

    def _function(self, code: CodeType, source: SourceFile, node: FunctionNode) -> FunctionCoverage:
        known = spans(code)
        ran = [known[offset] for offset in self._executed.offsets.get(code, ()) if offset in known]
        everything = set(known.values())
        places = executable(node)
        there = [part for part in places.statements if _any_within(everything, part)]
        return FunctionCoverage(
            shown_path(source.path),
            code.co_name,
            self._phase(code),
            sorted({part[0] for part in there}),
            sorted({part[0] for part in there if _any_within(ran, part)}),
            [*self._ways(code, places.ways, ran), *self._masks(code, node)],
        )

    def _phase(self, code: CodeType) -> CodePhase:
        phases = self._executed.phases.get(code, {"backward"})
        return "backward" if "backward" in phases and code.co_name not in _FORWARD else "forward"

    def _ways(self, code: CodeType, ways: list[Way], ran: list[Span]) -> list[WayCoverage]:
        known = spans(code)
        if any(column is None for _, _, column, _ in known.values()):
            ways = [way for way in ways if way.arm is None]  # Python 3.10 knows lines only
        taken = [
            (known[jump], known.get(target))
            for jump, target in self._executed.branches.get(code, ())
            if jump in known
        ]
        found = []
        for way in ways:
            if way.arm is not None:
                if not _any_within(known.values(), way.arm):
                    continue
                occurred = _any_within(ran, way.arm)
            else:
                occurred = _passed_by(way, taken)
            word = "true" if way.outcome else "false"
            text = f"`{way.condition}` {word}"
            found.append(WayCoverage(way.line, text, occurred, computes=way.arm is not None))
        return found

    def _masks(self, code: CodeType, node: FunctionNode) -> list[WayCoverage]:
        known, found = spans(code), []
        for (other, offset), outcomes in self._masked.outcomes.items():
            span = known.get(offset) if other is code else None
            if span is None or span[2] is None:
                continue
            text = condition_text(node, span)
            for outcome, word in ((True, "true"), (False, "false")) if text else ():
                found.append(WayCoverage(span[0], f"`{text}` {word}", outcome in outcomes))
        return found


def _any_within(found: Iterable[Span], extent: Extent) -> bool:
    return any(_within(span, extent) for span in found)


def _within(span: Span, extent: Extent) -> bool:
    line, end_line, column, end_column = span
    if column is None or end_column is None:
        return extent[0] <= line <= extent[1]
    starts = (line, column) >= (extent[0], extent[2])
    return starts and (end_line, end_column) <= (extent[1], extent[3])


def _passed_by(way: Way, taken: list[tuple[Span, Span | None]]) -> bool:
    """Whether a jump of the condition led neither into the body nor to the condition's next part.

    Where that can't be told (the way out has no place in the source), it counts as taken.
    """
    assert way.body is not None
    decided = False
    for jump, target in taken:
        whole = jump[0] == way.whole[0] and jump[2] in (way.whole[2], None)
        if not (whole or _within(jump, way.test)) or _within(jump, way.body):
            continue
        decided = True
        inside = target is not None and (_within(target, way.body) or _within(target, way.test))
        # The way out of a function may have the place of the condition itself.
        if not inside or target == jump:
            return True
    return not decided


def _joined(found: list[FunctionCoverage]) -> list[FunctionCoverage]:
    """One entry for each function of the source, which closures give several codes."""
    kept: dict[tuple[Any, ...], FunctionCoverage] = {}
    for item in found:
        kept.setdefault((item.file, item.name, tuple(item.lines)), item)
    return list(kept.values())


def _own_files(op: Op) -> set[str]:
    """The files of the user that define ``op``."""
    found: set[str] = set()
    for thing in (op.defining, op.function, type(op.module) if op.module is not None else None):
        if isinstance(thing, type):
            found.update(_files_of_class(thing))
        elif thing is not None:
            code = code_of(thing)
            found.update([code.co_filename] if code is not None else [])
    return {path for path in found if not _is_library(path)}


def _is_library(path: str) -> bool:
    """Whether ``path`` is a file of torch, of gradlint or of Python itself."""
    absolute = os.path.abspath(path)
    if absolute.startswith((_HERE + os.sep, _TORCH + os.sep)):
        return True
    below = absolute.removeprefix(_PYTHON + os.sep)
    return below != absolute and not set(_INSTALLED) & set(below.split(os.sep))


def read_ahead(path: str) -> None:
    """Do once what depends on the file at ``path`` alone."""
    source = read_source(path)
    if source is not None:
        _asks_for_modes(source)
        functions_of(source)


def _minds_modes(path: str) -> bool:
    """Whether code in ``path``, beside what runs as a program, calls ``torch.compile``, or asks
    whether functions are overridden, which they are under a mode."""
    source = read_source(path)
    return source is not None and _asks_for_modes(source)


@lru_cache(maxsize=64)
def _asks_for_modes(source: SourceFile) -> bool:
    return source.tree is not None and any(
        isinstance(node, (ast.Attribute, ast.Name))
        and (dotted(node) == "torch.compile" or dotted(node).rpartition(".")[2] in _OVERRIDDEN)
        for statement in source.tree.body
        if not (isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test))
        for node in ast.walk(statement)
    )


def _files_of_class(cls: type) -> set[str]:
    """The files of ``cls`` and its bases, torch's and Python's own left out."""
    found: set[str] = set()
    for owner in cls.__mro__:
        if owner.__module__.partition(".")[0] in ("torch", "builtins"):
            continue
        path = vars_of(sys.modules.get(owner.__module__)).get("__file__")
        codes = [code_of(vars(owner).get(name)) for name in (*_FORWARD, *_BACKWARD)]
        found.update(code.co_filename for code in codes if code is not None)
        if isinstance(path, str) and path.endswith(".py"):
            found.add(path)
    return found


def _roots(files: Iterable[str]) -> tuple[str, ...]:
    """The folders of ``files``: for a module of a package, that of the topmost package."""
    found = set()
    for path in files:
        if not os.path.isfile(path):  # a cell of a notebook
            continue
        folder = os.path.dirname(os.path.abspath(path))
        while os.path.exists(os.path.join(os.path.dirname(folder), "__init__.py")):
            folder = os.path.dirname(folder)
        if os.path.basename(folder) not in _INSTALLED:
            found.add(folder)
    return tuple(sorted(found))


def _backward_codes(op: Op) -> list[CodeType]:
    """The op's own backward, which counts even if it never ran."""
    if op.function is None:
        return []
    for owner in op.function.__mro__:
        if owner.__module__.startswith("torch."):
            break
        for name in _BACKWARD:
            code = code_of(vars(owner).get(name))
            if code is not None:
                return [code]
    return []


def _ends_early(function: FunctionNode) -> bool:
    for loop in ast.walk(function):
        if isinstance(loop, ast.While) and not isinstance(loop.test, ast.Constant):
            return True
        inside = ast.walk(loop) if isinstance(loop, (ast.For, ast.While)) else ()
        if any(isinstance(node, ast.Break) for node in inside):
            return True
    return False
