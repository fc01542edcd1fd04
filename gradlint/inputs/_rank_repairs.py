"""Moves that change the number of axes of a tensor."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import torch

from gradlint.inputs._attempt import Frame
from gradlint.inputs._frames import FailedAttempt, evaluate
from gradlint.inputs._gradient_repairs import like_view
from gradlint.inputs._known_functions import operand
from gradlint.inputs._moves import batched, extended, rank_of, with_rank
from gradlint.inputs._plan import Plan, TensorGuess, ValueGuess
from gradlint.inputs.domains import OF_SQUARES

#: "number of dimensions must be 3", not "at dimension 1".
_COUNTED = re.compile(
    r"(?:dimensions|ndim|rank|dim\(\))\s*"
    r"(?:must be|should be|to be|equal to|==?|is|of)?\s*([0-6])\b"
)
_EXPAND = re.compile(r"expand\(.*?\{\[([\d, ]+)\]\}, size=\[([\d, ]+)\]\)")
#: Matrices on both sides of a linear system that do not fit.
_RIGHT_HAND_SIDE = re.compile(r"equation AX = B \(\d+x\d+ and \d+x(?!1\))\d+\)")
_IN_PLACE = re.compile(r"shape \[([\d, ]+)\] doesn't match the broadcast shape \[([\d, ]+)\]")
#: Weight from which the evidence for a number of axes is no guess.
_SURE_RANK = 4.0
#: Axes that a proposal may have at most.
_MOST_AXES = 6


def from_ranks(failed: FailedAttempt) -> Iterator[Plan]:
    """Plans in which a tensor has the number of axes that the error asks for."""
    text = failed.failure.text
    if "to unpack" in text:
        yield from _unpacking(failed)
    if match := re.search(r"(?:subscript|number of dimensions).* operand (\d+)", text):
        yield from _summed(failed, int(match.group(1)))
    if match := re.search(r"range of \[(-?\d+), (-?\d+)\], but got (-?\d+)", text):
        yield from _axis_range(failed, int(match.group(2)) + 1, int(match.group(3)))
    if match := re.search(r"too many indices for (?:tensor|array).*?(\d+)", text):
        yield from _with_current(failed, int(match.group(1)), (1, 2))
    elif "too many indices" in text or "index out of range" in text:
        yield from _deeper(failed)
    if re.search(r"(?i)same (?:number of dim|rank|dim)|number of dimensions", text):
        yield from _levelled(failed)
    if match := re.search(r"dim\(\) = (\d+) is not equal to len\(dims\) = (\d+)", text):
        have, want = int(match.group(1)), int(match.group(2))
        yield from _with_current(failed, have, (want - have,))
        yield from _below_permuted(failed, want - have)
    if re.search(
        r"(?i)\bonly one element|converted to Scalar|ambiguous|single element|0-?dim", text
    ):
        yield from _numbers(failed)
    if match := re.search(r"shape '\[([\d, ]*)\]' is invalid for input of size (\d+)", text):
        yield from like_view(failed, match)
    if match := re.search(r"cannot be multiplied \(\d+x(\d+) and (\d+)x(\d+)\)", text):
        yield from _vector_operand(failed, *map(int, match.groups()))
    if _RIGHT_HAND_SIDE.search(text):
        yield from _right_hand_side(failed)
    yield from _operands(failed)
    yield from _expanded(failed)
    yield from _stacked(failed)
    yield from _stated(failed)
    yield from _all_of_rank(failed)


def _numbers(failed: FailedAttempt) -> Iterator[Plan]:
    """Numbers in place of tensors, and vectors where the code takes an element for a number."""
    for name in _suspects(failed):
        rank = rank_of(failed.plan, name) or 0
        if rank > 1 and "ambiguous" in failed.failure.text and _element(failed, name):
            yield with_rank(failed.plan, name, 1, 0.1)
        if rank:
            yield with_rank(failed.plan, name, 0, 0.4)


def _element(failed: FailedAttempt, name: str) -> bool:
    """Whether the failing statement takes ``name[k]`` for one number."""
    place = failed.innermost()
    return place is not None and any(
        isinstance(node, ast.Subscript)
        and ast.unparse(node.value) == name
        and not isinstance(node.slice, (ast.Slice, ast.Tuple))
        for node in ast.walk(place[0])
    )


def _unpacking(failed: FailedAttempt) -> Iterator[Plan]:
    """``a, b, c = x.shape`` wants three axes, ``a, b, c = x`` three slices."""
    place = failed.innermost()
    if place is None:
        return
    statement, frame = place
    counts = re.search(r"expected (\d), got (\d)", failed.failure.text)
    for node in ast.walk(statement):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if isinstance(target, (ast.Tuple, ast.List)):
                wanted = len(target.elts)
                yield from _saved_parts(failed, target.elts)
                yield from _unbound(failed, node.value, frame, wanted)
                yield from _iterated(failed, node.value, frame, wanted)
                named = failed.named(node.value, frame)
                for name in named:
                    if rank_of(failed.plan, name) is not None:
                        yield with_rank(failed.plan, name, wanted, 0.1)
                if counts and not named:
                    # Something computed, such as grad_output: maybe its rank is that of an input.
                    for name, guess in failed.plan.tensors():
                        if len(guess.axes) == int(counts.group(2)) < wanted:
                            yield with_rank(failed.plan, name, wanted, 0.2)


def _saved_parts(failed: FailedAttempt, targets: list[ast.expr]) -> Iterator[Plan]:
    """``x, (i, j) = ctx.saved_tensors`` wants two slices of the second tensor that was saved."""
    for position, target in enumerate(targets):
        if not isinstance(target, (ast.Tuple, ast.List)):
            continue
        for name, evidence in failed.evidence.items():
            guess = failed.plan.guess(name) if name in failed.plan.names else None
            if evidence.saved != position or not isinstance(guess, TensorGuess):
                continue
            first = f"={len(target.elts)}"
            if guess.axes[:1] != (first,):
                rest = guess.axes[1:] or (f"{name}.1^",)
                yield failed.plan.changed(name, replace(guess, axes=(first, *rest)), 0.1)


def _summed(failed: FailedAttempt, position: int) -> Iterator[Plan]:
    """``einsum("bij,bjk->bik", x, y)``: operand ``position`` wants an axis a letter."""
    place = failed.innermost()
    if place is None:
        return
    for node in ast.walk(place[0]):
        found = operand(node, position) if isinstance(node, ast.Call) else None
        if found is None:
            continue
        yield from _gathered(failed, *found, place[1])
        for name in failed.named(found[0], place[1]):
            if rank_of(failed.plan, name) not in (None, found[1]):
                yield with_rank(failed.plan, name, found[1], 0.15)


def _gathered(failed: FailedAttempt, value: ast.expr, rank: int, frame: Frame) -> Iterator[Plan]:
    """``table[rows]`` is to have ``rank`` axes: those of the integers take the place of the first
    one of the table. What had an axis of theirs, as a weight for each, may have all of them."""
    if not isinstance(value, ast.Subscript):
        return
    known, table = evaluate(value.value, frame)
    if not known or not isinstance(table, torch.Tensor):
        return
    for name in failed.named(value.slice, frame):
        guess = failed.plan.guess(name)
        wanted = rank - (table.dim() - 1)
        if not isinstance(guess, TensorGuess) or guess.dtype != "int":
            continue
        if wanted < 1 or len(guess.axes) == wanted:
            continue
        plan = with_rank(failed.plan, name, wanted, 0.1)
        rows = plan.guess(name)
        assert isinstance(rows, TensorGuess)
        beside = plan
        for other, item in plan.tensors():
            shares = other != name and not {*guess.axes}.isdisjoint(item.axes)
            if shares and other in plan.names and isinstance(plan.guess(other), TensorGuess):
                beside = beside.changed(other, replace(item, axes=rows.axes))
        if beside != plan:
            yield beside
        yield plan


def _right_hand_side(failed: FailedAttempt) -> Iterator[Plan]:
    """``solve(A, torch.cat([p, b], dim=-1))`` of matrices wants vectors: all that the right-hand
    side is made of loses an axis."""
    place = failed.innermost()
    for node in ast.walk(place[0]) if place is not None else ():
        if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("solve"):
            continue
        plan = failed.plan
        for name in failed.named(node.args[-1], place[1]) if place and node.args else ():
            guess = plan.guess(name)
            if isinstance(guess, TensorGuess) and len(guess.axes) > 1:
                plan = plan.changed(name, replace(guess, axes=guess.axes[1:]), 0.0)
        if plan != failed.plan:
            yield replace(plan, cost=failed.plan.cost + 0.2)


def _vector_operand(failed: FailedAttempt, inner: int, rows: int, last: int) -> Iterator[Plan]:
    """``g @ u`` in backward, of rows as long as those of ``u``: one such row was meant, which
    forward broadcast."""
    place = failed.innermost()
    if place is None or failed.failure.phase != "backward" or inner != last:
        return
    for node in ast.walk(place[0]):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.MatMult):
            continue
        for name in failed.named(node.right, place[1]):
            guess = failed.plan.guess(name)
            if not isinstance(guess, TensorGuess):
                continue
            if [failed.sizes[axis] for axis in guess.axes] == [rows, last]:
                yield failed.plan.changed(name, replace(guess, axes=guess.axes[1:]), 0.15)


def _operands(failed: FailedAttempt) -> Iterator[Plan]:
    """``q[i] * q[j] * w`` of a matrix ``q`` and a vector ``w``: operands that do not broadcast were
    meant to have as many axes. Equal sizes would let them, by accident."""
    place = failed.innermost()
    if place is None or "must match the size of tensor" not in failed.failure.text:
        return
    for node in ast.walk(place[0]):
        if not isinstance(node, ast.BinOp) or isinstance(node.op, ast.MatMult):
            continue
        sides = [evaluate(side, place[1])[1] for side in (node.left, node.right)]
        if not all(isinstance(side, torch.Tensor) and side.dim() for side in sides):
            continue
        more = sides[0].dim() - sides[1].dim()
        larger = node.left if more > 0 else node.right
        if not more:
            continue
        for name in failed.named(larger, place[1]):
            rank = rank_of(failed.plan, name) or 0
            known = failed.evidence[name].ranks if name in failed.evidence else {}
            if rank > abs(more) and max(known.values(), default=0.0) < _SURE_RANK:
                yield with_rank(failed.plan, name, rank - abs(more), 0.3)


#: By how many slices what is unpacked may be longer than the axis of an input that it is made of:
#: a number, or an angle with its sine and cosine, is put before or behind it.
_MOST_PUT_BESIDE = 3


def _lengthened(failed: FailedAttempt, value: ast.expr, axis: int, count: int) -> Iterator[Plan]:
    """``w, x, y, z = q.unbind(-1)``, where ``q`` was made by putting a slice beside an input."""
    place = failed.innermost()
    known, tensor = evaluate(value, place[1]) if place is not None else (False, None)
    if not known or not isinstance(tensor, torch.Tensor):
        return
    if not -tensor.dim() <= axis < tensor.dim() or failed.labels.get(tensor.shape[axis]):
        return
    for more in range(1, _MOST_PUT_BESIDE + 1):
        for symbol in failed.labels.get(tensor.shape[axis] - more, ()):
            if not symbol.startswith("=") and count > more:
                yield failed.plan.sized(symbol, count - more, 0.1 + 0.05 * more)


def _unbound(failed: FailedAttempt, value: ast.expr, frame: Frame, count: int) -> Iterator[Plan]:
    """``x, y, z = t.unbind(-1)`` wants an axis of size three."""
    for node in ast.walk(value):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func).endswith("unbind")):
            continue
        method = not ast.unparse(node.func).startswith("torch.")
        given = node.args[0 if method else 1 :] + [k.value for k in node.keywords]
        known, axis = evaluate(given[0], frame) if given else (True, 0)
        unbound = (
            node.func.value if method and isinstance(node.func, ast.Attribute) else node.args[0]
        )
        if known and type(axis) is int:
            yield from _lengthened(failed, unbound, axis, count)
        for name in failed.named(node, frame):
            guess = failed.plan.guess(name)
            if not known or not isinstance(guess, TensorGuess) or type(axis) is not int:
                continue
            if -len(guess.axes) <= axis < len(guess.axes):
                symbol = guess.axes[axis]
                if not symbol.startswith("="):
                    yield failed.plan.sized(symbol, count, 0.1)


def _iterated(failed: FailedAttempt, value: ast.expr, frame: Frame, count: int) -> Iterator[Plan]:
    """``kp, ki, kd = gains`` wants a first axis of size three, probably the only one."""
    known, tensor = evaluate(value, frame)
    if not known or not isinstance(tensor, torch.Tensor) or not tensor.dim():
        return
    for name in failed.named(value, frame):
        guess = failed.plan.guess(name)
        if not isinstance(guess, TensorGuess):
            continue
        if [failed.sizes[axis] for axis in guess.axes] == list(tensor.shape):
            for axes, cost in (((f"={count}", *guess.axes[1:]), 0.05), ((f"={count}",), 0.1)):
                yield failed.plan.changed(name, replace(guess, axes=axes), cost)


def _expanded(failed: FailedAttempt) -> Iterator[Plan]:
    """ "expand(torch.DoubleTensor{[6, 4]}, size=[4])": the tensor of the first shape wants the
    second one. If none has it, it is a result that has more axes than what it is written to: that,
    or what it was made like, wants as many."""
    expanded = _EXPAND.search(failed.failure.text)
    in_place = _IN_PLACE.search(failed.failure.text)
    if expanded is not None:
        shapes_said = expanded.groups()
    elif in_place is not None:
        shapes_said = in_place.groups()[::-1]
    else:
        return
    given, wanted = ([int(number) for number in re.findall(r"\d+", part)] for part in shapes_said)
    if len(wanted) >= len(given):
        return
    shapes = {
        name: [failed.sizes[axis] for axis in guess.axes] for name, guess in failed.plan.tensors()
    }
    for name in _suspects(failed) if given not in shapes.values() else ():
        if len(shapes[name]) == len(wanted):
            yield with_rank(failed.plan, name, len(given), 0.2)
    for name, guess in failed.plan.tensors():
        if shapes[name] != given:
            continue
        axes = []
        for size, position in zip(wanted, range(-len(wanted), 0), strict=True):
            own = guess.axes[position]
            axes.append(own if failed.sizes[own] == size else failed.labels.get(size, [own])[0])
        current = failed.plan.guess(name)
        if isinstance(current, TensorGuess):
            yield failed.plan.changed(name, replace(current, axes=tuple(axes)), 0.15)


def _stacked(failed: FailedAttempt) -> Iterator[Plan]:
    """ "stack expects each tensor to be equal size, but got [7] at entry 0 and [6, 7] at entry 1":
    a recursion has broadcast its state. All tensors of the second shape get the first one, or none
    of its axes."""
    match = re.search(r"equal size, but got \[([\d, ]*)\].* and \[([\d, ]+)\]", failed.failure.text)
    if match is None:
        return
    small, large = ([int(n) for n in re.findall(r"\d+", part)] for part in match.groups())
    if len(small) >= len(large):
        return
    for kept, cost in ((len(small), 0.15), (0, 0.3)):
        plan = failed.plan
        for name, guess in plan.tensors():
            current = plan.guess(name) if name in plan.names else None
            if [failed.sizes[axis] for axis in guess.axes] == large and current == guess:
                axes = guess.axes[len(large) - kept :]
                plan = plan.changed(name, replace(guess, axes=axes), 0.0)
        if plan != failed.plan:
            yield replace(plan, cost=failed.plan.cost + cost)


def _axis_range(failed: FailedAttempt, rank: int, axis: int) -> Iterator[Plan]:
    plan = failed.plan
    for name, guess in zip(plan.names, plan.guesses, strict=True):
        if isinstance(guess, ValueGuess) and guess.kind == "int" and guess.value == axis:
            for value in (-1, 0):
                yield plan.changed(name, ValueGuess(value, "int"), 0.3)
    wanted = axis + 1 if axis >= 0 else -axis
    yield from _with_current(failed, rank, (wanted - rank,))
    suspects = _suspects(failed)
    for position, name in enumerate(suspects):
        # An axis counted from the front, and axes that others have too: a batch is missing.
        counted = 0 < rank <= axis < _MOST_AXES and rank_of(plan, name) == rank
        if counted and _shares_axes(plan, name):
            yield batched(plan, name, wanted, 0.25 + 0.1 * position)
    yield from _raised_together(plan, [n for n in suspects if rank_of(plan, n) == rank], wanted)
    if wanted <= _MOST_AXES and rank not in (rank_of(plan, name) for name in suspects):
        # What has too few axes was computed, with more axes than any input by broadcasting.
        for position, name in enumerate(suspects):
            yield extended(plan, name, wanted, 0.3 + 0.1 * position)


def _raised_together(plan: Plan, names: list[str], wanted: int) -> Iterator[Plan]:
    """All tensors of one number of axes with ``wanted`` ones: queries, keys and values."""
    if len(names) > 1 and wanted <= _MOST_AXES:
        made = plan
        for name in names:
            made = with_rank(made, name, wanted, 0.0)
        yield replace(made, cost=plan.cost + _TOGETHER)


def _with_current(failed: FailedAttempt, current: int, steps: tuple[int, ...]) -> Iterator[Plan]:
    """Suspects of rank ``current`` with ``steps`` more axes; any suspect when none has it."""
    suspects = _suspects(failed)
    exact = [name for name in suspects if rank_of(failed.plan, name) == current]
    for position, name in enumerate(exact or suspects):
        rank = rank_of(failed.plan, name) or 0
        for step in steps:
            if 0 <= rank + step <= _MOST_AXES:
                yield with_rank(failed.plan, name, rank + step, 0.2 + 0.1 * position)


def _below_permuted(failed: FailedAttempt, more: int) -> Iterator[Plan]:
    """``g.sum(0).permute(1, 2, 0)`` in backward wants ``more`` axes of what it is computed from: an
    input gets so many that the output has them, before its own or in all."""
    place = failed.innermost()
    if place is None or failed.failure.phase != "backward" or more < 1:
        return
    statement, frame = place
    values = [frame.names.get(n.id) for n in ast.walk(statement) if isinstance(n, ast.Name)]
    ranks = {value.dim() + more for value in values if isinstance(value, torch.Tensor)}
    for rank in sorted(rank for rank in ranks if rank <= _MOST_AXES):
        for position, (name, guess) in enumerate(failed.plan.tensors()):
            if guess.dtype == "float" and len(guess.axes) < rank and name in failed.plan.names:
                yield batched(failed.plan, name, rank, 0.1 + 0.1 * position)
                yield with_rank(failed.plan, name, rank, 0.2 + 0.1 * position)


def _levelled(failed: FailedAttempt) -> Iterator[Plan]:
    """Tensors of fewer axes get as many as the others have, and the other way round; in backward,
    those that the failing line computes with may get as many as the error says."""
    ranks = {name: rank_of(failed.plan, name) or 0 for name in _suspects(failed)}
    for wanted in sorted(set(ranks.values()), reverse=True):
        for name, rank in ranks.items():
            if rank != wanted:
                yield with_rank(failed.plan, name, wanted, 0.2 if rank < wanted else 0.8)
    said = re.search(r"number of dimensions: got (\d) and (\d)", failed.failure.text)
    place = failed.innermost()
    if said is None or place is None or failed.failure.phase != "backward":
        return
    fewer, more = sorted(map(int, said.groups()))
    for name in failed.behind(*place):
        guess = failed.plan.guess(name) if name in failed.plan.names else None
        if isinstance(guess, TensorGuess) and len(guess.axes) == more and fewer:
            yield failed.plan.changed(name, replace(guess, axes=guess.axes[-fewer:]), 0.2)


def _deeper(failed: FailedAttempt) -> Iterator[Plan]:
    place = failed.innermost()
    if place is None:
        return
    wanted: dict[str, int] = {}
    for node in ast.walk(place[0]):
        if isinstance(node, ast.Subscript):
            known, index = evaluate(node.slice, place[1])
            for name in failed.named(node.value, place[1]):
                if known and type(index) is int and -_MOST_AXES <= index < _MOST_AXES:
                    wanted[name] = max(wanted.get(name, 0), index + 1 if index >= 0 else -index)
    for name, rank in wanted.items():
        current = rank_of(failed.plan, name)
        if current is not None and rank > current:
            yield with_rank(failed.plan, name, rank, 0.15)


def _stated(failed: FailedAttempt) -> Iterator[Plan]:
    """ "Expected 3D or 4D input", "must be a matrix", "1-dimensional"."""
    text = failed.failure.text
    # What follows "got" is what was given, not what is wanted.
    wanted_part = re.split(r"(?i)\bbut\b|\bgot\b|\bfound\b|\binstead\b|\breceived\b", text)[0]
    ranks = [
        int(number)
        for number in re.findall(r"(?<![\w.])([0-6])(?:[- ]?[dD]\b|[- ]?dim)", wanted_part)
    ]
    ranks += [int(number) for number in _COUNTED.findall(wanted_part)]
    numerals = enumerate(("zero", "one", "two", "three", "four", "five"))
    ranks += [n for n, word in numerals if re.search(rf"(?i)\b{word}[- ]dim", wanted_part)]
    for word, rank in (("matrix", 2), ("matrices", 2), ("vector", 1), ("scalar", 0)):
        if re.search(rf"(?i)\b{word}\b", wanted_part):
            ranks.append(rank)
    if not ranks:
        return
    shown = [
        [int(number) for number in re.findall(r"\d+", match)]
        for match in re.findall(r"\[([\d, ]+)\]", text)
    ]
    suspects = _suspects(failed)
    exact = [
        name
        for name, guess in failed.plan.tensors()
        if [failed.sizes[axis] for axis in guess.axes] in shown
    ]
    for position, name in enumerate(exact or suspects[:3]):
        for step, rank in enumerate(dict.fromkeys(reversed(ranks))):
            known = rank_of(failed.plan, name)
            cost = 0.25 + 0.1 * step + 0.15 * position
            if rank != known:
                yield with_rank(failed.plan, name, rank, cost)
            if known and rank > known and _shares_axes(failed.plan, name):
                yield batched(failed.plan, name, rank, cost + 0.05)


def _all_of_rank(failed: FailedAttempt) -> Iterator[Plan]:
    """ "Expected 1-D argument, but got 2-D": all floating tensors of that rank get the other one,
    for what backward computes from several of them has it only if they all have."""
    match = re.search(r"(?i)expected (\d)-?D\b.*\bgot (\d)-?D\b", failed.failure.text)
    if match is None:
        return
    wanted, current = int(match.group(1)), int(match.group(2))
    names = dict.fromkeys(
        name
        for name, guess in failed.plan.tensors()
        if guess.dtype == "float" and len(guess.axes) == current and guess.domain not in OF_SQUARES
    )
    plan = failed.plan
    for name in names:
        plan = with_rank(plan, name, wanted, 0.0)
    if len(names) > 1:
        yield replace(plan, cost=plan.cost + 0.3)


def _shares_axes(plan: Plan, name: str) -> bool:
    """Whether an axis of the tensor called ``name`` belongs to another one too."""
    own = {axis for other, guess in plan.tensors() if other == name for axis in guess.axes}
    return any(own & set(guess.axes) for other, guess in plan.tensors() if other != name)


def _suspects(failed: FailedAttempt) -> list[str]:
    tensors = list(dict.fromkeys(name for name, _ in failed.plan.tensors()))
    blamed = [name for name in failed.blamed() if name in tensors]
    return blamed + [name for name in tensors if name not in blamed]


#: What it costs to give all tensors of one number of axes another one (heuristic: more than one of
#: them costs).
_TOGETHER = 0.3

#: Cost of taking "any number of axes" for two (heuristic: less than that of a rank that is not
#: documented).
_ON_A_PLANE = 0.25

#: The second of these axes.
SECOND_OF_ANY = "...'"


def on_a_plane(failed: FailedAttempt) -> Iterator[Plan]:
    """Two axes in the place of any number of them in all tensors, where one axis is behind them
    that no other tensor has: it holds a coordinate along each, as that of a grid ``(B, ..., D)``
    beside an image ``(B, C, ...)``."""
    axes = Counter(axis for _, guess in failed.plan.tensors() for axis in set(guess.axes))
    found = False

    def spread(guess: TensorGuess) -> TensorGuess:
        nonlocal found
        if guess.axes.count("...") != 1:
            return guess
        place = guess.axes.index("...")
        behind = guess.axes[place + 1 :]
        if place and len(behind) == 1 and axes[behind[0]] == 1 and behind[0][0].isalpha():
            found, behind = True, ("=2",)
        return replace(guess, axes=(*guess.axes[:place], "...", SECOND_OF_ANY, *behind))

    plan = failed.plan.mapped(spread)
    if found and SECOND_OF_ANY not in axes:
        yield replace(plan, cost=plan.cost + _ON_A_PLANE)
