"""Statistics of every tensor that entered or left the op in one run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from gradlint.base.text import short_text
from gradlint.model.report import TensorFacts
from gradlint.ops.backed import is_backed
from gradlint.trace.applied import NodeRun
from gradlint.trace.problem import Problem
from gradlint.trace.record import RunRecord


def anatomy(record: RunRecord, problem: Problem) -> list[TensorFacts]:
    """Facts of the arguments, the outputs, the gradients in and out, and what was saved.

    Args:
        record: the instrumented run.
        problem: the problem that was run.

    Returns:
        Facts in the order of the roles of :class:`TensorFacts`. Gradients are those that the
        op's own backward returned, or, if the op has no Python backward of its own, those that the
        engine delivered.
    """
    result = [
        tensor_facts("argument", name, value)
        for name, value in problem.sample.named_leaves(problem.op.signature)
    ]
    named = {name for name, _ in problem.sample.named_leaves(problem.op.signature)}
    result += [
        tensor_facts("argument", item.name, item.value)
        for item in problem.inputs
        if item.name not in named
    ]
    result += [tensor_facts("output", item.name, item.value) for item in record.outputs]
    result += [tensor_facts(role, name, value) for role, name, value in _gradients(record, problem)]
    result += [tensor_facts("saved", name, value) for name, value in record.saved]
    return result


def _gradients(record: RunRecord, problem: Problem) -> Iterator[tuple[str, str, Any]]:
    own = record.own
    if own is not None:
        for index, value in enumerate(own.grad_outputs):
            several = len(own.grad_outputs) > 1
            yield "grad_output", f"grad_output[{index}]" if several else "grad_output", value
        yield from (("gradient", name, value) for name, value in _returned(own))
        return
    for name, cotangent in record.cotangents.items():
        yield "grad_output", name, cotangent
    if record.gradients is not None:
        for item, gradient in zip(problem.inputs, record.gradients, strict=True):
            yield "gradient", item.name, gradient


def _returned(node: NodeRun) -> Iterator[tuple[str, Any]]:
    if node.raised is not None:
        return
    values = node.returned if isinstance(node.returned, tuple) else (node.returned,)
    for index, value in enumerate(values):
        known = index < len(node.arguments)
        yield node.arguments[index] if known else f"surplus[{index}]", value


def tensor_facts(role: str, name: str, value: Any) -> TensorFacts:
    """Facts of one value: numbers for a tensor, a short text for anything else. Never raises."""
    if not isinstance(value, torch.Tensor):
        return TensorFacts(role, name, text=short_text(value))
    facts = TensorFacts(role, name)
    try:
        facts.dtype = str(value.dtype).removeprefix("torch.")
        facts.shape = list(value.shape)
        if value.layout == torch.strided:
            facts.stride = list(value.stride())
            facts.nbytes = value.numel() * value.element_size()
        else:
            facts.text = str(value.layout).removeprefix("torch.")
        _count(facts, value.detach())
    except Exception as error:  # sparse layouts and subclasses do not support everything
        facts.text = facts.text or f"no numbers: {type(error).__name__}"
    return facts


def _count(facts: TensorFacts, value: torch.Tensor) -> None:
    """NaN and Inf counts; min, max and 2-norm over the finite values (moduli where complex)."""
    if value.layout != torch.strided:
        parts = _stored(value)
        facts.nbytes = sum(part.numel() * part.element_size() for part in parts)
        value = parts[-1]
    if value.device.type == "meta":
        facts.text = facts.text or "meta"
        return
    if not is_backed(value):
        facts.text = "its memory was freed"
        return
    if value.is_quantized:
        value = value.dequantize()
    wide = value.to(torch.complex128 if value.is_complex() else torch.float64)
    nan = wide.isnan()
    facts.nan = int(nan.sum())
    facts.inf = int((wide.isinf() & ~nan).sum())
    finite = wide[wide.isfinite()]
    if not finite.numel():
        return
    size = finite.abs() if finite.is_complex() else finite
    facts.min = float(size.min())
    facts.max = float(size.max())
    # Scaled, so that the squares neither overflow nor vanish.
    scale = max(abs(facts.min), abs(facts.max))
    norm = scale * float((size / scale).norm()) if scale > 0 else 0.0
    facts.norm = norm if math.isfinite(norm) else None


def _stored(value: torch.Tensor) -> list[torch.Tensor]:
    """Index tensors and, last, the values that a sparse tensor stores."""
    if value.layout == torch.sparse_coo:
        return [value._indices(), value._values()]
    if value.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [value.crow_indices(), value.col_indices(), value.values()]
    if value.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [value.ccol_indices(), value.row_indices(), value.values()]
    return [value.values()] if value.is_nested else [value.to_dense()]
