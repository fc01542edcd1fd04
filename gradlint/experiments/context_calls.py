"""Calls of ``ctx`` methods that PyTorch judges only after forward has returned.

``ctx.save_for_backward(x, 2)`` just stores its arguments; the error comes after forward has
returned, and its traceback holds no line of user code. The call is found in the source instead.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from gradlint.experiments.gradient_place import Place
from gradlint.model.report import Excerpt
from gradlint.targets.nodes import method_node

#: Slug of the error → method of ``ctx`` that was called wrongly.
_METHODS = {
    "save-for-backward-non-tensor": "save_for_backward",
    "inference-tensor": "save_for_backward",
    "mark-dirty-non-tensor": "mark_dirty",
    "mark-dirty-not-returned": "mark_dirty",
    "dirty-view": "mark_dirty",
    "leaf-modified-in-place": "mark_dirty",
    "mark-non-differentiable-non-tensor": "mark_non_differentiable",
}

#: Lines of source shown before the call.
CONTEXT = 2


def context_call_place(function: Any, slug: str, text: str) -> Place | None:
    """The call in forward or ``setup_context`` that the error is about, and its argument.

    Args:
        function: the ``torch.autograd.Function`` class.
        slug: of the explained error.
        text: the error's text, which may say "argument 1".
    """
    name = _METHODS.get(slug)
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
