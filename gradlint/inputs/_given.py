"""Samples that the user gives: what ``--inputs`` names or ``sample_inputs`` returns."""

from __future__ import annotations

import ast
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import torch

from gradlint.base.errors import GradlintError, InputsError, TargetError
from gradlint.base.text import error_line, nearest, short_text
from gradlint.expressions.arguments import parse_arguments
from gradlint.expressions.evaluate import evaluate_arguments
from gradlint.inputs._attempt import process_state_restored, run
from gradlint.inputs.stand_ins import Owner, with_bound_closures, with_owners
from gradlint.inputs.values import Built
from gradlint.model.op import Op
from gradlint.model.report import Location
from gradlint.model.sample import Sample, map_tensors
from gradlint.targets.importing import import_file, import_module
from gradlint.targets.load_error import LoadError, raised_at

#: What a function that gives inputs may return.
FORMS = (
    "Expected one tuple of arguments, one tensor, a list of tuples, or a dict name → tuple; "
    "for example `return torch.randn(3, 4), torch.randn(5, 4), -1`."
)
_FILE = re.compile(r"^(?P<path>.+\.py)::?(?P<name>[A-Za-z_][\w.]*)$")
_MODULE = re.compile(r"^(?P<path>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)::?(?P<name>[A-Za-z_][\w.]*)$")


def from_option(op: Op, text: str, seed: int) -> list[Sample]:
    """Samples from the text of ``--inputs``.

    Args:
        op: the operator they are for.
        text: ``path/file.py:function``, ``pkg.mod:function``, or an expression such as
            ``randn(3, 4), None, dim=-1``.
        seed: seed of the random values drawn on the way.

    Raises:
        InputsError: no such file or function, it raised, or what it gave is of no use.
    """
    stripped = text.strip()
    place = f"--inputs {short_text(text, 80)}"
    match = _FILE.match(stripped) or _MODULE.match(stripped)
    if match is None:
        return _from_expression(op, stripped, seed, place)
    function = _attribute(_module(match["path"], place), match["name"], place)
    if not callable(function):
        return samples_from(op, function, "--inputs", place)
    return from_function(op, function, seed, "--inputs", place)


def from_function(
    op: Op, function: Callable[[], Any], seed: int, origin: str, place: str
) -> list[Sample]:
    """Samples from a function without arguments."""
    torch.manual_seed(seed)
    try:
        value = function()
    except (Exception, SystemExit) as error:
        raise InputsError(
            f"the function raised {error_line(error)}{_line_of(raised_at(error))}",
            place=place,
            hint=f"It is called without arguments. {FORMS}",
        ) from error
    return samples_from(op, value, origin, place)


def _from_expression(op: Op, text: str, seed: int, place: str) -> list[Sample]:
    try:
        arguments = parse_arguments(text)
        args, kwargs = evaluate_arguments(arguments, seed)
    except GradlintError as error:
        hint = error.hint or (
            "Write the arguments as in a call, for example "
            '"randn(3, 4), randn(5, 4), None, dim=-1", or name a function: '
            "path/file.py:function or pkg.mod:function."
        )
        raise InputsError(error.message, place=place, hint=hint) from error
    except Exception as error:
        raise InputsError(
            f"the expression raised {error_line(error)}",
            place=place,
            hint="Check the shapes and values in it.",
        ) from error
    constants: list[torch.Tensor] = []
    for expression, value in zip(arguments.positional, args, strict=True):
        constants += _constants(expression.tree, value)
    for name, expression in arguments.keywords.items():
        constants += _constants(expression.tree, kwargs[name])
    return [_sample(op, "--inputs", "--inputs", tuple(args), dict(kwargs), place, constants)]


def _constants(tree: ast.expr, value: Any) -> Iterator[torch.Tensor]:
    """Tensors in the value of an expression for which ``requires_grad=False`` was written."""
    if isinstance(tree, (ast.List, ast.Tuple)) and isinstance(value, (list, tuple)):
        for part, item in zip(tree.elts, value, strict=True):
            yield from _constants(part, item)
    elif isinstance(value, torch.Tensor):
        written = [
            node.value.value
            for node in ast.walk(tree)
            if isinstance(node, ast.keyword)
            and node.arg == "requires_grad"
            and isinstance(node.value, ast.Constant)
        ]
        if written and not any(written):
            yield value


def samples_from(op: Op, value: Any, origin: str, place: str) -> list[Sample]:
    """Samples from what the user's function returned.

    Args:
        op: the operator.
        value: a tuple of arguments, a tensor, a list of those, a dict name → those, or samples.
        origin: "--inputs" or "sample_inputs".
        place: what to name in an error.

    Raises:
        InputsError: ``value`` is of no use; the message says what came and what is expected.
    """
    if isinstance(value, (Sample, tuple, torch.Tensor)):
        return [_of_one(op, value, origin, origin, place)]
    if isinstance(value, list):
        if not value:
            raise InputsError("it gave an empty list: no samples", place=place, hint=FORMS)
        many = len(value) > 1
        return [
            _of_one(op, item, f"{origin}[{index}]" if many else origin, origin, place)
            for index, item in enumerate(value)
        ]
    if isinstance(value, dict):
        return _of_dict(op, value, origin, place)
    shown = "None" if value is None else f"{_article(value)}, {short_text(value, 40)}"
    hint = FORMS
    if inspect.isgenerator(value):
        shown, hint = "a generator", f"Put list(…) around it. {FORMS}"
    elif value is None:
        hint = f"Is a `return` missing? {FORMS}"
    raise InputsError(f"it gave {shown}", place=place, hint=hint)


def _of_dict(op: Op, value: dict[Any, Any], origin: str, place: str) -> list[Sample]:
    if not value:
        raise InputsError("it gave an empty dict: no samples", place=place, hint=FORMS)
    names = set(op.signature.parameters) if op.signature is not None else set()
    keys = [str(key) for key in value]
    if set(keys) <= names and not all(isinstance(item, tuple) for item in value.values()):
        order = ", ".join(key for key in op.signature.parameters if key in keys)  # type: ignore[union-attr]
        raise InputsError(
            f"it gave a dict with the names of forward's parameters as keys ({', '.join(keys)})",
            place=place,
            hint=f"Return a tuple in forward's order: ({order}). A dict names several samples: "
            '{"small": (…), "large": (…)}.',
        )
    return [
        _of_one(op, item, str(key), origin, f"{place}, sample {key!r}")
        for key, item in value.items()
    ]


def _of_one(op: Op, item: Any, label: str, origin: str, place: str) -> Sample:
    if isinstance(item, Sample):
        made = _sample(op, item.label, origin, item.args, item.kwargs, place)
        return replace(made, notes=list(item.notes), domains=dict(item.domains))
    if isinstance(item, torch.Tensor):
        item = (item,)
    if not isinstance(item, tuple):
        where = f" for sample {label!r}" if label != origin else ""
        raise InputsError(
            f"it gave {_article(item)}{where}, {short_text(item, 40)}, not a tuple of arguments",
            place=place,
            hint=FORMS,
        )
    return _sample(op, label, origin, item, {}, place)


def _sample(
    op: Op,
    label: str,
    origin: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    place: str,
    constants: Sequence[torch.Tensor] = (),
) -> Sample:
    """A sample of the arguments; ``constants`` are not differentiated, whatever else is."""
    if op.signature is not None:
        try:
            bound = op.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise InputsError(
                f"the arguments do not fit: {error}",
                place=place,
                hint=f"{op.name} takes {op.signature}; {len(args)} positional given.",
            ) from error
        if kwargs and op.function is not None:
            # ``apply`` takes its arguments by position, and leaves none out before one given.
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
    found: list[torch.Tensor] = []
    map_tensors((args, kwargs), lambda tensor: found.append(tensor) or tensor)  # type: ignore[func-returns-value]
    if not found and op.module is None:
        shown = ", ".join(short_text(item, 30) for item in args) or "no arguments"
        raise InputsError(
            f"no tensor among the arguments: {shown}",
            place=place,
            hint="Give at least one floating tensor: a gradient needs one. " + FORMS,
        )
    chosen = any(tensor.requires_grad for tensor in found)
    fixed = {id(tensor) for tensor in constants}

    def wants_grad(tensor: torch.Tensor) -> bool:
        if chosen:
            return tensor.requires_grad
        return (tensor.is_floating_point() or tensor.is_complex()) and id(tensor) not in fixed

    def convert(tensor: torch.Tensor) -> torch.Tensor:
        inexact = tensor.is_floating_point() or tensor.is_complex()
        copy = tensor.detach().to("cpu")
        if inexact:
            copy = copy.to(torch.complex128 if tensor.is_complex() else torch.float64)
        if copy is tensor or _same_memory(copy, tensor):
            copy = copy.clone()
        return copy.requires_grad_(wants_grad(tensor))

    args = with_owners(args)
    if any(isinstance(item, Owner) for item in args):
        op.call = with_bound_closures(op.call)
    given = Sample(label, origin, args, kwargs)
    made = Sample(label, origin, map_tensors(args, convert), map_tensors(kwargs, convert))
    made.unmarked = not chosen
    made.notes += [
        f"{name}: elements that shared memory were copied apart"
        for name, tensor in given.named_tensors(op.signature)
        if _overlaps(tensor)
    ]
    return _in_given_dtype(op, given, made, found, wants_grad)


def _in_given_dtype(
    op: Op,
    given: Sample,
    made: Sample,
    found: list[torch.Tensor],
    wants_grad: Callable[[torch.Tensor], bool],
) -> Sample:
    """``made``, or the sample in the dtypes given where the op runs in these alone."""
    if not any(tensor.dtype in (torch.float32, torch.complex64) for tensor in found):
        return made
    with process_state_restored():
        if run(op, Built(made.args, made.kwargs), "float64", 0, backward=False).score > 0:
            return made

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            return tensor.detach().to("cpu").clone().requires_grad_(wants_grad(tensor))

        args, kwargs = map_tensors((given.args, given.kwargs), keep)
        if run(op, Built(args, kwargs), "float32", 0, backward=False).score == 0:
            return made
    return replace(made, args=args, kwargs=kwargs, notes=["in float32: the op refused float64"])


def _same_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether ``b`` starts where ``a`` does; of sparse tensors, whether they may."""
    if a.layout != torch.strided or b.layout != torch.strided:
        return a.layout == b.layout
    return a.data_ptr() == b.data_ptr()


def _overlaps(tensor: torch.Tensor) -> bool:
    """Whether two elements of a strided tensor share memory, as after ``expand``; True also where
    that can't be excluded from its strides."""
    if tensor.layout != torch.strided or tensor.is_nested or not tensor.numel():
        return False
    reach = 0
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1:
            if stride <= reach:
                return True
            reach += stride * (size - 1)
    return False


def _module(path: str, place: str) -> ModuleType:
    """The module in the file ``path``, or of that dotted name."""
    try:
        if not path.endswith(".py"):
            return import_module(path)
        full = os.path.abspath(os.path.expanduser(path))
        for module in list(sys.modules.values()):
            # The target's own file is loaded already: its classes must stay the same objects.
            if getattr(module, "__file__", None) == full and getattr(module, "__spec__", None):
                return module
        return import_file(full if path.startswith("~") else path)
    except TargetError as error:
        by_name = "The current directory is importable; for a file write path/file.py:function."
        hint = error.hint if path.endswith(".py") else by_name
        raise InputsError(error.message, place=place, hint=hint) from error
    except LoadError as error:
        raise InputsError(
            error.message + _line_of(error.location), place=place, hint=error.hint
        ) from error


def _attribute(module: ModuleType, name: str, place: str) -> Any:
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            public = [key for key in dir(value) if callable(getattr(value, key, None))]
            near = nearest(part, public, limit=3)
            hint = f"Did you mean {', '.join(near)}?" if near else FORMS
            raise InputsError(f"{part!r} is not defined in it", place=place, hint=hint)
        value = getattr(value, part)
    return value


def _line_of(location: Location | None) -> str:
    """The user's line that raised, e.g. `` (inputs.py:12)``."""
    return f" ({location.file}:{location.line})" if location is not None else ""


def _article(value: Any) -> str:
    name = type(value).__name__
    return f"an {name}" if name[:1] in "aeiou" else f"a {name}"
