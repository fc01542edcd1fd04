"""Which other sizes are tried, and what came of each."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gradlint.inputs._resized import (
    Axis,
    repeats_indices,
    resizable,
    resized,
    tensors_of,
    tied_axes,
    with_leading_axis,
    without_leading_axis,
)
from gradlint.rules._elsewhere import (
    NOT_FINITE,
    RAISED,
    REFUSED,
    RIGHT,
    UNTOLD,
    WRONG,
    Look,
    judged_inputs,
    look,
)
from gradlint.rules.layout._seen import unable

if TYPE_CHECKING:
    from gradlint.inputs import Sample
    from gradlint.rules._subject import Subject

#: Sizes of the last axis, the largest that is affordable: powers of two and one more.
LAST = (1025, 257, 129, 65, 33, 17, 9, 5)

#: Sizes of other axes: primes, and powers of two less one.
OTHERS = (31, 17, 13, 11, 7, 5, 3)

#: Elements of all tensors up to which samples grow (heuristic: outputs may have the product of two
#: tensors' sizes); those of larger samples shrink.
MOST_ELEMENTS = 4096

#: Product of a sequence of integers that change with sizes, up to which they do: it may be a shape.
MOST_IN_SHAPE = 2**20

#: Seconds that a call at other sizes may take by a guess from the sample's, beyond :data:`OVERHEAD`
#: (heuristic: loops over elements in Python).
MOST_SECONDS, OVERHEAD = 0.5, 2e-3

#: Share of ``--timeout`` after which no further sizes are tried.
SHARE_OF_TIMEOUT = 0.25

#: Sizes of the sample of which each is changed alone; of more, the first ones.
MOST_ALONE = 3

#: Size of an axis that is put in front.
LEADING = 2

#: What is said of a fault at an odd size that is none at the even one beside it.
EVEN = "right where {even}: forward takes an odd size where it needs two halves"

#: Verdicts that are faults.
FAULTS = (WRONG, RAISED, NOT_FINITE)


@dataclass
class Tried:
    """One other shape.

    Args:
        words: what was changed.
        look: what was seen.
        sizes: old size → new size.
        batch: whether an axis of a batch was changed.
        carried: whether outputs have the axes that were changed.
        hint: what else was seen, in words; such a fault may be a demand that forward leaves
            unsaid.
    """

    words: str
    look: Look
    sizes: dict[int, int] = field(default_factory=dict)
    batch: bool = False
    carried: bool = False
    hint: str = ""

    @property
    def faulty(self) -> bool:
        """Whether the op fails there."""
        return self.look.verdict in FAULTS


class Sizes:
    """The op of ``subject`` at other sizes than the sample's."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.groups = tied_axes(subject.sample)
        self.tried: list[Tried] = []
        self.refused: list[str] = []
        self._until = time.monotonic() + SHARE_OF_TIMEOUT * subject.settings.timeout

    @property
    def late(self) -> bool:
        """Whether no further sizes are to be tried."""
        return time.monotonic() >= self._until

    def alone(self, size: int) -> list[Tried]:
        """Each size of the sample changed to ``size``, the others kept. Indices and offsets alone
        are not emptied: what reads them without looking would end the process."""
        kept = [] if size else [old for old in self.groups if not self._of_values(old)]
        wanted = [old for old in self.groups if old not in kept]
        found = [self.changed({old: size}) for old in wanted[:MOST_ALONE]]
        return [item for item in found if item is not None]

    def _of_values(self, old: int) -> bool:
        tensors = tensors_of(self.subject.sample)
        kinds = (tensors[number] for number, _ in self.groups[old])
        return any(tensor.is_floating_point() or tensor.is_complex() for tensor in kinds)

    def odd(self) -> Tried | None:
        """All sizes at once changed to odd ones, else each alone; a fault is traced to one."""
        sizes = odd_sizes(self.subject, self.groups)
        if not sizes:
            return None
        found = self.changed(sizes)
        if found is not None and not found.faulty:
            return found
        for old in list(sizes)[:MOST_ALONE]:
            one = self.changed({old: sizes[old]}) if len(sizes) > 1 else found
            if one is not None and one.faulty:
                even = None if one.batch else self.changed({old: twice_a_prime(sizes[old])})
                if even is not None and even.look.verdict == RIGHT:
                    one.hint = EVEN.format(even=even.words)
                return one
        return found

    def changed(self, sizes: dict[int, int]) -> Tried | None:
        """All axes of old sizes changed to new ones. Integer arguments of these sizes change with
        them where the op refuses, or fails, without."""
        change = {axis: new for old, new in sizes.items() for axis in self.groups[old]}
        found: Look | None = None
        words = ""
        for integers in (None, sizes) if _integers(self.subject, sizes) else (None,):
            sample = resized(self.subject.sample, change, seed=self.subject.seed, integers=integers)
            if sample is None or self.late:
                continue
            seen = look(self.subject, sample)
            if seen.verdict == WRONG and repeats_indices(self.subject.sample, sample):
                seen.verdict = UNTOLD
            if found is None or seen.verdict != REFUSED:
                found, words = seen, shapes(self.subject, sample, change)
            if seen.verdict not in (REFUSED, *FAULTS):
                break
        noted = self._noted(words, found)
        if noted is not None:
            _place(self.subject, noted, sizes)
        return noted

    def broadcast(self, item: Tried) -> bool:
        """Whether forward takes the sizes of ``item``, and no others in place of the sample's."""
        return all(self.changed({old: twice_a_prime(old)}) is None for old in item.sizes)

    def ranks(self) -> list[Tried]:
        """An axis more in front of the tensors that share their first axis, and that one less."""
        subject = self.subject
        tensors = tensors_of(subject.sample)
        first = next((t for t in tensors if t.requires_grad and t.dim()), None)
        if first is None:
            return []
        tied = {k for k, t in enumerate(tensors) if t.dim() and t.shape[0] == first.shape[0]}
        samples = [
            with_leading_axis(subject.sample, tied, LEADING, seed=subject.seed),
            without_leading_axis(subject.sample, tied),
        ]
        found = []
        for sample in samples:
            if not self.late:
                words = shapes(subject, sample, {(k, 0): 0 for k in tied})
                found.append(self._noted(words, look(subject, sample)))
        return [item for item in found if item is not None]

    def _noted(self, words: str, found: Look | None) -> Tried | None:
        if found is None:
            return None
        if found.verdict == REFUSED:
            self.refused.append(words)
            return None
        tried = Tried(words, found)
        self.tried.append(tried)
        return tried


def _place(subject: Subject, tried: Tried, sizes: dict[int, int]) -> None:
    """Tell what the changed axes are; a size that outputs keep was broadcast, not taken."""
    tried.sizes = sizes
    before = {item.name: item.value.shape for item in subject.run.outputs}
    after = {item.name: item.value.shape for item in tried.look.outputs}
    pairs = [
        (old, now)
        for name, shape in before.items()
        if name in after and len(after[name]) == len(shape)
        for old, now in zip(shape, after[name], strict=True)
        if old in sizes
    ]
    tried.carried = bool(pairs) and all(sizes[old] == now for old, now in pairs)
    if not tried.carried and pairs and tried.look.verdict == RAISED:
        tried.look.verdict = REFUSED
    first = next((item.value for item in subject.problem.inputs if item.value.dim()), None)
    if first is not None and first.shape[0] in sizes:
        leading = [shape[:1] for shape in before.values()]
        tried.batch = any(not size or size[0] == first.shape[0] for size in leading)


def _integers(subject: Subject, sizes: dict[int, int]) -> bool:
    """Whether integer arguments are equal to old sizes, and can change with them."""
    found, product = False, 1
    for _, value in subject.arguments():
        if type(value) is int:
            found = found or value in sizes
            product *= max(abs(sizes.get(value, value)), 1)
    return found and product <= MOST_IN_SHAPE


def no_sizes(subject: Subject) -> str:
    """Why other sizes can't be tried; "" where they can."""
    from gradlint.rules.value._obstacles import obstacle

    reason = unable(subject) or obstacle(subject)
    if reason:
        return reason
    if not resizable(subject.sample):
        return "a tensor is sparse or nested"
    if not judged_inputs(subject):
        return "no gradient is right at the sample: see GL401"
    return ""


def odd_sizes(subject: Subject, groups: dict[int, list[Axis]]) -> dict[int, int]:
    """Old size → an odd one: as large as is affordable for the last axis, distinct ones."""
    tensors = tensors_of(subject.sample)
    if not groups:
        return {}
    total = sum(tensor.numel() for tensor in tensors) or 1
    most = min(MOST_ELEMENTS, total * MOST_SECONDS / max(_seconds(subject) - OVERHEAD, 1e-6))
    largest = max(range(len(tensors)), key=lambda k: tensors[k].numel())
    axes = {axis: old for old, found in groups.items() for axis in found}
    ends = (axes.get((largest, axis)) for axis in reversed(range(tensors[largest].dim())))
    end = next((old for old in ends if old is not None), next(iter(groups)))
    others = [old for old in groups if old != end]
    for last in LAST:
        for start in range(len(OTHERS)):
            free = [size for size in OTHERS[start:] if size != last and size not in groups]
            if last == end or len(free) < len(others):
                continue
            found = {end: last, **dict(zip(others, free, strict=False))}
            if _elements(tensors, axes, found) <= most:
                return found
    return {}


def _seconds(subject: Subject) -> float:
    """Of a forward at the sample."""
    if subject.run_s <= OVERHEAD:
        return subject.run_s
    started = time.perf_counter()
    subject.problem.forward()
    return time.perf_counter() - started


def twice_a_prime(size: int) -> int:
    """The smallest 2·p above ``size`` with p a prime beyond 3: even, and divisible by nothing else
    that a block may be."""
    p = max(5, size // 2 + 1)
    while any(p % k == 0 for k in range(2, math.isqrt(p) + 1)):
        p += 1
    return 2 * p


def _elements(tensors: Sequence[object], axes: dict[Axis, int], sizes: dict[int, int]) -> int:
    total = 0
    for number, tensor in enumerate(tensors):
        shape = list(getattr(tensor, "shape", ()))
        for axis, old in enumerate(shape):
            shape[axis] = sizes.get(axes.get((number, axis), -1), old)
        total += math.prod(shape)
    return total


def shapes(subject: Subject, sample: Sample, change: dict[Axis, int]) -> str:
    """The changed tensors with their shapes in words: "`x` has shape [1, 3]"."""
    changed = {number for number, _ in change}
    names: dict[int, str] = {}
    order = {id(tensor): number for number, tensor in enumerate(tensors_of(sample))}
    for name, tensor in sample.named_tensors(subject.op.signature):
        names.setdefault(order[id(tensor)], f"`{name}` has shape {list(tensor.shape)}")
    shown = [words for number, words in sorted(names.items()) if number in changed]
    return " and ".join(shown[:3])
