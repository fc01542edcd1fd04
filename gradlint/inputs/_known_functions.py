"""What known functions need of their arguments: kinds from the schemas of PyTorch's functions,
domains, and ranks from equations such as ``"bij,bjk->bik"`` or ``"b (h w) c -> b c h w"``."""

from __future__ import annotations

import ast
import inspect
import re
from functools import lru_cache
from typing import Any

import torch

from gradlint.inputs._annotations import read_annotation
from gradlint.inputs._evidence import Evidence
from gradlint.targets.source_file import literal

_KIND_OF_TYPE = {
    "Tensor": "any",
    "number": "float",
    "Scalar": "float",
    "float": "float",
    "int": "int",
    "SymInt": "int",
    "bool": "bool",
    "str": "str",
    "List[int]": "shape",
    "List[SymInt]": "shape",
    "List[Tensor]": "tensors",
    "Optional[Tensor]": "any",
    "ScalarType": "dtype",
    "Device": "device",
}
#: Integer or boolean tensors, by the name that schemas give them.
_INTEGER_NAMES = frozenset({"index", "indices"})
_MASK_NAMES = frozenset({"mask", "condition"})
#: Functions of einops that take a tensor and a pattern.
_EINOPS = frozenset({"rearrange", "reduce", "repeat"})
#: Functions of torch that are defined, or make sense, only on part of the reals.
_DOMAINS = {
    "cholesky": "spd",
    "cholesky_ex": "spd",
    "cholesky_inverse": "tril",
    "logdet": "dominant",
    "eigh": "spd",
    "eigvalsh": "spd",
    "acos": "small",
    "arccos": "small",
    "asin": "small",
    "arcsin": "small",
    "atanh": "small",
    "arctanh": "small",
    "erfinv": "small",
    "acosh": "above",
    "arccosh": "above",
    "lgamma": "positive",
    "digamma": "positive",
    "logit": "unit",
}


@lru_cache(maxsize=512)
def argument_kinds(name: str, key: int | str, method: bool) -> tuple[tuple[str, float], ...]:
    """Kinds that ``torch.<name>`` or ``Tensor.<name>`` takes at ``key``, with weights.

    Args:
        name: the function's name, e.g. "gather".
        key: position among the arguments written down, or the keyword.
        method: whether it is called as a method (then the tensor is not among the arguments).
    """
    shown = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    packet = None
    for candidate in (name, shown):
        packet = getattr(torch.ops.aten, candidate, None)
        if packet is not None:
            break
    if packet is None:
        return _python_function(name, key) if not method else ()
    counts: dict[str, int] = {}
    total = 0
    for overload in packet.overloads():
        if overload.endswith("out") or "Dimname" in overload:
            continue
        argument = _pick(getattr(packet, overload)._schema.arguments, key, method)
        if argument is None:
            continue
        text = str(argument.type)
        if text.startswith("Optional[") and text != "Optional[Tensor]":
            text = text[9:-1]
        kind = _KIND_OF_TYPE.get(text)
        if kind == "shape" and argument.name == "size" and not method:
            # ``torch.zeros(3)`` and ``torch.zeros(3, 4)`` are sizes one by one.
            kind = "int"
        if kind == "any" and argument.name in _INTEGER_NAMES:
            kind = "index"
        elif kind == "any" and argument.name in _MASK_NAMES:
            kind = "mask"
        total += 1
        if kind:
            counts[kind] = counts.get(kind, 0) + 1
    # That a tensor must hold integers counts for more than any name.
    return tuple(
        (kind, (5.0 if kind in ("index", "mask") else 3.0) * count / total)
        for kind, count in counts.items()
    )


def _pick(arguments: Any, key: int | str, method: bool) -> Any:
    if isinstance(key, str):
        return next((argument for argument in arguments if argument.name == key), None)
    position = key + 1 if method else key
    return arguments[position] if position < len(arguments) else None


def _python_function(name: str, key: int | str) -> tuple[tuple[str, float], ...]:
    function = getattr(torch.nn.functional, name, None) or getattr(torch, name, None)
    try:
        parameters = list(inspect.signature(function).parameters.values())  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ()
    for index, parameter in enumerate(parameters):
        if key in (index, parameter.name):
            evidence = Evidence(parameter.name)
            read_annotation(evidence, parameter.annotation)
            return tuple((kind, weight / 2) for kind, weight in evidence.weights.items())
    return ()


def domain_needed(name: str) -> str:
    """The domain on which ``torch.<name>`` of one tensor is defined; empty for all the reals."""
    # Functions of torch.linalg and torch.special have the module in their names too.
    return _DOMAINS.get(name.removeprefix("linalg_").removeprefix("special_"), "")


def operand(call: ast.Call, position: int) -> tuple[ast.expr, int] | None:
    """Operand ``position`` of a call to einsum, with the number of axes that its equation gives it;
    None without such an operand, or where an ellipsis leaves the number open."""
    if not ast.unparse(call.func).endswith("einsum") or not call.args:
        return None
    known, equation = literal(call.args[0])
    operands = call.args[1:]
    if len(operands) == 1 and isinstance(operands[0], (ast.Tuple, ast.List)):
        operands = operands[0].elts
    if not known or not isinstance(equation, str) or position >= len(operands):
        return None
    terms = equation.split("->")[0].split(",")
    if position >= len(terms) or "." in terms[position]:
        return None
    return operands[position], sum(letter.isalpha() for letter in terms[position])


def rank_wanted(call: ast.Call, key: int | str) -> int | None:
    """The number of axes that the argument ``key`` of ``call`` has by an equation in the call."""
    name = ast.unparse(call.func).rsplit(".", 1)[-1]
    if name == "einsum" and isinstance(key, int) and key:
        found = operand(call, key - 1)
        return found[1] if found else None
    if name in _EINOPS and key == 0 and len(call.args) > 1:
        known, pattern = literal(call.args[1])
        if known and isinstance(pattern, str) and "->" in pattern and "..." not in pattern:
            left = re.sub(r"\([^()]*\)", "x", pattern.split("->")[0])
            return len(left.split())
    return None
