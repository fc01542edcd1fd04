"""Whether a backward is PyTorch's own throughout, or involves code under test."""

from __future__ import annotations

from gradlint.experiments.subject import Subject

#: Namespaces of the operators that come with PyTorch.
_TORCH_NAMESPACES = ("aten::", "prims::", "quantized::")

#: Note on a fault that the code under test can't fix.
TORCH_OWNED_NOTE = "in PyTorch's own kernels: none of your backward code is involved"


def is_torch_owned_backward(subject: Subject) -> bool:
    """Whether no Function, of Python or C++, and no operator of another library takes part in
    backward: what is wrong with it at some layout or size is PyTorch's."""
    run, op = subject.run, subject.op
    if run.nodes or run.native or op.function is not None:
        return False
    name = getattr(op.call, "_qualified_op_name", None) or getattr(op.call, "_name", "")
    return op.kind != "library" or str(name).startswith(_TORCH_NAMESPACES)
