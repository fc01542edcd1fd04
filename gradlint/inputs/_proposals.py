"""From evidence to guesses: what to pass for every parameter, the likeliest first."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch

from gradlint.inputs import _names
from gradlint.inputs._evidence import MISSING, TENSOR_KINDS, Evidence
from gradlint.inputs._plan import (
    GroupGuess,
    Guess,
    ListGuess,
    Omitted,
    Plan,
    TensorGuess,
    ValueGuess,
    axes,
)
from gradlint.inputs.domains import OF_SQUARES, WEAK
from gradlint.inputs.stand_ins import ClosureModule, callables
from gradlint.model.op import Op
from gradlint.model.sample import has_fields, holds_tensors

#: Values of an integer up to which forward takes elements (heuristic: halves of four differ from
#: its even and odd elements, those of two do not).
WIDTHS = (4, 2, 3, 1)

#: Values of an integer that is the size of an axis (heuristic: of two rows, all others are one).
COUNTS = (3, 4)

#: A guess and what it costs more than the likeliest one.
Proposal = tuple[Guess, float]
#: Ranks tried where nothing is known, per kind.
_RANKS = {"tensor": (2, 3, 4, 1, 0, 5), "index": (1, 2, 3, 0, 4), "mask": (2, 3, 1, 4)}
#: Domain of an integer tensor, by words in its name.
_INTEGER_DOMAINS = (
    ("pointers", r"^crow|ptr$|^cu_|^cum?sum|cu_?seq_?len"),
    ("offsets", r"offs"),
    ("sizes", r"(?:shapes|sizes|lengths|lens|cnt|counts)$"),
    ("ancestors", r"^parents?(?:_ids|_index)?$"),
    ("permutation", r"^perm(?:utation)?$"),
    ("increasing", r"^(?:rois?|b?boxes|windows|spans|intervals)$"),
)
#: What a list of integers says about an axis, by words in its name; axes that are tried.
_SEGMENTS = (
    ("pointers", r"^crow|ptr$|^cu_|^cum?sum|cu_?seq_?len|offsets?$|^bound"),
    ("lengths", r"(?:sizes|lengths|lens|counts|splits|sections|segments|seq_?len)$"),
)
_MOST_PLACES = 3
#: Names of what a loss compares a prediction with.
_LABELS = "target targets label labels"
#: Sizes of the numbers in a list (heuristic: weights and spacings are about one; the edges of a box
#: are longer than what lies in it).
_SCALES = (0.8, 8.0)
_RANK_STEP = 0.5
_VALUE_STEP = 0.35
#: Guesses that are tried for one argument behind ``*args``, with the likeliest ones for the others.
_MOST_OPTIONS = 4
#: Objects of a class that its module keeps, of which as many are tried (heuristic).
_MOST_READY_MADE = 6


def propose(op: Op, evidence: list[Evidence]) -> dict[str, list[Proposal]]:
    """Guesses for every parameter, ordered by cost, the first costing nothing."""
    found: dict[str, list[Proposal]] = {}
    integers = integer_tensors(evidence)
    for item in evidence:
        proposals = _of(item, integers)
        if item.default is not MISSING:
            proposals = _with_default(op, item, proposals)
        best: dict[Guess, float] = {}
        for guess, cost in proposals:
            best[guess] = min(cost, best.get(guess, 99.0))
        ordered = sorted(best.items(), key=lambda pair: pair[1])
        found[item.name] = [(guess, cost - ordered[0][1]) for guess, cost in ordered]
    return found


#: Names of the sizes of a window, and their sizes: it need not be square, and is smaller than what
#: it slides over.
_WINDOW = re.compile(r"[kK]_?[hwdtHWDT]\d?|[kK]ernel(?:_?[hwdHWD]|_?size(?:_?[hwdHWD])?)?|[hw]_?k")
_WINDOWS = (3, 2, 2)

#: Ratio of two numbers that were chosen for parameters of which nothing sets one apart from the
#: other: near enough for whatever range the first one lies in.
APART = 0.9


def first_plan(op: Op, proposals: dict[str, list[Proposal]]) -> Plan:
    """The likeliest plan."""
    guesses = _unequal(tuple(options[0][0] for options in proposals.values()))
    plan = Plan(tuple(proposals), guesses, shares=(0.0,) * len(proposals))
    windows = [symbol for symbol in plan.symbols() if _WINDOW.fullmatch(symbol)]
    for symbol, size in zip(windows, _WINDOWS, strict=False):
        plan = plan.sized(symbol, size)
    return plan


def _unequal(guesses: tuple[Guess, ...]) -> tuple[Guess, ...]:
    """``guesses``, of which no two fractions that were chosen are equal: where ``gamma`` and
    ``lam`` were both 0.7, a backward that takes one for the other would look right."""
    made: list[Guess] = []
    taken: list[float] = []
    for guess in guesses:
        value = guess.value if isinstance(guess, ValueGuess) and guess.kind == "float" else None
        if isinstance(guess, ValueGuess) and isinstance(value, float) and not value.is_integer():
            while value in taken:
                value = round(APART * value, 4)
            taken.append(value)
            guess = replace(guess, value=value)
        made.append(guess)
    return tuple(made)


def integer_tensors(evidence: Iterable[Evidence]) -> list[str]:
    """Parameters that may well be integer tensors."""
    return [item.name for item in evidence if item.weights.get("index", 0.0) >= 1.5]


def _with_default(op: Op, item: Evidence, proposals: list[Proposal]) -> list[Proposal]:
    kept: Guess = ValueGuess(item.default, "default") if op.kind == "function" else Omitted()
    if _is_absent_device(item.default):
        here = "cpu" if isinstance(item.default, str) else torch.device("cpu")
        return [(ValueGuess(here, "device"), 0.0), (kept, 1.2), *proposals]
    wanted = item.default is None and item.differentiable and op.kind == "function"
    likely_tensor = item.tensorness >= 5.0
    if wanted and likely_tensor:
        # An optional tensor with a gradient reveals more when it is given.
        return [*proposals, (kept, 1.2)]
    return [(kept, 0.0), *((guess, cost + 1.2) for guess, cost in proposals)]


def _is_absent_device(value: Any) -> bool:
    """Whether ``value`` names a GPU, and there is none."""
    kind = value.partition(":")[0] if isinstance(value, str) else getattr(value, "type", "")
    return kind == "cuda" and not torch.cuda.is_available()


def _of(item: Evidence, integers: list[str]) -> list[Proposal]:
    if item.passing == "varargs":
        return _varargs(item)
    found: list[Proposal] = _one_by_one(item, splice=False) if not item.classes else []
    for kind, cost in item.ordered_kinds():
        for guess, extra in of_kind(item, kind, integers):
            found.append((guess, cost + extra))
    if item.optional and item.default is MISSING:
        found.append((ValueGuess(None, "none"), 1.0))
    elif item.default is MISSING and not item.only_called:
        found.append((ValueGuess(None, "none"), 3.5))
    return found


def of_kind(item: Evidence, kind: str, integers: list[str] | None = None) -> list[Proposal]:
    """Guesses of one kind for a parameter; ``integers``: parameters that are integer tensors."""
    if item.path and kind != "str":
        return []
    if kind in TENSOR_KINDS:
        return _tensors(item, kind, integers or [])
    groups = {"tensors": _groups, "dict": _dicts, "floats": _numbers}
    if kind in groups:
        return groups[kind](item)
    makers: dict[str, Callable[[Evidence], list[Any]]] = {
        "int": _ints,
        "float": _floats,
        "bool": _bools,
        "str": _strings,
        "shape": _shapes,
        "callable": lambda e: [*filter(callable, e.values), *callables(e.name)],
        "module": _modules,
        "dtype": _dtypes,
        "device": _devices,
        "none": lambda _: [None],
        "value": _objects,
    }
    if kind == "value" and (grouped := _with_fields(item)):
        return grouped
    values = makers[kind](item) if kind in makers else []
    found = [(ValueGuess(value, kind), _VALUE_STEP * index) for index, value in enumerate(values)]
    if kind == "shape":
        shape = (ValueGuess("shape of the first tensor", "shape-of"), 0.3)
        found.insert(1, shape)
        return [*_segments(item), *found]
    return list(found)


def _numbers(item: Evidence) -> list[Proposal]:
    """Lists of different positive numbers: one for each coordinate of the first tensor, which
    means its last axis, or as many as the annotation says; moderate ones, then large ones."""
    found: list[Proposal] = []
    for step, scale in enumerate(_SCALES):
        if not item.length:
            found.append((ValueGuess(scale, "numbers-of"), _VALUE_STEP * step))
        for position, length in enumerate((item.length,) if item.length else (3, 2)):
            values = [round(scale * (1 + k / 4), 6) for k in range(length)]
            cost = _VALUE_STEP * (step + (0 if item.length else position + 1))
            found.append((ValueGuess(tuple(values) if item.length else values, "floats"), cost))
    return found


def _segments(item: Evidence) -> list[Proposal]:
    """Lists of integers that cut an axis into segments, where the name says so."""
    lower = item.name.lower()
    domain = next((d for d, pattern in _SEGMENTS if re.search(pattern, lower)), "")
    if not domain or item.length or item.default is not MISSING:
        return []
    # As likely as any other list, and the first axis more than the others.
    return [(ListGuess(domain, place), -0.3 + 0.25 * place) for place in range(_MOST_PLACES)]


def _tensors(item: Evidence, kind: str, integers: list[str]) -> list[Proposal]:
    dtype = {"index": "int", "mask": "bool", "complex": "complex"}.get(kind, "float")
    grad = dtype in ("float", "complex") and item.differentiable is not False
    domain, square = "real", ""
    if dtype == "int":
        domain = integer_domain(item.name, integers)
        domain = "sizes" if domain == "real" and item.counts else domain
        domain = "pointers" if domain in ("real", "offsets") and bounds_segments(item) else domain
        domain = "permutation" if item.unlike == "permutation" else domain
        domain = "signs" if domain == "real" and item.domain == "signs" else domain
    elif dtype == "float":
        of_squares = item.domain in OF_SQUARES
        by_name = "real" if item.either_sign else _names.domain(item.name)
        domain = ("" if of_squares else item.domain) or by_name
        needed = item.domain if of_squares else ""
        named = _names.square_domain(item.name)
        square = (named or needed) if needed in WEAK else needed or named
        square = "" if square == "spd" and item.general else square
        grad = grad and domain != "signs"  # a label or a direction
        grad = grad and (domain != "binary" or item.differentiable is True)  # a label or a mask
    found: list[Proposal] = []
    if item.shape:
        equal = len(item.shape) > 1 and item.shape[-1] == item.shape[-2]
        documented = square if square and equal else domain
        found.append((TensorGuess(item.shape, dtype, documented, grad), 0.0))
    if square and item.least_rank <= 2 and not item.shape:
        axis = f"{item.name}.0"
        found.append((TensorGuess((axis, axis), dtype, square, grad), -0.3))
    for position, rank in enumerate(ranks(item, kind)):
        cost = _RANK_STEP * position + (0.4 if item.shape else 0.0)
        shape = tensor_axes(item.name, rank)
        for extra in item.unit_axes if position == 0 else ():
            if -rank - 1 <= extra <= rank:
                where = extra if extra >= 0 else rank + 1 + extra
                thin = (*shape[:where], "=1", *shape[where:])
                found.append((TensorGuess(thin, dtype, domain, grad), cost - 0.2))
        found.append((TensorGuess(shape, dtype, domain, grad), cost))
    binary = dtype == "int" and domain == "real" and item.domain == "binary"
    return [
        (replace(guess, high=2) if binary and isinstance(guess, TensorGuess) else guess, cost)
        for guess, cost in found
    ]


def integer_domain(name: str, integers: list[str]) -> str:
    """What the integers of a tensor of this name stand for; ``integers``: the tensors of integers,
    of which one may be the inverse of another."""
    inverse = _names.inverse_of(name, integers)
    if inverse:
        return f"inverse of {inverse}"
    if any(_names.inverse_of(other, [name]) for other in integers):
        return "permutation"
    lower = name.lower()
    for domain, pattern in _INTEGER_DOMAINS:
        if re.search(pattern, lower):
            return domain
    return "real"


def bounds_segments(item: Evidence) -> bool:
    """Whether an integer tensor holds where segments begin and end, by how forward reads it."""
    return item.indexes and item.adjacent


def ranks(item: Evidence, kind: str) -> list[int]:
    """Ranks to try for a tensor, likeliest first."""
    usual = _RANKS.get(kind, _RANKS["tensor"])
    weights = dict(item.ranks)
    if kind == "tensor" and _names.matches(_LABELS, item.name):
        # One class for each row has one axis; numbers have those of the prediction.
        for rank, weight in _names.rank_weights(item.name).items():
            weights[rank] -= weight
    known = [rank for rank in sorted(weights, key=lambda r: -weights[r]) if weights[rank] > 0]
    order = list(dict.fromkeys([*known, *usual]))
    return [rank for rank in order if rank >= item.least_rank]


def tensor_axes(name: str, rank: int) -> tuple[str, ...]:
    """New axes for ``name``; the last ones of convolution weights have small fixed sizes."""
    found = axes(name, rank)
    lower = name.lower()
    if rank >= 3 and any(word in lower for word in ("weight", "kernel", "filter")):
        # Windows are small, and need not be square.
        return (*found[:2], *("=3", "=2", "=3")[: rank - 2])
    return found


def _groups(item: Evidence) -> list[Proposal]:
    found: list[Proposal] = []
    counts = [item.length] if item.length else [2, 3, 1]
    grad = item.differentiable is not False
    for position, count in enumerate(counts):
        for step, rank in enumerate(ranks(item, "tensor")[:3]):
            items = tuple(
                _member(item, f"{item.name}[{index}]", rank, grad) for index in range(count)
            )
            found.append((GroupGuess(items), _RANK_STEP * step + 0.7 * position))
            if step == 0:
                found.append((GroupGuess(items, tuple), 0.9 + 0.7 * position))
    return found


def _member(item: Evidence, name: str, rank: int, grad: bool) -> TensorGuess | GroupGuess:
    """A tensor of a sequence, or a tuple of them where it holds such: in "(W, b) pairs" the small
    letter beside a capital has an axis less."""
    if not item.members:
        return TensorGuess(axes(name, rank), grad=grad)
    capital = any(member[0].isupper() for member in item.members)
    parts = []
    for place, member in enumerate(item.members):
        part, fewer = f"{name}[{place}]", capital and member[0].islower()
        if item.domain == "spd":
            parts.append(TensorGuess((f"{part}.0",) * 2, domain="spd", grad=grad))
        else:
            parts.append(TensorGuess(axes(part, max(rank - fewer, 0)), grad=grad))
    return GroupGuess(tuple(parts), tuple)


def _with_fields(item: Evidence) -> list[Proposal]:
    """Named tuples and dataclasses, with the likeliest guess for every field."""
    found: list[Proposal] = []
    for made in item.classes:
        if not has_fields(made):
            continue
        for step, value in enumerate(_ready_made(made)):
            found.append((ValueGuess(value, "value"), _VALUE_STEP * step))
        parts: list[TensorGuess | ValueGuess | GroupGuess] = []
        for field in item.fields.values():
            if field.differentiable is None:
                field.differentiable = item.differentiable
            guess: Guess = ValueGuess(field.default, "default")
            if field.default is MISSING:
                guess = _of(field, [])[0][0]
            if isinstance(guess, (TensorGuess, ValueGuess, GroupGuess)):
                parts.append(guess)
        if len(parts) == len(item.fields):
            found.append((GroupGuess(tuple(parts), made), _VALUE_STEP * len(found)))
    return found


def _ready_made(made: type) -> list[Any]:
    """What the module of a class keeps of its kind under names of its own, ``qint8 = qtype(…)``:
    the values that callers choose from. None with tensors in it: their gradients are asked for."""
    space = vars(sys.modules.get(made.__module__, object))
    found = [value for name, value in space.items() if type(value) is made and name[0] != "_"]
    plain = {id(value): value for value in found if not _has_tensors(value)}
    return list(plain.values())[:_MOST_READY_MADE]


def _has_tensors(value: Any) -> bool:
    parts = value if isinstance(value, tuple) else ()
    return holds_tensors(value) or any(isinstance(part, torch.Tensor) for part in parts)


def _dicts(item: Evidence) -> list[Proposal]:
    found: list[Proposal] = []
    for step, rank in enumerate(ranks(item, "tensor")[:3]):
        keys = tuple(item.keys) or ("a", "b")
        items = tuple(TensorGuess(axes(f"{item.name}[{key!r}]", rank)) for key in keys)
        cost = _RANK_STEP * step + (0.0 if item.keys or item.of_tensors else 0.8)
        found.append((GroupGuess(items, dict, keys), cost))
    empty = 0.9 if item.keys or item.of_tensors else 0.0
    return [(ValueGuess({}, "dict"), empty), *found]


#: Cost of no argument at all behind ``*args``: an op that loops over them then does nothing, and
#: what its backward returns of that says nothing of the op.
_NOTHING = 2.0


def _varargs(item: Evidence) -> list[Proposal]:
    found: list[Proposal] = _one_by_one(item)
    counts = [item.length] if item.length else [2, 1, 3, 0, 4]
    for position, count in enumerate(counts):
        for step, rank in enumerate(ranks(item, "tensor")[:3]):
            items = tuple(
                TensorGuess(axes(f"{item.name}[{index}]", rank)) for index in range(count)
            )
            guess = GroupGuess(items, tuple, splice=True)
            cost = _RANK_STEP * step + 0.6 * position + (1.0 if item.fields else 0.0)
            found.append((guess, cost if count else cost + _NOTHING))
    return found


def _one_by_one(item: Evidence, *, splice: bool = True) -> list[Proposal]:
    """Arguments behind ``*args``, or the parts of one, that forward unpacks into names: the
    likeliest guess for each one, then the same with another one for one of them."""
    options = [_options(part) for part in item.fields.values()]
    if not options or not all(options):
        return []
    likeliest = tuple(choices[0][0] for choices in options)
    found: list[Proposal] = [(GroupGuess(likeliest, tuple, splice=splice), 0.0)]
    for index, choices in enumerate(options):
        for guess, cost in choices[1:_MOST_OPTIONS]:
            items = (*likeliest[:index], guess, *likeliest[index + 1 :])
            extra = cost - choices[0][1]
            found.append((GroupGuess(items, tuple, splice=splice), extra))
    return found


def _options(part: Evidence) -> list[tuple[TensorGuess | ValueGuess | GroupGuess, float]]:
    """Guesses for one argument among several, by cost."""
    if part.fields and not part.classes:
        inner = [_options(item)[:1] for item in part.fields.values()]
        numbers = tuple(choices[0][0] for choices in inner if choices)
        return [(GroupGuess(numbers, tuple), 0.0)] if len(numbers) == len(inner) else []
    kinds = (TensorGuess, ValueGuess, GroupGuess)
    ordered = sorted(_of(part, []), key=lambda pair: pair[1])
    return [(guess, cost) for guess, cost in ordered if isinstance(guess, kinds)]


def _ints(item: Evidence) -> list[Any]:
    # `rotary_dim` may be how many channels are rotated.
    widths = WIDTHS if item.sliced and _names.is_axis(item.name) else _names.ints(item.name)
    if item.sized and widths[0] < COUNTS[0]:
        widths = tuple(dict.fromkeys((*COUNTS, *widths)))
    return _merged(item, int, widths)


def _floats(item: Evidence) -> list[Any]:
    given = [float(value) for value in item.values if type(value) in (int, float)]
    preferred = [value for value in given if value not in (0.0, 1.0)]
    rest = [value for value in given if value in (0.0, 1.0)]
    return list(dict.fromkeys([*preferred, *_names.floats(item.name), *rest]))


def _bools(item: Evidence) -> list[Any]:
    return [True, False] if "train" in item.name.lower() else [False, True]


def _strings(item: Evidence) -> list[Any]:
    if item.path:  # what is written there harms nobody
        return [os.path.join(tempfile.gettempdir(), "gradlint-no-such-file")]
    return _merged(item, str, _names.strings(item.name))


def _shapes(item: Evidence) -> list[Any]:
    given = [value for value in item.values if isinstance(value, (tuple, list))]
    length = item.length or 2
    usual = _names.window(item.name)
    if usual is not None:
        given.append((usual,) * length)
    return [*given, (3, 2, 4, 5)[:length], (2,) * length, 2, (2,), (1, 2)[:length]]


def _modules(item: Evidence) -> list[Any]:
    own = [value for value in item.values if isinstance(value, ClosureModule)]
    return [*own, torch.nn.Tanh(), torch.nn.Identity()]


def _dtypes(item: Evidence) -> list[Any]:
    return [torch.float64, torch.float32, torch.int64]


def _devices(item: Evidence) -> list[Any]:
    return [torch.device("cpu"), "cpu"]


def _objects(item: Evidence) -> list[Any]:
    found = [value for value in item.values if not isinstance(value, (int, float, str))]
    for made in item.classes:
        try:
            found.append(made())
        except Exception:
            continue
    return found


def _merged(item: Evidence, wanted: type, usual: tuple[Any, ...]) -> list[Any]:
    given = [value for value in item.values if type(value) is wanted]
    return list(dict.fromkeys([*given, *usual]))
