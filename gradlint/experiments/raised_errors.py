"""Exceptions of user code: where they were raised, and what a finding says about them."""

from __future__ import annotations

import ast
import inspect
import os
import re
import sysconfig
import traceback
from dataclasses import replace
from typing import Any, Literal

import torch

import gradlint
from gradlint.base.text import error_line, error_text
from gradlint.diagnosis.engine_errors import Explanation, explain
from gradlint.experiments.gradient_place import Place
from gradlint.experiments.returned_gradients import backward_place
from gradlint.experiments.subject import Subject
from gradlint.inputs.known_values import is_known
from gradlint.model.report import Excerpt, Finding, Location
from gradlint.model.rule import Rule
from gradlint.targets import source
from gradlint.targets.nodes import method_node
from gradlint.targets.source_file import dotted, read_source, shown_path

#: Lines of source shown before the line that raised, or that was refused.
CONTEXT = 2

#: Exceptions that no input can avoid, once the line is reached.
WHATEVER_THE_INPUTS = (NameError, ImportError, NotImplementedError, SyntaxError)

#: Errors, as ``gradlint.diagnosis.engine_errors`` calls them, that inputs of other sizes, values or
#: dtypes may avoid, or fewer that require grad.
_BY_SIZES_AND_VALUES = frozenset(
    {
        "shape-mismatch",
        "index-out-of-range",
        "index-dtype",
        "dtype-mismatch",
        "in-place-dtype",
        "derivative-not-implemented",
    }
)

#: What PyTorch's allocators say of bytes that they can't give.
_REFUSED = re.compile(r"allocate memory: you tried to allocate (\d+) bytes")

#: Lines of a traceback kept in the evidence.
TRACEBACK_LINES = 40


def raised_place(error: BaseException, prefer: str | None = None) -> Place | None:
    """The innermost line of user code in the traceback of ``error``.

    Args:
        error: what was raised.
        prefer: a file whose lines win over those of other files.
    """
    frames = user_frames(error, prefer)
    if not frames:
        return None
    own = [frame for frame in frames if prefer and os.path.abspath(frame.filename) == prefer]
    return line_place((own or frames)[-1], "raised here")


def line_place(frame: traceback.FrameSummary, label: str) -> Place:
    """The place of the instruction that ``frame`` is at, marked with ``label``."""
    line = frame.lineno or 1
    # Columns come as UTF-8 bytes (Python 3.11 and later).
    text = _line(frame.filename, line)
    start = getattr(frame, "colno", None)
    end = getattr(frame, "end_colno", None)
    one_line = getattr(frame, "end_lineno", line) in (None, line)
    indent = len(text) - len(text.lstrip()) + 1
    column = _characters(text, start) if start is not None else indent
    end_column = _characters(text, end) if end is not None and one_line else len(text) + 1
    shown = shown_path(frame.filename)
    location = Location(shown, line, column, line, max(end_column, column + 1))
    numbers = range(max(1, line - CONTEXT), line + 1)
    lines = tuple((number, _line(frame.filename, number)) for number in numbers)
    excerpt = Excerpt(lines, label) if text else None
    return location, excerpt, []


def user_frames(error: BaseException, prefer: str | None = None) -> list[traceback.FrameSummary]:
    """Frames of the traceback outside of Python, torch and gradlint, or in the file ``prefer``,
    outermost first."""
    try:
        frames = traceback.extract_tb(error.__traceback__)
    except Exception:  # a traceback can hold anything
        return []
    return [
        frame
        for frame in frames
        if (prefer and os.path.abspath(frame.filename) == prefer) or not _foreign(frame.filename)
    ]


def raised_on_purpose(error: BaseException) -> bool:
    """Whether a ``raise`` or an ``assert`` of the user's code raised ``error``, and not an
    operation on values that do not fit."""
    frames, all_frames = user_frames(error), traceback.extract_tb(error.__traceback__)
    if not frames or frames[-1] != all_frames[-1]:
        return False
    return (frames[-1].line or "").lstrip().startswith(("raise", "assert"))


def is_not_implemented(error: BaseException) -> bool:
    """Whether a function of the user's code that does nothing but ``raise NotImplementedError``
    raised ``error``: what it stands for is openly refused."""
    frames = user_frames(error)
    if not isinstance(error, NotImplementedError) or not frames or not raised_on_purpose(error):
        return False
    read = read_source(frames[-1].filename)
    line = frames[-1].lineno or 0
    return any(
        isinstance(node, ast.FunctionDef)
        and node.lineno <= line <= (node.end_lineno or 0)
        and all(_says_not_implemented(part) for part in _statements(node))
        for node in ast.walk(read.tree if read and read.tree else ast.Module([], []))
    )


def _says_not_implemented(statement: ast.stmt) -> bool:
    raised = statement.exc if isinstance(statement, ast.Raise) else None
    return dotted(raised.func if isinstance(raised, ast.Call) else raised) == "NotImplementedError"


def _statements(node: ast.FunctionDef) -> list[ast.stmt]:
    """The body of ``node`` without its docstring."""
    return node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body


def raised_evidence(error: BaseException, prefer: str | None = None) -> dict[str, Any]:
    """``exception``, ``original`` (the text as it was) and ``traceback`` (user's frames only)."""
    lines = [
        f"{shown_path(frame.filename)}:{frame.lineno} in {frame.name}: {frame.line or ''}".rstrip(
            ": "
        )
        for frame in user_frames(error, prefer)
    ]
    return {
        "exception": type(error).__name__,
        "original": error_text(error),
        "traceback": lines[-TRACEBACK_LINES:],
    }


def defining_file(subject: Subject) -> str | None:
    """Absolute path of the file that defines the op, where known."""
    for candidate in (subject.op.function, subject.op.defining, subject.op.call):
        try:
            found = inspect.getsourcefile(candidate) if candidate is not None else None
        except (TypeError, OSError):
            continue
        if found:
            return os.path.abspath(found)
    return None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether ``error`` says that memory ran out: Python's, the host's or a device's."""
    if isinstance(error, (MemoryError, torch.cuda.OutOfMemoryError)):
        return True
    if not isinstance(error, (RuntimeError, OSError)):
        return False
    found = explain(error)
    return found is not None and found.slug == "out-of-memory"


def is_memory_used_up(subject: Subject, text: str) -> bool:
    """Whether ``text``, of an error, says that memory was refused for no more than the operator's
    inputs take: not this allocation was too large, but all that was kept beside it."""
    refused = _REFUSED.search(text)
    if refused is None:
        return False
    given = sum(value.numel() * value.element_size() for value in subject.problem.values())
    return int(refused[1]) <= given


def _foreign(filename: str) -> bool:
    if filename.startswith("<") and not filename.startswith("<ipython"):
        return True
    path = os.path.abspath(filename)
    paths = sysconfig.get_paths()
    if any(_below(path, module.__path__[0]) for module in (torch, gradlint)):
        return True
    # Installed packages are users' code, and may lie below the standard library.
    if _below(path, paths["purelib"]) or _below(path, paths["platlib"]):
        return False
    return _below(path, paths["stdlib"])


def _below(path: str, folder: str) -> bool:
    return path.startswith(os.path.abspath(folder) + os.sep)


def _line(filename: str, number: int) -> str:
    source = read_source(filename)
    return source.line(number) if source else ""


def _characters(text: str, offset: int) -> int:
    return len(text.encode()[:offset].decode(errors="replace")) + 1


def raised_finding(subject: Subject, rule: Rule, error: BaseException, verb: str) -> Finding:
    """A finding of ``rule`` that ``error`` was raised, explained where its text is known.

    Args:
        verb: what raised, such as "forward raised"; the exception's name is added.
    """
    prefer = defining_file(subject)
    explanation = explained(subject, error)
    guessed = inputs_may_be_at_fault(subject, error)
    chosen = chosen_value(subject, error)
    line = error_line(error)
    return subject.finding(
        rule,
        f"{verb} {line}",
        cause_text=explanation.meaning if explanation else "",
        place=raised_place(error, prefer) or _without_line(subject, explanation),
        evidence=raised_evidence(error, prefer),
        help=_next_step(subject, explanation),
        grounds=subject.grounds(
            silent=not (guessed or chosen),
            guessed=guessed,
            chosen=chosen,
            refused=is_not_implemented(error)
            or (explanation is not None and _is_for_transforms(subject, explanation)),
        ),
    )


def _is_for_transforms(subject: Subject, explanation: Explanation) -> bool:
    """Whether a Function has no backward, and rules of its own for vmap or forward mode: it is
    there for those, and raises where a gradient is asked for."""
    own = vars(subject.op.function) if subject.op.function is not None else {}
    return explanation.slug == "no-backward" and ("vmap" in own or "jvp" in own)


def chosen_value(subject: Subject, error: BaseException) -> Literal["", "known", "by accident"]:
    """Whether ``error`` was raised where an argument has a value that gradlint chose, one that the
    code or its documentation knows or not; "" where it is a fault whatever the inputs are."""
    moved = {k: v for k, v in subject.arguments() if k in subject.sample.moved}
    if not moved or not _others_may_avoid(subject, error):
        return ""
    if all(is_known(subject.op, name, value) for name, value in moved.items()):
        return "known"
    return "by accident"


def explained(subject: Subject, error: BaseException) -> Explanation | None:
    """The explanation of ``error``, unless the line that raised shows that it means another thing:
    a call of a function that is not the op's, or a tuple that is not of saved tensors."""
    found = explain(error)
    if found is None:
        return None
    if found.slug == "context-parameter-mismatch":
        owner = re.search(r"(\w+)\.(?:forward|backward)\(\)", found.text)
        return None if owner and owner.group(1) not in _own_names(subject) else found
    if found.slug == "unpack-saved-tensors" and not _reads_context(subject, error):
        words = "what is unpacked has another number of elements, or a tensor another size there"
        return replace(found, meaning=words, fix="compare it with the number of names")
    return found


def inputs_may_be_at_fault(subject: Subject, error: BaseException) -> bool:
    """Whether the inputs were guessed, and other sizes or values could avoid ``error``.

    A misspelt name or a tensor that was not saved is a fault whatever the inputs are.
    """
    return subject.sample.origin == "inferred" and _others_may_avoid(subject, error)


def _others_may_avoid(subject: Subject, error: BaseException) -> bool:
    if isinstance(error, WHATEVER_THE_INPUTS):
        return False
    found = explained(subject, error)
    if found is not None and found.slug == "unpack-saved-tensors":
        return not _reads_context(subject, error)
    if found is not None and found.slug == "none-in-arithmetic":
        return _none_was_guessed(subject)
    if found is not None:
        return found.slug in _BY_SIZES_AND_VALUES
    # "'Tensor' object has no attribute 'sume'": the argument has the type that it should have.
    return not re.match(r"module '|'Tensor' object has no", error_text(error))


def _none_was_guessed(subject: Subject) -> bool:
    """Whether an argument is None that has no default: nothing says that it may be."""
    known = subject.op.signature.parameters if subject.op.signature is not None else {}
    return any(
        value is None and name in known and known[name].default is inspect.Parameter.empty
        for name, value in subject.arguments()
    )


def _own_names(subject: Subject) -> set[str]:
    function = subject.op.function
    names = {subject.op.target.rpartition(":")[2].rpartition(".")[2]}
    return names | ({function.__name__} if function is not None else set())


def _reads_context(subject: Subject, error: BaseException) -> bool:
    """Whether the line that raised names the context or what was saved, and no argument that is
    kept there under its own name."""
    frames = user_frames(error, defining_file(subject))
    line = (frames[-1].line or "") if frames else "ctx"
    kept = set(re.findall(r"\bctx\.(\w+)", line))
    if kept and subject.op.signature is not None and kept <= set(subject.op.signature.parameters):
        return False
    return re.search(r"saved|ctx", line) is not None


def unsupported_finding(subject: Subject, rule: Rule, error: BaseException, dtype: str) -> Finding:
    """A finding of ``rule`` that the op refuses ``dtype``, which was asked for and not promised."""
    prefer = defining_file(subject)
    return subject.finding(
        rule,
        f"not supported in {dtype}: {error_line(error)}",
        grounds=subject.grounds(silent=False, refused=True),
        cause_text=f"the op runs in another dtype, and nothing promises that it does in {dtype}",
        place=raised_place(error, prefer),
        evidence={"dtype": dtype, **raised_evidence(error, prefer)},
        help=f"leave {dtype} out, or compute in float32 inside; if the op is to work in {dtype}, "
        "say so (`dtypes` of a spec or of [tool.gradlint]), and this fails",
    )


def _next_step(subject: Subject, explanation: Explanation | None) -> str:
    advice = explanation.fix if explanation else "run the op on the sample shown, under a debugger"
    return advice + if_guessed(subject)


def if_guessed(subject: Subject) -> str:
    """What to add to an advice where the inputs were guessed: they may be at fault."""
    if subject.sample.origin != "inferred":
        return ""
    return "; the inputs were guessed: if the op is right and they are not, give others (--inputs)"


def _without_line(subject: Subject, explanation: Explanation | None) -> Place | None:
    """A place for an error raised by PyTorch, whose traceback holds no line of user code."""
    nodes = [*subject.run.nodes, *subject.run.native]
    if nodes:
        # The backward that was running, or had just returned.
        return backward_place(nodes[-1])
    if subject.run.outputs:
        return None
    function = subject.op.function
    if explanation is not None:
        call = context_call_place(function, explanation.slug, explanation.text)
        if call is not None:
            return call
    place = source.method(subject.op, "forward")
    return place if place[0] is not None else None


# -- calls of ctx that PyTorch judges after forward ------------------------------------------------

#: Slug of the error → method of ``ctx`` that was called wrongly.
_CONTEXT_METHODS = {
    "save-for-backward-non-tensor": "save_for_backward",
    "inference-tensor": "save_for_backward",
    "mark-dirty-non-tensor": "mark_dirty",
    "mark-dirty-not-returned": "mark_dirty",
    "dirty-view": "mark_dirty",
    "leaf-modified-in-place": "mark_dirty",
    "mark-non-differentiable-non-tensor": "mark_non_differentiable",
}


def context_call_place(function: Any, slug: str, text: str) -> Place | None:
    """The call in forward or ``setup_context`` that the error is about, and its argument.

    ``ctx.save_for_backward(x, 2)`` just stores its arguments: the error comes after forward has
    returned, and its traceback holds no line of user code. So the call is looked up in the source.

    Args:
        function: the ``torch.autograd.Function`` class.
        slug: of the explained error.
        text: the error's text, which may say "argument 1".
    """
    name = _CONTEXT_METHODS.get(slug)
    if name is None or function is None:
        return None
    try:
        found = method_node(function, "setup_context") or method_node(function, "forward")
    except Exception:  # sources can be anything
        return None
    if found is None:
        return None
    source, method, _ = found
    calls = [
        node
        for node in ast.walk(method)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == name
    ]
    if not calls:
        return None
    call = calls[-1]
    span = _argument(call, text) or call
    location = source.span(span)
    numbers = range(max(method.lineno, location.line - CONTEXT), location.line + 1)
    lines = tuple((number, source.line(number)) for number in numbers)
    return location, Excerpt(lines, "refused after forward returned"), []


def _argument(call: ast.Call, text: str) -> ast.expr | None:
    found = re.search(r"argument (\d+)", text)
    index = int(found.group(1)) if found else -1
    before = call.args[: index + 1]
    if not 0 <= index < len(call.args) or any(isinstance(arg, ast.Starred) for arg in before):
        return None
    return call.args[index]
