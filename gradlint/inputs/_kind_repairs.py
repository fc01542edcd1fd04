"""Moves that pass another kind of argument for a parameter."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

import torch

from gradlint.inputs import _names
from gradlint.inputs._evidence import Evidence
from gradlint.inputs._frames import FailedAttempt
from gradlint.inputs._plan import GroupGuess, Guess, Omitted, Plan, TensorGuess, ValueGuess
from gradlint.inputs._proposals import integer_tensors, of_kind
from gradlint.inputs.stand_ins import Closure, ClosureModule, first_stand_in

#: Error text → kinds wanted instead, and what the parameter must be now ("" for anything).
_KINDS_BY_ERROR: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        r"tensors used as indices|dtype int64|int32/int64|scalar type Long|must be long|LongTensor"
        r"|types: Long|to be Long|must be integral|expected .{0,20}integer tensor"
        r"|integer (?:dtype|type) ?tensor|arrays used as indices must be of integer"
        r"|IndexError: only integers|Long but",
        ("index",),
        "tensor",
    ),
    (
        r"(?i)boolean mask|boolean tensor|bool tensor|to be bool|scalar type Bool|BoolTensor"
        r"|types: bool|dtype bool|bitwise_\w+_cpu|'~'|~ \(operator\.invert\)",
        ("mask", "index"),
        "tensor",
    ),
    (
        r"cannot be interpreted as an integer|only integer tensors|must be int|expected int"
        r"|as an index|slice indices must be integers|integer is required"
        r"|must be (?:a )?(?:tuple of )?ints?|'int'\)? but|type must be tuple of ints",
        ("int", "shape", "index"),
        "any",
    ),
    (
        r"must be Tensor, not|expected Tensor|to be a Tensor|be a tensor|not a tensor"
        r"|must be of type Tensor|'Tensor' but|type Tensor but|input must be a Tensor|torch.Tensor",
        ("tensor",),
        "value",
    ),
    (r"object is not callable", ("callable", "module"), "any"),
    (
        r"not iterable|has no len|not subscriptable|must be (?:tuple|list|sequence)"
        r"|iteration over a 0-d",
        ("tensor", "tensors", "shape"),
        "any",
    ),
    # Of integers: they may be real numbers as well.
    (r"floating point or complex", ("tensor",), "tensor"),
    (r"(?i)(?<!floating point or )complex", ("complex",), "tensor"),
    (
        r"Boolean value of Tensor|ambiguous|must be bool|must be float|must be Number"
        r"|must be real number|converted to Scalar|cannot be converted to",
        ("float", "bool", "int"),
        "tensor",
    ),
    (
        r"NoneType",
        ("tensor", "float", "int", "index", "mask", "shape", "dict", "callable"),
        "none",
    ),
    (
        r"must be str|'str'|expected str|unhashable|Invalid \w+ (?:mode|method)|[Uu]nknown"
        r"|not (?:a )?(?:valid|supported|implemented)|[Uu]nsupported|KeyError",
        ("str",),
        "any",
    ),
    (r"mapping|keyword arguments must be", ("dict",), "any"),
    (r"must be torch.dtype", ("dtype",), "any"),
)

#: What registered operators and TorchScript functions say of an argument of another type.
_DECLARED = re.compile(
    r"Expected a value of type '([^']+)' for argument '(\w+)' but instead found type '(\w+)'"
)
#: Type in a schema → kinds.
_KINDS_BY_TYPE: dict[str, tuple[str, ...]] = {
    "Tensor": ("tensor", "index", "mask"),
    "List[Tensor]": ("tensors",),
    "int": ("int",),
    "SymInt": ("int",),
    "float": ("float",),
    "number": ("float", "int"),
    "bool": ("bool",),
    "str": ("str",),
    "List[int]": ("shape",),
    "List[float]": ("floats",),
    "Device": ("device",),
}
#: What functions bound by pybind11 say of arguments of another type, and a type that they take.
_BOUND = re.compile(r"incompatible function arguments.*?argument types are supported:(.*?)Invoked")
_BOUND_TYPE = re.compile(r"\w+: (?:typing\.)?(\w+)")

#: What it costs to follow a declared type: less than any guess at what an error means.
_DECLARED_COST = 0.05


def from_kinds(failed: FailedAttempt) -> Iterator[Plan]:
    """Plans in which a parameter on the failing line is of another kind."""
    text = f"{failed.failure.kind}: {failed.failure.text}"
    if match := _DECLARED.search(text):
        yield from _declared(failed, *match.groups())
    if match := _BOUND.search(text.replace("\n", " ")):
        yield from _bound(failed, set(_BOUND_TYPE.findall(match[1])))
    if match := re.search(r"'(\w+)' object has no attribute '(\w+)'", text):
        yield from _attribute(failed, match.group(1), match.group(2))
    for pattern, kinds, now in _KINDS_BY_ERROR:
        if re.search(pattern, text):
            yield from _changed(failed, kinds, now)
    if match := re.search(r"can only save variables, but argument (\d+) is", text):
        yield from _saved(failed, int(match.group(1)))
    if re.search(r"not have been used in the graph|does not require grad and does not", text):
        yield from _closing(failed.plan)
    if match := re.search(r"values to unpack \(expected (\d)", text):
        yield from _several(failed, int(match.group(1)))
    if re.search(r"(?:unsupported operand|not supported between|bad operand) .*'function'", text):
        yield from _numbers_for_functions(failed)
    if re.search(r"unary [-+~]: '(?:tuple|list)'|unsupported operand .*'(?:tuple|list)'", text):
        yield from _numbers(failed.plan)


def _declared(failed: FailedAttempt, wanted: str, argument: str, found: str) -> Iterator[Plan]:
    """The parameter that was passed as ``argument`` gets the type ``wanted``: that of the same
    name, or those on the failing line that are of the type ``found``."""
    kinds = _KINDS_BY_TYPE.get(re.sub(r"^Optional\[(.*)\]$", r"\1", wanted), ())
    named = [argument] if argument in failed.plan.names else failed.blamed()
    for name in named:
        # ``list(shape)`` of a tensor is a list of tensors.
        listed = argument == name and (wanted, found) == ("List[int]", "list")
        if _type_name(failed.plan.guess(name)) in ((found, "Tensor") if listed else (found,)):
            yield from _to(failed, name, kinds, _DECLARED_COST)


def _bound(failed: FailedAttempt, wanted: set[str]) -> Iterator[Plan]:
    """Fractions on the failing line, or all where none is there, become what the called function
    takes beside other things: integers, at once, where it says nothing of fractions; or one of them
    becomes a tensor."""
    fractions = [
        name
        for name, guess in zip(failed.plan.names, failed.plan.guesses, strict=True)
        if isinstance(guess, ValueGuess) and type(guess.value) is float
    ]
    passed = [name for name in failed.blamed() if name in fractions] or fractions
    if wanted & {"int", "SupportsInt"} and not wanted & {"float", "SupportsFloat"}:
        changed = failed.plan
        for name in passed:
            integers = of_kind(failed.evidence.get(name) or Evidence(name), "int")
            changed = changed.changed(name, integers[0][0], _DECLARED_COST)
        if changed is not failed.plan:
            yield changed
    if "torch" in wanted:
        for name in fractions:
            yield from _to(failed, name, ("tensor",), 2 * _DECLARED_COST)


def _saved(failed: FailedAttempt, index: int) -> Iterator[Plan]:
    """Argument ``index`` of ``save_for_backward`` becomes a tensor: of numbers, where it was a
    fraction, for which no integer stands because backward then has no gradient to return."""
    for name, evidence in failed.evidence.items():
        if evidence.saved == index and name in failed.plan.names:
            now = failed.plan.guess(name)
            fraction = isinstance(now, ValueGuess) and type(now.value) is float
            yield from _to(failed, name, ("tensor",) if fraction else ("tensor", "index"), 0.1)


def _closing(plan: Plan) -> Iterator[Plan]:
    """A function argument becomes one that depends on the tensors in ``*args``."""
    if not (isinstance(last := plan.guesses[-1], GroupGuess) and last.splice):
        return
    for name, guess in zip(plan.names, plan.guesses, strict=True):
        if isinstance(guess, ValueGuess) and guess.kind == "callable":
            for step, value in enumerate((first_stand_in, Closure(len(plan.names) - 1))):
                if guess.value != value:
                    yield plan.changed(name, ValueGuess(value, "callable"), 0.1 + 0.1 * step)


def _several(failed: FailedAttempt, count: int) -> Iterator[Plan]:
    """Modules return ``count`` tensors, where a call of one is unpacked into as many names."""
    innermost = failed.innermost()
    if innermost is None or not isinstance(innermost[0], ast.Assign):
        return
    call = innermost[0].value
    if not (isinstance(call, ast.Call) and failed.named(call.func, innermost[1])):
        return
    changed = failed.plan
    for name, guess in zip(failed.plan.names, failed.plan.guesses, strict=True):
        if isinstance(guess, ValueGuess) and isinstance(guess.value, ClosureModule):
            made = ValueGuess(guess.value.returning(count), guess.kind)
            changed = changed.changed(name, made, 0.05)
    if changed is not failed.plan:
        yield changed


def _numbers_for_functions(failed: FailedAttempt) -> Iterator[Plan]:
    """A number or a tensor in place of a function that was guessed, and computed with."""
    for name, guess in zip(failed.plan.names, failed.plan.guesses, strict=True):
        if isinstance(guess, ValueGuess) and guess.kind == "callable":
            yield from _to(failed, name, ("float", "tensor"), 0.1)


def _numbers(plan: Plan) -> Iterator[Plan]:
    """Every tuple of numbers becomes its first number; all at once, since they belong together."""
    single = plan
    for name, guess in zip(plan.names, plan.guesses, strict=True):
        value = guess.value if isinstance(guess, ValueGuess) else None
        if isinstance(value, (tuple, list)) and value and isinstance(value[0], (int, float)):
            kind = "int" if isinstance(value[0], int) else "float"
            single = single.changed(name, ValueGuess(value[0], kind), 0.2)
    if single is not plan:
        yield single


def _attribute(failed: FailedAttempt, kind: str, attribute: str) -> Iterator[Plan]:
    wanted: tuple[str, ...]
    if kind == "Tensor":
        wanted = ("value", "module", "dict", "str", "tensors", "callable")
    elif attribute in ("append", "extend"):
        wanted = ("tensors", "shape")
    elif attribute in ("items", "keys", "get"):
        wanted = ("dict",)
    elif attribute in ("lower", "upper", "split", "startswith"):
        wanted = ("str",)
    elif hasattr(torch.Tensor, attribute):
        wanted = ("tensor", "index", "mask")
    else:
        wanted = ("value", "module")
    for name in failed.blamed():
        guess = failed.plan.guess(name)
        if _type_name(guess) == kind:
            yield from _to(failed, name, wanted, 0.15)


def _changed(failed: FailedAttempt, kinds: tuple[str, ...], now: str) -> Iterator[Plan]:
    plan = failed.plan
    blamed = failed.blamed()
    order = blamed + [name for name in plan.names if name not in blamed]
    for position, name in enumerate(order):
        guess = plan.guess(name)
        is_tensor = isinstance(guess, (TensorGuess, GroupGuess))
        if now == "tensor" and not is_tensor:
            continue
        if now == "value" and is_tensor:
            continue
        if now == "none" and not (isinstance(guess, ValueGuess) and guess.value is None):
            continue
        if isinstance(guess, Omitted):
            continue
        cost = 0.25 + (0.08 * position if name in blamed else 0.6 + 0.1 * position)
        yield from _to(failed, name, kinds, cost)


def _to(failed: FailedAttempt, name: str, kinds: tuple[str, ...], cost: float) -> Iterator[Plan]:
    plan = failed.plan
    guess = plan.guess(name)
    evidence = failed.evidence.get(name) or Evidence(name)
    if evidence.differentiable and not set(kinds) & {"tensor", "complex"}:
        # Backward returns a gradient for it.
        cost += 1.0
    for step, kind in enumerate(kinds):
        if isinstance(guess, TensorGuess) and kind in ("index", "mask", "complex", "tensor"):
            dtype = {"index": "int", "mask": "bool", "complex": "complex"}.get(kind, "float")
            if dtype != guess.dtype:
                # The shape may be right already: only the type changes.
                made = of_kind(evidence, kind, integer_tensors(failed.evidence.values()))[0][0]
                domain = made.domain if isinstance(made, TensorGuess) else "real"
                grad = dtype in ("float", "complex")
                other = replace(guess, dtype=dtype, domain=domain, grad=grad)
                yield plan.changed(name, other, cost + 0.1 * step)
                continue
        if kind == "tensor" and isinstance(guess, ValueGuess) and type(guess.value) in (int, float):
            grad = evidence.differentiable is not False
            scalar = TensorGuess((), domain=_names.domain(name), grad=grad)
            yield plan.changed(name, scalar, cost + 0.1 * step + 0.05)
        for extra, (proposal, _) in enumerate(of_kind(evidence, kind)[:2]):
            yield plan.changed(name, proposal, cost + 0.1 * step + 0.25 * extra)


def _type_name(guess: Guess) -> str:
    if isinstance(guess, TensorGuess):
        return "Tensor"
    if isinstance(guess, GroupGuess):
        return "dict" if guess.keys else guess.container.__name__
    return type(guess.value).__name__ if isinstance(guess, ValueGuess) else ""
