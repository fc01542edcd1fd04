"""Operators with one fault each, and what fixes of them change."""

from __future__ import annotations

import textwrap

HEAD = "import torch\nfrom torch.autograd import Function\n\n\n"


def operator(forward: str, backward: str, *, arguments: str, samples: str, doc: str = "") -> str:
    """The text of a module with one operator ``Op``.

    Args:
        forward, backward: bodies of the methods.
        arguments: parameters of forward.
        samples: the elements of one tuple of arguments.
        doc: of the class.
    """
    parts = [
        "class Op(Function):",
        *([f'    """{doc}"""\n'] if doc else []),
        "    @staticmethod",
        f"    def forward(ctx, {arguments}):",
        textwrap.indent(textwrap.dedent(forward).strip("\n"), " " * 8),
        "",
        "    @staticmethod",
        "    def backward(ctx, grad_output):",
        textwrap.indent(textwrap.dedent(backward).strip("\n"), " " * 8),
        "",
        "    @staticmethod",
        "    def sample_inputs():",
        "        torch.manual_seed(0)",
        f"        return [({samples},)]",
    ]
    return HEAD + "\n".join(parts) + "\n"


def tensor(*shape: int) -> str:
    """The text of a tensor that requires grad."""
    sizes = ", ".join(map(str, shape))
    return f"torch.randn({sizes}, dtype=torch.float64, requires_grad=True)"
