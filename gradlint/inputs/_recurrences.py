"""Recurrences over a series: the state of a filter or a model, step by step.

``for t in range(len(y))`` goes through the first axis of ``y``. Often that is its only one, and
what else the recurrence takes, its rates and variances and where it starts, are single numbers.
Forward takes other shapes too, by broadcasting; backward then sums over the wrong axes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace

from gradlint.inputs._evidence import Evidence
from gradlint.inputs._plan import Plan, TensorGuess
from gradlint.inputs._proposals import tensor_axes
from gradlint.inputs._source import syntax
from gradlint.model.op import Op


def plans_of_recurrences(op: Op, evidence: Mapping[str, Evidence], first: Plan) -> Iterator[Plan]:
    """The plan in which what forward goes through step by step has one axis, and other tensors none
    unless documentation gives them some; nothing where forward goes through no tensor."""
    forward = syntax(op.function.forward) if op.function is not None else None
    series = set(_gone_through(forward)) if forward is not None else set()
    plan = first
    for name, guess in zip(first.names, first.guesses, strict=True):
        known = evidence.get(name)
        if not isinstance(guess, TensorGuess) or known is None or known.shape:
            continue
        if name in series:
            plan = plan.changed(name, replace(guess, axes=tensor_axes(name, 1)))
        elif guess.dtype in ("float", "complex") and series:
            plan = plan.changed(name, replace(guess, axes=()))
    if plan != first:
        yield replace(plan, cost=first.cost)


def _gone_through(forward: ast.FunctionDef) -> Iterator[str]:
    """Names of which loops count the elements: ``range(1, len(y))``, ``range(y.shape[0])``."""
    for loop in ast.walk(forward):
        if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
            continue
        for node in ast.walk(loop.iter):
            match node:
                case ast.Call(ast.Name("len"), [ast.Name(name)]):
                    yield name
                case ast.Call(ast.Attribute(ast.Name(name), "size"), [ast.Constant(0)]):
                    yield name
                case ast.Subscript(ast.Attribute(ast.Name(name), "shape"), ast.Constant(0)):
                    yield name
