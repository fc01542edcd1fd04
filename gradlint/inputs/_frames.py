"""From the frames of a failed attempt to the parameters and the conditions it failed on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import torch

from gradlint.inputs._attempt import Failure, Frame
from gradlint.inputs._evidence import Evidence
from gradlint.inputs._plan import Plan
from gradlint.inputs._source import statements_at


class FailedAttempt:
    """A failed attempt of ``plan``; finds the parameters and conditions that it failed on."""

    def __init__(
        self, plan: Plan, failure: Failure, evidence: dict[str, Evidence] | None = None
    ) -> None:
        self.plan = plan
        self.evidence = evidence or {}
        self.failure = failure
        self.sizes = plan.sizes()
        self.labels: dict[int, list[str]] = {}
        for symbol, size in self.sizes.items():
            self.labels.setdefault(size, []).append(symbol)

    def owner(self, tensor: torch.Tensor) -> str:
        """The parameter whose axes ``tensor`` has; empty when none has."""
        best, most = "", 0
        for name, guess in self.plan.tensors():
            sizes = [self.sizes[axis] for axis in guess.axes]
            common = len(set(sizes) & set(tensor.shape))
            exact = 2 if sizes == list(tensor.shape) else 0
            if common + exact > most:
                best, most = name, common + exact
        return best

    def named(self, node: ast.AST, frame: Frame) -> list[str]:
        """Parameters that names in ``node`` refer to, in order."""
        found: list[str] = []
        for part in ast.walk(node):
            if not isinstance(part, ast.Name):
                continue
            value = frame.names.get(part.id)
            name = part.id if part.id in self.plan.names else ""
            if not name and isinstance(value, torch.Tensor):
                name = self.owner(value)
            if name and name not in found:
                found.append(name)
        return found

    def blamed(self) -> list[str]:
        """Parameters on the failing lines, those of the innermost line first."""
        found: list[str] = []
        for frame in reversed(self.failure.frames):
            statements = statements_at(frame.filename, frame.line, frame.column)
            if not statements:
                continue
            for name in self.named(_header(statements[-1]), frame):
                if name not in found:
                    found.append(name)
        return found

    def innermost(self) -> tuple[ast.stmt, Frame] | None:
        """The failing statement in the user's deepest frame."""
        for frame in reversed(self.failure.frames):
            statements = statements_at(frame.filename, frame.line, frame.column)
            if statements:
                return statements[-1], frame
        return None

    def conditions(self) -> Iterator[tuple[ast.expr, bool, Frame]]:
        """Conditions that stopped the code: expression, the truth value it should have, frame."""
        for frame in reversed(self.failure.frames):
            statements = statements_at(frame.filename, frame.line, frame.column)
            if not statements:
                continue
            last = statements[-1]
            if isinstance(last, ast.Assert):
                yield last.test, True, frame
            elif isinstance(last, ast.Raise):
                for outer, inner in zip(statements[-2::-1], statements[:0:-1], strict=False):
                    if isinstance(outer, ast.If):
                        yield outer.test, inner not in outer.body, frame
                        break
            if not isinstance(last, (ast.Assert, ast.Raise)):
                return


def evaluate(node: ast.expr, frame: Frame) -> tuple[bool, Any]:
    """Whether ``node`` can be evaluated in ``frame``, and its value.

    It is an expression of the user's code that has just been evaluated there.
    """
    try:
        code = compile(ast.Expression(node), "<condition>", "eval")
        return True, eval(code, frame.globals, frame.names)
    except Exception:
        return False, None


def _header(statement: ast.stmt) -> ast.AST:
    """The part of a compound statement that is on its first line."""
    if isinstance(statement, (ast.If, ast.While)):
        return statement.test
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return statement.iter
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return ast.Tuple([item.context_expr for item in statement.items], ast.Load())
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.Try)):
        return ast.Pass()
    return statement
