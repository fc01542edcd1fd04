"""Signatures of operators: forward without ctx, callables, built-ins, registered ops."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import sys
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import torch

from gradlint.targets._static import FunctionNode
from gradlint.targets.nodes import method_node
from gradlint.targets.source_file import dotted

_VARIABLE = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def signature_of(target: Callable[..., Any]) -> Signature | None:
    """Signature of a callable, annotations evaluated where possible; None when unknown."""
    for evaluate in (True, False):
        try:
            return inspect.signature(target, eval_str=evaluate)
        except (ValueError, TypeError):
            continue
        except Exception:
            # An annotation can't be evaluated; in the second round it stays a text.
            continue
    return _overridable(target)


def forward_signature(cls: type[torch.autograd.Function]) -> Signature | None:
    """Parameters of a Function's forward without ``ctx``."""
    found = signature_of(cls.forward)
    if found is None or all(p.kind in _VARIABLE for p in list(found.parameters.values())[1:]):
        # Wrapped by a decorator that hides the names: the text still has them.
        found = _written(cls) or found
    if found is None:
        return None
    parameters = list(found.parameters.values())
    if not has_setup_context(cls) and parameters and parameters[0].kind not in _VARIABLE:
        parameters = parameters[1:]
    return found.replace(parameters=parameters)


def has_setup_context(cls: type[torch.autograd.Function]) -> bool:
    """Whether forward takes no ctx because ``setup_context`` does."""
    return cls.setup_context is not torch.autograd.Function.setup_context


def partial_signature(partial: functools.partial[Any], whole: Signature | None) -> Signature | None:
    """What is left of the signature ``whole`` of ``partial.func``."""
    if whole is None:
        return signature_of(partial)

    def stub(*args: Any, **kwargs: Any) -> None: ...

    stub.__signature__ = whole  # type: ignore[attr-defined]
    return signature_of(functools.partial(stub, *partial.args, **partial.keywords))


def _overridable(target: Callable[..., Any]) -> Signature | None:
    """Signature of a built-in of torch, from torch's table of overridable functions."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    try:
        stand_in = torch.overrides.get_testing_overrides().get(target)
        return None if stand_in is None else inspect.signature(stand_in)
    except Exception:
        return None


def _written(cls: type) -> Signature | None:
    found = method_node(cls, "forward")
    if found is None or isinstance(found[1], ast.Lambda):
        return None
    node, owner = found[1], found[2]
    named = [*node.args.posonlyargs, *node.args.args]
    if len(named) < 2:
        return None
    namespace = vars(sys.modules.get(owner.__module__, object))
    signature = signature_of_node(node, dict(namespace))
    if "classmethod" in map(dotted, node.decorator_list):
        return signature.replace(parameters=list(signature.parameters.values())[1:])
    return signature


def signature_of_node(node: FunctionNode, namespace: dict[str, Any]) -> Signature:
    """The signature that the text of a function gives; defaults that are neither literals nor
    names of ``namespace`` become None."""
    args = node.args
    named = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(named) - len(args.defaults)) + list(args.defaults)
    parameters = []
    for index, (argument, default) in enumerate(zip(named, defaults, strict=True)):
        kind = (
            Parameter.POSITIONAL_ONLY
            if index < len(args.posonlyargs)
            else Parameter.POSITIONAL_OR_KEYWORD
        )
        parameters.append(_parameter(argument, kind, default, namespace))
    if args.vararg:
        parameters.append(_parameter(args.vararg, Parameter.VAR_POSITIONAL, None, namespace))
    for argument, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        parameters.append(_parameter(argument, Parameter.KEYWORD_ONLY, default, namespace))
    if args.kwarg:
        parameters.append(_parameter(args.kwarg, Parameter.VAR_KEYWORD, None, namespace))
    return Signature(parameters)


def _parameter(
    argument: ast.arg, kind: Any, default: ast.expr | None, namespace: dict[str, Any]
) -> Parameter:
    value: Any = Parameter.empty
    if default is not None:
        try:
            value = ast.literal_eval(default)
        except (ValueError, TypeError, SyntaxError):
            value = _named(default, namespace)
    annotation: Any = Parameter.empty
    if argument.annotation is not None:
        annotation = _named(argument.annotation, namespace) or ast.unparse(argument.annotation)
    return Parameter(argument.arg, kind, default=value, annotation=annotation)


def _named(expression: ast.expr, namespace: dict[str, Any]) -> Any:
    """What ``a.b.c`` stands for in ``namespace`` or among the built-ins; None when unknown."""
    head, *rest = dotted(expression).split(".")
    value = namespace.get(head, vars(builtins).get(head))
    for part in rest:
        value = getattr(value, part, None)
    return value
