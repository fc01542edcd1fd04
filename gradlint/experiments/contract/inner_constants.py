"""Inputs of a callable or a module for which a Function inside returns None: forgotten, or meant?

Where a Function is checked by itself and gradlint chooses its inputs, an argument for which
backward returns None does not require grad. A callable or a module around it has the same argument,
and it is judged much like that: a gradient counts as forgotten where something says that it was
meant, or where the Function returns one for every other tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

import torch

from gradlint.experiments.contract.constants import (
    is_constant_by_name,
    is_made_to_noise,
    is_sorted_into,
)
from gradlint.experiments.contract.meant_gradients import is_of_loss, said_of, why_meant
from gradlint.experiments.contract.optional_inputs import default_tells
from gradlint.experiments.finite.extremes import parameters_of
from gradlint.experiments.returned_gradients import ReturnedGradient, returned_gradients
from gradlint.experiments.subject import Subject
from gradlint.targets.nodes import function_node
from gradlint.targets.signature import signature_of


def is_inner_constant(subject: Subject, position: int) -> bool:
    """Whether the input at ``position`` is taken for a constant of a Function inside."""
    gradients = subject.run.gradients
    if gradients is None or gradients[position] is not None:
        return False
    return any(
        is_taken_as_constant(subject, item, position)
        for item in returned_gradients(subject)
        if item.needed and item.value is None and leaf_of(item) == position
    )


def is_inner_chosen(subject: Subject, position: int) -> bool:
    """Whether a Function inside returned None for the input at ``position``, and gradlint alone
    asked for its gradient."""
    return any(
        is_chosen(subject, item, position)
        for item in returned_gradients(subject)
        if item.needed and item.value is None and leaf_of(item) == position
    )


def leaf_of(item: ReturnedGradient) -> int | None:
    """The position of the input which that argument of the Function is, or from which alone it is
    computed; None where there is none."""
    node, place = item.node, item.position
    found = [kind[place] for kind in (node.leaves, node.reached) if place < len(kind)]
    return next((leaf for leaf in found if leaf is not None), None)


def is_chosen(subject: Subject, item: ReturnedGradient, position: int) -> bool:
    """Whether gradlint alone decided that the input at ``position`` requires grad, for which a
    Function inside returned None: not a parameter of a module, and not the first of the arguments
    that could have a gradient."""
    inside = item.node.function is not subject.op.function
    chosen = subject.sample.origin == "inferred" or subject.sample.unmarked
    if not inside or not chosen or position in parameters_of(subject):
        return False
    beside = _beside(subject, item)
    return item.position != beside[0].position and any(one.value is not None for one in beside)


def is_taken_as_constant(subject: Subject, item: ReturnedGradient, position: int) -> bool:
    """Whether the input at ``position``, for which a Function inside returned None, may be a
    constant: :func:`is_chosen`, nothing says that a gradient is meant, and its name says that it is
    a constant, other values are sorted into it, its default is one, noise is made of it, another
    tensor has none either, or it weights a loss beside a target."""
    if not is_chosen(subject, item, position) or why_gradient_meant(subject, item):
        return False
    without = [one for one in _beside(subject, item) if one.value is None]
    names = item.node.arguments
    others = [name for k, name in enumerate(names) if k != item.position]
    name = names[item.position]
    return (
        len(without) > 1
        or is_constant_by_name(name)
        or is_sorted_into(subject, position)
        or is_made_to_noise(item.node.function, name)
        or is_of_loss(others)
        or _has_constant_default(item.node.function, name)
        or _is_cast_to_another(subject, subject.problem.inputs[position].name)
    )


def _is_cast_to_another(subject: Subject, name: str) -> bool:
    """Whether the function that is checked does nothing with an argument but to give it the dtype
    of another, ``y.to(p.dtype)``: labels, which come as integers or booleans."""
    found = function_node(subject.op.defining) if subject.op.defining is not None else None
    if found is None or subject.op.module is not None:
        return False
    parents = [
        (parent, child)
        for parent in ast.walk(found[1])
        for child in ast.iter_child_nodes(parent)
        if isinstance(child, ast.Name) and child.id == name
    ]
    casts = [
        node
        for node in ast.walk(found[1])
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == name
        and (node.func.attr == "type_as" or _names_dtype_of_another(node, name))
    ]
    return bool(casts) and len(casts) == len(parents)


def _names_dtype_of_another(call: ast.Call, name: str) -> bool:
    """Whether ``call`` is ``.to(other.dtype)``."""
    match call:
        case ast.Call(ast.Attribute(_, "to"), [ast.Attribute(ast.Name(other), "dtype")], []):
            return other != name
    return False


def _has_constant_default(function: type, name: str) -> bool:
    """Whether the argument ``name`` of the forward of a Function is a number, or a tensor that
    requires no grad, where nobody gives it."""
    signature = signature_of(getattr(function, "forward", function))
    parameter = signature.parameters.get(name) if signature is not None else None
    default = parameter.default if parameter is not None else None
    if isinstance(default, torch.Tensor):
        return not default.requires_grad
    return isinstance(default, (int, float, complex))


def _beside(subject: Subject, item: ReturnedGradient) -> list[ReturnedGradient]:
    """What backward returned for the arguments of the same call that need a gradient."""
    return [one for one in returned_gradients(subject) if one.needed and one.node is item.node]


def why_gradient_meant(subject: Subject, item: ReturnedGradient) -> str:
    """Why an argument for which backward returned None is meant to have a gradient, in words; empty
    where nothing says so."""
    node = item.node
    own = [other for other in returned_gradients(subject) if other.node is node]
    returned = [other.value is not None for other in own]
    return why_meant(node.function, node.arguments, item.position, returned) or _by_default(
        subject, item, returned
    )


def _by_default(subject: Subject, item: ReturnedGradient, returned: Sequence[bool]) -> str:
    """Why what stands in for the argument where it is None says that it has a gradient."""
    signature = subject.op.signature
    function, names = item.node.function, item.node.arguments
    name = names[item.position]
    parameter = signature.parameters.get(name) if signature is not None else None
    if parameter is None or parameter.default is not None:
        return ""
    if said_of(function, name, names) is False:
        return ""
    others = [name for name, has in zip(names, returned, strict=False) if has]
    reason = default_tells(function, name, others)
    # A backward that is no derivative, as of a rounding, says nothing about the argument.
    return "" if reason and subject.wrong_inputs else reason
