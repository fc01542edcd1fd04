"""Smaller samples: every size becomes small, as long as the operator runs as well as before.

Axes belong together that have one size in every call. Where all calls have one size, it is tried
which of its axes can have another one. A size that follows from others, n - 1 of n, follows still.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Mapping, Sequence

import torch

from gradlint.inputs.resized import resizable, resized, tensors_of
from gradlint.inputs.tried import Tried
from gradlint.model.related import FORMULAS, Axis, Formula
from gradlint.model.sample import Sample, map_tensors
from gradlint.recorded.integers import telling

#: New sizes, each for one group of axes: small, and all different, so that axes that are mistaken
#: for each other show.
SMALL = tuple(range(3, 40))
#: Sizes that are tried where a small one is refused: powers of two and products that kernels and
#: groups of channels ask for.
OTHERS = (4, 6, 8, 9, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512)
#: Seconds and calls that this may take (heuristic: calls take milliseconds).
MOST_SECONDS, MOST_CALLS = 15.0, 150
#: Axes of one size that are tried in pairs.
MOST_PAIRED = 8

Try = Callable[[Sample], Tried]
#: Axes that have one size.
Group = tuple[Axis, ...]


class Shrinker:
    """Makes a sample smaller.

    Args:
        sample: to start from.
        sizes: the shapes of its tensors in each call of its kind, in the order of the arguments.
        attempt: runs the operator on a sample.
        seed: of the values of slices that are new.
    """

    def __init__(
        self,
        sample: Sample,
        sizes: Sequence[Sequence[Sequence[int]]],
        attempt: Try,
        seed: int,
    ) -> None:
        self.sample = sample
        self._given = sample
        self.known = attempt(sample)
        self._attempt = attempt
        self._seed = seed
        self._calls = 0
        self._until = time.monotonic() + MOST_SECONDS
        self._sizes = sizes

    def shrunk(self) -> Sample:
        """The smallest sample that was found."""
        if not resizable(self.sample) or not self.known.runs:
            return self.sample
        groups = self._groups()
        targets = self._targets(groups)
        if not self._change(targets):
            self._one_by_one(targets)
        self._split(groups)
        self._telling()
        return self.sample

    # -- Inner workings --------------------------------------------------------------------------

    def _groups(self) -> list[Group]:
        """Axes that have one size in every call, those of size 0 and 1 left out."""
        found: dict[tuple[int, ...], list[Axis]] = {}
        tensors = tensors_of(self.sample)
        for number, tensor in enumerate(tensors):
            for axis, size in enumerate(tensor.shape):
                if size < 2:
                    continue
                seen = tuple(shapes[number][axis] for shapes in self._sizes)
                found.setdefault((size, *seen), []).append((number, axis))
        return [tuple(axes) for axes in found.values()]

    def _size(self, group: Group) -> int:
        number, axis = group[0]
        return tensors_of(self.sample)[number].shape[axis]

    def _targets(self, groups: Sequence[Group]) -> dict[Group, int]:
        """A small size for each group, all different; small ones stay what they are."""
        found: dict[Group, int] = {}
        for group in sorted(groups, key=self._size):
            size = self._size(group)
            free = [small for small in SMALL if small not in found.values()]
            found[group] = size if size < free[0] and size not in found.values() else free[0]
        return found

    def _change(self, sizes: Mapping[Group, int]) -> bool:
        """Take over the sample with other ``sizes``, if the operator runs on it as well. Integers
        of the old sizes change with them where it runs only so."""
        change = {axis: size for group, size in sizes.items() for axis in group}
        old = {self._size(group): size for group, size in sizes.items()}
        if all(before == after for before, after in old.items()):
            return True
        for integers in (None, old):
            if self._calls >= MOST_CALLS or time.monotonic() > self._until:
                return False
            self._calls += 1
            made = resized(self.sample, change, seed=self._seed, integers=integers)
            if made is None:
                continue
            seen = self._attempt(made)
            if seen.as_good_as(self.known):
                self.sample = made
                return True
        return False

    def _one_by_one(self, targets: Mapping[Group, int]) -> None:
        """Each size alone, the largest first; those that refuse together with another one."""
        refused: list[Group] = []
        for group in sorted(targets, key=self._size, reverse=True):
            if not self._alone(group, targets[group]):
                refused.append(group)
        for one, other in itertools.permutations(refused, 2):
            self._together(one, other, targets)

    def _alone(self, group: Group, target: int) -> bool:
        size = self._size(group)
        others = [small for small in OTHERS if target < small < size]
        return any(self._change({group: small}) for small in (target, *others))

    def _together(self, one: Group, other: Group, targets: Mapping[Group, int]) -> None:
        """Two sizes of which the second follows from the first."""
        size = self._size(one)
        for small in (targets[one], *OTHERS):
            if small >= size:
                break
            for text in FORMULAS:
                formula = Formula(text)
                if formula.at([size]) != self._size(other) or formula.at([small]) < 1:
                    continue
                if self._change({one: small, other: formula.at([small])}):
                    return

    def _telling(self) -> None:
        """Integers and masks that show what the recorded ones do: all of them, or one by one."""
        old, new = tensors_of(self._given), tensors_of(self.sample)
        sizes = [[size for tensor in every for size in tensor.shape] for every in (old, new)]
        made = {
            id(after): value
            for before, after in zip(old, new, strict=True)
            if not after.is_floating_point() and not after.is_complex()
            if (value := telling(before, after, *sizes)) is not None
        }
        if made and not self._replace(made) and len(made) > 1:
            for tensor in new:
                if id(tensor) in made:
                    self._replace({id(tensor): made[id(tensor)]})

    def _replace(self, made: Mapping[int, torch.Tensor]) -> bool:
        """Take over the sample with other tensors, if the operator runs on it as well."""

        def other(tensor: torch.Tensor) -> torch.Tensor:
            return made.get(id(tensor), tensor)

        args, kwargs = map_tensors((self.sample.args, self.sample.kwargs), other)
        sample = dataclasses.replace(self.sample, args=args, kwargs=kwargs)
        if not self._attempt(sample).as_good_as(self.known):
            return False
        self.sample = sample
        return True

    def _split(self, groups: Sequence[Group]) -> None:
        """Axes that have one size by chance get different ones: one axis alone, or two."""
        for group in groups:
            rest = list(group)
            for count in (1, 2):
                for part in itertools.combinations(rest, count):
                    if len(rest) <= count or len(group) > MOST_PAIRED or set(part) - set(rest):
                        continue
                    taken = {size for tensor in tensors_of(self.sample) for size in tensor.shape}
                    small = next(size for size in SMALL if size not in taken)
                    if self._change({part: small}):
                        rest = [axis for axis in rest if axis not in part]
