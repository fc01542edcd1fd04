"""Whether an exception says that a transform is not supported, or is a fault."""

from __future__ import annotations

import torch

from gradlint.base.text import error_text
from gradlint.experiments.subject import Subject

#: Texts by which PyTorch, or an op in its manner, says that a transform is not supported.
_REFUSALS = (
    "functorch",
    "vmap",
    "torch.func",
    "setup_context",
    "batching rule",
    "batchedtensor",
    "torch.compile",
    "dynamo",
    "faketensor",
    "fake tensor",
    "fake impl",
    "not supported",
    "unsupported",
    "not implemented",
    "does not support",
    "doesn't support",
    "cannot access data pointer",
    "can't call numpy()",
    "cannot access storage",
    "accessing the data pointer",
    "data-dependent",
    "does not require grad",
    "__torch_function__",
    "this is a bug",  # PyTorch, of itself
    "tracing",
    "tracer",
)


def is_refusal(error: BaseException) -> bool:
    """Whether ``error`` says that what was asked is not supported."""
    if isinstance(error, NotImplementedError):
        return True
    text = error_text(error).lower()
    return any(phrase in text for phrase in _REFUSALS)


def functions_without(subject: Subject, *attributes: str) -> list[str]:
    """Names of Python Functions of the graph that define none of ``attributes`` themselves."""
    base = torch.autograd.Function
    return [
        function.__name__
        for function in python_functions(subject)
        if all(getattr(function, name, None) == getattr(base, name, None) for name in attributes)
    ]


def python_functions(subject: Subject) -> list[type]:
    """Python Functions of the graph, the op's own first, without what PyTorch generates."""
    found = [subject.op.function, *(node.function for node in subject.run.nodes)]
    unique = dict.fromkeys(item for item in found if item is not None)
    return [item for item in unique if not item.__module__.startswith("torch.")]
