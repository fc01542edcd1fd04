"""The concrete syntax tree of a source text (libcst), with the place of every node in the text.

Candidates are edits of the text at places that the tree gives: whatever they do not touch, comments
and spaces included, stays as it is to the character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

import libcst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider

from gradlint.repair.candidate import Edit

_NEWLINE = re.compile(r"\r\n?|\n")

N = TypeVar("N", bound=libcst.CSTNode)


class Unreadable(Exception):
    """The text can't be read as a syntax tree; says why."""


class Tree:
    """A source text and its syntax tree.

    Args:
        text: the source.

    Raises:
        Unreadable: libcst can't read it.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            wrapper = MetadataWrapper(libcst.parse_module(text), unsafe_skip_copy=True)
            self.positions = wrapper.resolve(PositionProvider)
            self.parents = wrapper.resolve(ParentNodeProvider)
        except Exception as error:  # its parser raises more than its own errors
            raise Unreadable(str(error).strip().partition("\n")[0] or repr(error)) from None
        self.module = wrapper.module
        if self.module.code != text:
            raise Unreadable("libcst would write it otherwise than it is")
        ends = [0, *(match.end() for match in _NEWLINE.finditer(text))]
        self._starts = ends
        found = _NEWLINE.search(text)
        self.newline = found[0] if found else "\n"

    def offset(self, line: int, column: int) -> int:
        """The offset of ``column`` (from 0) in ``line`` (from 1)."""
        start = self._starts[min(max(line, 1), len(self._starts)) - 1]
        return min(start + column, len(self.text))

    def span(self, node: libcst.CSTNode) -> tuple[int, int]:
        """Where ``node`` begins and ends, without the parentheses around it."""
        place = self.positions[node]
        start = self.offset(place.start.line, place.start.column)
        return start, self.offset(place.end.line, place.end.column)

    def outer(self, node: libcst.CSTNode) -> tuple[int, int]:
        """Where ``node`` begins and ends, with the parentheses around it."""
        start, end = self.span(node)
        left, right = getattr(node, "lpar", ()), getattr(node, "rpar", ())
        if isinstance(left, Sequence) and isinstance(right, Sequence) and left and right:
            return self.span(left[0])[0], self.span(right[-1])[1]
        return start, end

    def code(self, node: libcst.CSTNode) -> str:
        """The text of ``node``, with the parentheses around it."""
        start, end = self.outer(node)
        return self.text[start:end]

    def inner(self, node: libcst.CSTNode) -> str:
        """The text of ``node``, without the parentheses around it."""
        start, end = self.span(node)
        return self.text[start:end]

    def replaced(self, node: libcst.CSTNode, text: str) -> Edit:
        """``text`` in place of ``node`` and of the parentheses around it; these stay where they
        hold a comment, or the lines together."""
        start, end = self.outer(node)
        first, last = self.span(node)
        around = self.text[start:first] + self.text[last:end]
        if _NEWLINE.search(around) or "#" in around:
            return Edit(first, last, text)
        return Edit(start, end, text)

    def parent(self, node: libcst.CSTNode) -> libcst.CSTNode | None:
        """The node that ``node`` is a part of."""
        return self.parents.get(node)

    def around(self, node: libcst.CSTNode) -> Iterator[libcst.CSTNode]:
        """The nodes that ``node`` lies in, the innermost first."""
        above = self.parents.get(node)
        while above is not None:
            yield above
            above = self.parents.get(above)

    def nearest(self, node: libcst.CSTNode | None, kind: type[N]) -> N | None:
        """``node`` or the innermost node around it that is a ``kind``."""
        if node is None or isinstance(node, kind):
            return node
        return next((one for one in self.around(node) if isinstance(one, kind)), None)

    def within(self, node: libcst.CSTNode | None, kind: type[N]) -> Iterator[N]:
        """Every ``kind`` in ``node``, itself included, in the order of the text."""
        if node is None:
            return
        if isinstance(node, kind):
            yield node
        for child in node.children:
            yield from self.within(child, kind)

    def expression_at(self, start: int, end: int) -> libcst.BaseExpression | None:
        """The expression that covers just these offsets, else the smallest that covers them; the
        largest where several cover the same."""
        best: tuple[int, libcst.BaseExpression] | None = None
        for node in self.within(self.module, libcst.BaseExpression):  # type: ignore[type-abstract]
            for first, last in (self.span(node), self.outer(node)):
                fits = first <= start and end <= last
                if fits and (best is None or last - first < best[0]):
                    best = last - first, node
        return best[1] if best else None

    def statement_at(self, offset: int) -> libcst.SimpleStatementLine | None:
        """The simple statement, or the line of several, that covers ``offset``."""
        for node in self.within(self.module, libcst.SimpleStatementLine):
            first, last = self.span(node)
            if first <= offset < max(last, first + 1):
                return node
        return None

    # -- whole lines ----------------------------------------------------------------------------

    def line_of(self, node: libcst.CSTNode) -> tuple[int, str]:
        """The offset at which the line of ``node`` begins, and its indentation."""
        start = self.offset(self.positions[node].start.line, 0)
        indent = re.match(r"[ \t\f]*", self.text[start:])
        return start, indent[0] if indent else ""

    def line_before(self, node: libcst.CSTNode, *lines: str) -> Edit:
        """``lines`` above that of ``node``, indented as it is."""
        start, indent = self.line_of(node)
        return Edit(start, start, "".join(f"{indent}{one}{self.newline}" for one in lines))

    def without(self, statement: libcst.CSTNode) -> Edit:
        """No ``statement``, a whole one; ``pass`` in its place where it is the only one."""
        start, _ = self.line_of(statement)
        block = self.parent(statement)
        body = getattr(block, "body", ())
        alone = isinstance(block, libcst.IndentedBlock) and len(body) == 1
        if alone:
            return Edit(*self.span(statement), "pass")
        return Edit(start, self.offset(self.positions[statement].end.line + 1, 0), "")
