"""Small rewrites of expressions that several families share: products, transposes, operands."""

from __future__ import annotations

from collections.abc import Iterator

import libcst

from gradlint.repair.tree import Tree

#: What binds as tightly as a product, or tighter: it needs no parentheses in one.
TIGHT = (
    libcst.Name,
    libcst.Attribute,
    libcst.Call,
    libcst.Subscript,
    libcst.Integer,
    libcst.Float,
)

#: Ways to write the transpose of the last two axes: attributes, then methods without arguments.
TRANSPOSES = ("T", "mT", "H", "mH")


def is_product(node: libcst.CSTNode) -> bool:
    """Whether ``node`` is a product or a quotient."""
    return isinstance(node, libcst.BinaryOperation) and isinstance(
        node.operator, (libcst.Multiply, libcst.Divide, libcst.MatrixMultiply)
    )


def as_left(tree: Tree, node: libcst.BaseExpression) -> str:
    """``node`` as the left operand of a product."""
    code = tree.code(node)
    tight = isinstance(node, TIGHT) or is_product(node) or bool(node.lpar)
    return code if tight else f"({code})"


def as_operand(tree: Tree, node: libcst.BaseExpression) -> str:
    """``node`` as any operand, or before a dot."""
    code = tree.code(node)
    return code if isinstance(node, TIGHT) or node.lpar else f"({code})"


def factors(node: libcst.BaseExpression) -> Iterator[libcst.BinaryOperation]:
    """The products of a chain ``a * b / c``, the outermost first."""
    while isinstance(node, libcst.BinaryOperation) and is_product(node):
        yield node
        node = node.left


def transposed(tree: Tree, node: libcst.BaseExpression) -> str:
    """``node`` with its last two axes exchanged, in the manner of the file."""
    if isinstance(node, libcst.BinaryOperation) and isinstance(
        node.operator, libcst.MatrixMultiply
    ):
        return f"{transposed(tree, node.right)} @ {transposed(tree, node.left)}"
    if isinstance(node, libcst.Attribute) and node.attr.value in TRANSPOSES[:2]:
        return tree.code(node.value)
    if isinstance(node, libcst.Call) and isinstance(node.func, libcst.Attribute):
        name = node.func.attr.value
        axes = [tree.code(arg.value) for arg in node.args]
        if (name == "t" and not axes) or (
            name in ("transpose", "swapaxes") and sorted(axes) in (["0", "1"], ["-1", "-2"])
        ):
            return tree.code(node.func.value)
    return f"{as_operand(tree, node)}.{_manner(tree)}"


def _manner(tree: Tree) -> str:
    """How the file writes a transpose."""
    return "T" if ".T" in tree.text and ".mT" not in tree.text else "mT"


def method_call(node: libcst.CSTNode, *names: str) -> libcst.Call | None:
    """``node`` if it calls a method of one of these names."""
    if not isinstance(node, libcst.Call) or not isinstance(node.func, libcst.Attribute):
        return None
    return node if not names or node.func.attr.value in names else None


def receiver(call: libcst.Call) -> libcst.BaseExpression:
    """The object whose method ``call`` calls."""
    assert isinstance(call.func, libcst.Attribute)
    return call.func.value
