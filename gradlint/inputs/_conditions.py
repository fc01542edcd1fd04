"""Moves that satisfy a failed ``assert`` or ``if …: raise`` of the user's code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from gradlint.inputs._attempt import Frame
from gradlint.inputs._evidence import Evidence
from gradlint.inputs._frames import FailedAttempt, evaluate, links
from gradlint.inputs._moves import pairs_to_plans, rank_of, with_rank
from gradlint.inputs._plan import Plan, TensorGuess, ValueGuess
from gradlint.inputs._proposals import integer_domain, of_kind
from gradlint.inputs._source import ordered
from gradlint.targets.source_file import dotted

#: What a Function asks for the arguments that need a gradient.
NEEDS = "needs_input_grad"

#: Largest total of counts (heuristic: factorials and sums over them stay small).
MOST_COUNTED = 6

_EQUAL = (ast.Eq, ast.Is)
_DIFFERENT = (ast.NotEq, ast.IsNot)
_WORKING = ("float64", "float32", "bfloat16", "float16")
_KIND_WORDS = (
    ("Tensor", "tensor"),
    ("Parameter", "tensor"),
    ("int", "int"),
    ("float", "float"),
    ("bool", "bool"),
    ("str", "str"),
    ("tuple", "shape"),
    ("list", "tensors"),
    ("dict", "dict"),
    ("Module", "module"),
)


def from_conditions(failed: FailedAttempt) -> Iterator[Plan]:
    """Plans under which the condition that stopped the code would hold."""
    for test, truth, frame in failed.conditions():
        yield from _frozen(failed, test)
        yield from _together(failed, test, truth, frame)
        for plan in _want(failed, test, truth, frame):
            yield _related(failed, plan, test, frame)
        for node in ast.walk(test):
            yield from _made_vectors(failed, node, frame, 0.15)


def _together(failed: FailedAttempt, test: ast.expr, truth: bool, frame: Frame) -> Iterator[Plan]:
    """Several parts of a condition answered at once, where each asks for another number of axes of
    one parameter: ``a.shape != (n,) or b.shape != (n,)``."""
    if not isinstance(test, ast.BoolOp):
        return
    base = failed.plan
    made = base
    answers = [next(_want(failed, value, truth, frame), base) for value in test.values]
    for node in ast.walk(test):
        answers += list(_made_vectors(failed, node, frame, 0.0))[:1]
    changed: list[str] = []
    for answer in answers:
        for name, guess in zip(base.names, base.guesses, strict=True):
            other = answer.guess(name)
            if not (isinstance(guess, TensorGuess) and isinstance(other, TensorGuess)):
                continue
            if len(guess.axes) != len(other.axes) and name not in changed:
                changed.append(name)
                made = made.changed(name, other)
    if len(changed) > 1:
        yield replace(made, cost=base.cost + 0.2)


def _related(failed: FailedAttempt, plan: Plan, test: ast.expr, frame: Frame) -> Plan:
    """``plan``; where it fixes a size that stands in an arithmetic relation to others, as in
    ``x.shape != (n - 1,)``, these keep theirs."""
    if len(plan.fixed) <= len(failed.plan.fixed):
        return plan
    fixed = dict(plan.fixed)
    for node in ast.walk(test):
        for side in (node.left, node.right) if isinstance(node, ast.BinOp) else ():
            known, size = evaluate(side, frame)
            symbols = failed.labels.get(size, []) if known and type(size) is int else []
            for symbol in symbols:
                if symbol not in fixed and not symbol.startswith("="):
                    plan = plan.sized(symbol, size)
    return plan


def _frozen(failed: FailedAttempt, test: ast.expr) -> Iterator[Plan]:
    """Constants, where code asks ``ctx.needs_input_grad`` and refuses to be differentiated."""
    plan = failed.plan
    for node in ast.walk(test):
        if not (isinstance(node, ast.Subscript) and dotted(node.value).endswith(NEEDS)):
            continue
        chosen = _positions(node.slice, len(plan.names))
        changed = plan
        for name in (plan.names[k] for k in chosen):
            guess = changed.guess(name)
            if isinstance(guess, TensorGuess):
                changed = changed.changed(name, replace(guess, grad=False))
        if changed != plan:
            yield replace(changed, cost=plan.cost + 0.1)


def _positions(index: ast.expr, count: int) -> list[int]:
    """The positions of ``count`` arguments that a constant index or slice selects."""
    try:
        if isinstance(index, ast.Slice):
            parts = (index.lower, index.upper, index.step)
            bounds = [None if part is None else ast.literal_eval(part) for part in parts]
            return list(range(count))[slice(*bounds)]
        return [range(count)[ast.literal_eval(index)]]
    except (ValueError, TypeError, IndexError):
        return []


def _want(failed: FailedAttempt, test: ast.expr, truth: bool, frame: Frame) -> Iterator[Plan]:
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            known, holds = evaluate(value, frame)
            if not known or _truth(holds) is not truth:
                yield from _want(failed, value, truth, frame)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _want(failed, test.operand, not truth, frame)
    elif isinstance(test, ast.Compare):
        for link in links(test):
            left, operator, right = link.left, link.ops[0], link.comparators[0]
            known, holds = evaluate(link, frame)
            if known and truth and len(test.ops) > 1 and _truth(holds):
                continue
            yield from _order_integers(failed, left, operator, right, truth, frame)
            yield from _compare(failed, left, operator, right, truth, frame)
    elif isinstance(test, ast.Call):
        yield from _call(failed, test, truth, frame)
    elif isinstance(test, ast.BinOp) and isinstance(test.op, ast.Mod) and not truth:
        yield from _make_multiple(failed, test, frame)  # ``if size % k: raise``
    else:
        yield from _want_value(failed, test, truth, frame)


def _want_value(failed: FailedAttempt, test: ast.expr, truth: bool, frame: Frame) -> Iterator[Plan]:
    """Plans for a flag, or for what is asked of a tensor: ``if window.requires_grad: raise``."""
    if _is_value(failed, test):
        yield failed.plan.changed(ast.unparse(test), ValueGuess(truth, "bool"), 0.3)
    elif isinstance(test, ast.Attribute) and test.attr == "requires_grad":
        for name in failed.named(test.value, frame)[:1]:
            guess = failed.plan.guess(name)
            if isinstance(guess, TensorGuess) and guess.dtype in ("float", "complex"):
                yield failed.plan.changed(name, replace(guess, grad=truth), 0.05)


def _is_value(failed: FailedAttempt, node: ast.expr) -> bool:
    """Whether ``node`` is the name of a parameter whose argument is not a tensor."""
    if not isinstance(node, ast.Name) or node.id not in failed.plan.names:
        return False
    return isinstance(failed.plan.guess(node.id), ValueGuess)


def _truth(value: Any) -> bool | None:
    try:
        return bool(value)
    except Exception:
        return None


def _compare(
    failed: FailedAttempt,
    left: ast.expr,
    operator: ast.cmpop,
    right: ast.expr,
    truth: bool,
    frame: Frame,
) -> Iterator[Plan]:
    wants_equal = isinstance(operator, _EQUAL if truth else _DIFFERENT)
    wants_member = isinstance(operator, ast.In if truth else ast.NotIn)
    for one, other in ((left, right), (right, left)):
        known, value = evaluate(other, frame)
        if not known:
            continue
        if wants_equal or wants_member:
            options = ordered(value) if wants_member and one is left and _listed(value) else [value]
            literal = isinstance(other, ast.Constant)
            for step, option in enumerate(options[:4]):
                yield from _make_equal(failed, one, option, frame, 0.1 * step, literal)
        elif one is left or not isinstance(operator, (ast.In, ast.NotIn)):
            yield from _make_ordered(failed, one, operator, value, truth, one is left, frame)


def _listed(value: Any) -> bool:
    return isinstance(value, (list, tuple, set, frozenset, dict))


def _make_equal(
    failed: FailedAttempt, node: ast.expr, value: Any, frame: Frame, cost: float, literal: bool
) -> Iterator[Plan]:
    """Plans under which ``node`` would be ``value``; ``literal`` when that is a constant."""
    plan = failed.plan
    name = _rank_subject(failed, node, frame)
    if name and type(value) is int and 0 <= value <= 6:
        yield with_rank(plan, name, value, 0.1 + cost)
        return
    if isinstance(value, torch.dtype):
        yield from _make_dtype(failed, node, value, frame, cost)
        return
    if _is_value(failed, node) and not isinstance(value, torch.Tensor):
        guess = ValueGuess(value, type(value).__name__)
        yield plan.changed(ast.unparse(node), guess, 0.15 + cost)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        yield from _make_multiple(failed, node, frame)
        return
    known, current = evaluate(node, frame)
    if not known:
        return
    if isinstance(current, torch.Tensor) and type(value) is int:
        yield from _make_bounds_end(failed, node, current, value, cost)
    elif type(current) is int and type(value) is int:
        yield from _made_vectors(failed, node, frame, cost)
        yield from _make_equal_sizes(failed, current, value, cost, literal)
    elif isinstance(current, (tuple, list)) and isinstance(value, (tuple, list)):
        yield from _make_equal_shapes(failed, node, list(current), list(value), frame, cost)


def _made_vectors(
    failed: FailedAttempt, node: ast.AST, frame: Frame, cost: float
) -> Iterator[Plan]:
    """A vector where ``x.numel()`` should be the size of an axis."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        for name in failed.named(node.func.value, frame) if node.func.attr == "numel" else ():
            if (rank_of(failed.plan, name) or 0) > 1:
                yield with_rank(failed.plan, name, 1, 0.05 + cost)


def _make_bounds_end(
    failed: FailedAttempt, node: ast.expr, current: torch.Tensor, value: int, cost: float
) -> Iterator[Plan]:
    """``bounds[-1] == len(x)``: bounds of segments that end at the size of an axis, which keeps
    it; rather few segments, of more than one row each."""
    if current.dim() or current.is_floating_point() or not isinstance(node, ast.Subscript):
        return
    name = ast.unparse(node.value)
    guess = failed.plan.guess(name) if name in failed.plan.names else None
    if not isinstance(guess, TensorGuess) or guess.dtype != "int" or len(guess.axes) != 1:
        return
    ending = replace(guess, domain="pointers", high=value)
    for symbol in failed.labels.get(value, ()):
        held = failed.plan if symbol[0] == "=" else failed.plan.sized(symbol, value)
        changed = held.changed(name, ending, 0.1 + cost)
        if guess.axes[0][0] != "=":
            yield changed.sized(guess.axes[0], 3)
        yield replace(changed, cost=changed.cost + 0.1)


def _make_equal_sizes(
    failed: FailedAttempt, current: int, value: int, cost: float, literal: bool
) -> Iterator[Plan]:
    if literal and value > 0:
        # A constant of the code: not the size of another axis, even where the numbers agree.
        for symbol in failed.labels.get(current, ()):
            if not symbol.startswith("="):
                yield failed.plan.sized(symbol, value, 0.1 + cost)
    for plan in pairs_to_plans(failed, [(current, value)]):
        yield replace(plan, cost=plan.cost + cost - 0.1)


def _make_equal_shapes(
    failed: FailedAttempt,
    node: ast.expr,
    current: list[Any],
    value: list[Any],
    frame: Frame,
    cost: float,
) -> Iterator[Plan]:
    if len(current) != len(value):
        for name in failed.named(node, frame):
            if rank_of(failed.plan, name) == len(current):
                yield with_rank(failed.plan, name, len(value), 0.2 + cost)
        return
    pairs = zip(current, value, strict=True)
    yield from pairs_to_plans(
        failed, [(a, b) for a, b in pairs if type(a) is int and type(b) is int and a != b]
    )


def _make_dtype(
    failed: FailedAttempt, node: ast.expr, value: Any, frame: Frame, cost: float
) -> Iterator[Plan]:
    if value.is_floating_point:
        wanted = str(value).removeprefix("torch.")
        if wanted in _WORKING and failed.plan.working != wanted:
            yield replace(failed.plan, working=wanted, cost=failed.plan.cost + 0.3)
        dtype = "float"
    elif value.is_complex:
        dtype = "complex"
    else:
        dtype = "bool" if value == torch.bool else "int"
    for name in failed.named(node, frame):
        guess = failed.plan.guess(name)
        if isinstance(guess, TensorGuess) and guess.dtype != dtype:
            grad = dtype in ("float", "complex")
            yield failed.plan.changed(name, replace(guess, dtype=dtype, grad=grad), 0.1 + cost)


def _make_multiple(failed: FailedAttempt, node: ast.BinOp, frame: Frame) -> Iterator[Plan]:
    """``size % k == 0``: the smallest multiple of k that is at least 2k and no other size."""
    known_size, size = evaluate(node.left, frame)
    known_step, step = evaluate(node.right, frame)
    if not (known_size and known_step and type(size) is int and type(step) is int and step > 0):
        return
    taken = set(dict(failed.plan.fixed).values())
    for multiple in sorted((2 * step, 3 * step), key=lambda size: size in taken):
        for symbol in failed.labels.get(size, ()):
            if not symbol.startswith("="):
                yield failed.plan.sized(symbol, multiple, 0.15)
    name = node.right.id if isinstance(node.right, ast.Name) else ""
    if name in failed.plan.names:
        yield failed.plan.changed(name, ValueGuess(1, "int"), 0.4)


def _make_ordered(
    failed: FailedAttempt,
    node: ast.expr,
    operator: ast.cmpop,
    value: Any,
    truth: bool,
    on_left: bool,
    frame: Frame,
) -> Iterator[Plan]:
    """Plans under which ``node <operator> value`` has the wanted truth."""
    plan = failed.plan
    greater = isinstance(operator, (ast.Gt, ast.GtE)) == on_left
    if not truth:
        greater = not greater
    name = _rank_subject(failed, node, frame)
    if type(value) is int and name:
        rank = value + 1 if greater else value - 1
        for wanted in (rank, value):
            if 0 <= wanted <= 6 and wanted != rank_of(plan, name):
                yield with_rank(plan, name, wanted, 0.15)
        return
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from _make_ordered_numbers(failed, node, value, greater, frame)
    # A condition on values: try the domains in which such conditions hold.
    for suspect in failed.named(node, frame):
        guess = plan.guess(suspect)
        if isinstance(guess, TensorGuess) and guess.dtype == "float" and not name:
            for index, domain in enumerate(("unit", "positive", "small", "above")):
                if domain != guess.domain:
                    yield plan.changed(suspect, replace(guess, domain=domain), 0.4 + 0.1 * index)


def _order_integers(
    failed: FailedAttempt,
    left: ast.expr,
    operator: ast.cmpop,
    right: ast.expr,
    truth: bool,
    frame: Frame,
) -> Iterator[Plan]:
    """Two tensors of integers, of which one must not exceed the other: counts and their totals."""
    if not isinstance(operator, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
        return
    plan = failed.plan
    named = [failed.named(side, frame)[:1] for side in (left, right)]
    names = [name for found in named for name in found]
    guesses = [plan.guess(name) for name in names]
    integers = [g for g in guesses if isinstance(g, TensorGuess) and g.dtype == "int"]
    if len(set(names)) < 2 or len(integers) < 2:
        return
    first_is_less = isinstance(operator, (ast.Lt, ast.LtE)) == truth
    (low, small), (high, large) = zip(names, integers, strict=True)
    if not first_is_less:
        (low, small), (high, large) = (high, large), (low, small)
    # "sizes" are at least 2, and none of the others is above.
    bounded = plan.changed(low, replace(small, domain="real", high=3), 0.2)
    yield bounded.changed(high, replace(large, domain="sizes", high=MOST_COUNTED))


def _make_ordered_numbers(
    failed: FailedAttempt, node: ast.expr, value: int | float, greater: bool, frame: Frame
) -> Iterator[Plan]:
    """Plans under which a number or size is ``greater`` than ``value``, or less."""
    plan = failed.plan
    if _is_value(failed, node):
        steps = (1, 2, 0) if greater else (-1, -2, 0)
        now = plan.guess(ast.unparse(node))
        floating = isinstance(value, float) or (
            isinstance(now, ValueGuess) and isinstance(now.value, float)
        )
        for index, step in enumerate(steps):
            near = value + 0.7 * step if floating else value + step
            number = ValueGuess(near, "number")
            yield plan.changed(ast.unparse(node), number, 0.2 + 0.1 * index)
    known, current = evaluate(node, frame)
    if known and type(current) is int and type(value) is int:
        for symbol in failed.labels.get(current, ()):
            if not symbol.startswith("="):
                yield plan.sized(symbol, max(value + (1 if greater else -1), 1), 0.3)


def _call(failed: FailedAttempt, test: ast.Call, truth: bool, frame: Frame) -> Iterator[Plan]:
    text = ast.unparse(test.func)
    if text == "isinstance" and len(test.args) == 2 and truth:
        classes = ast.unparse(test.args[1])
        kinds = [kind for word, kind in _KIND_WORDS if word in classes]
        yield from _make_kinds(failed, failed.named(test.args[0], frame)[:1], kinds, 3)
    elif text.endswith(("is_floating_point", "is_complex", "is_tensor")) and truth:
        kind = "complex" if text.endswith("is_complex") else "tensor"
        yield from _make_kinds(failed, failed.named(test, frame)[:1], [kind], 2)
    elif text.endswith("is_floating_point") and not truth:
        yield from _make_integers(failed, failed.named(test, frame)[:1])
    elif text.endswith(("all", "any", "allclose", "equal")):
        for argument in (*test.args, test.func):
            for part in ast.walk(argument):
                if isinstance(part, ast.Compare):
                    yield from _want(failed, part, truth, frame)


def _make_integers(failed: FailedAttempt, names: list[str]) -> Iterator[Plan]:
    """Integers in place of floating numbers, with as many axes."""
    for name in names:
        guess = failed.plan.guess(name)
        if isinstance(guess, TensorGuess) and guess.dtype == "float":
            domain = integer_domain(name, [])
            changed = replace(guess, dtype="int", domain=domain, grad=False)
            yield failed.plan.changed(name, changed, 0.1)


def _make_kinds(
    failed: FailedAttempt, names: list[str], kinds: list[str], count: int
) -> Iterator[Plan]:
    """The first ``count`` guesses of each of ``kinds`` for each of ``names``."""
    for name in names:
        evidence = failed.evidence.get(name) or Evidence(name)
        for kind in kinds:
            for guess, extra in of_kind(evidence, kind)[:count]:
                yield failed.plan.changed(name, guess, 0.15 + extra)


def _rank_subject(failed: FailedAttempt, node: ast.expr, frame: Frame) -> str:
    """The parameter whose number of axes ``node`` is; empty when it is something else."""
    subject: ast.expr | None = None
    if isinstance(node, ast.Attribute) and node.attr == "ndim":
        subject = node.value
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("dim", "ndimension"):
            subject = node.func.value
        elif isinstance(node.func, ast.Name) and node.func.id == "len" and node.args:
            # len(x) of a tensor is a size.
            held = evaluate(node.args[0], frame)[1]
            subject = None if isinstance(held, torch.Tensor) else node.args[0]
    if subject is None:
        return ""
    names = failed.named(subject, frame)
    return names[0] if names and rank_of(failed.plan, names[0]) is not None else ""
