"""From the calls of an operator to its spec."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gradlint.base.errors import GradlintError
from gradlint.base.text import error_line
from gradlint.inputs.resized import tensors_of
from gradlint.inputs.samples import samples_for
from gradlint.inputs.tried import Tried, tried
from gradlint.model.op import Op, OpRef
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.recorded.calls import (
    Call,
    Cluster,
    as_sample,
    clusters,
    examples,
    read_calls,
    representative,
)
from gradlint.recorded.modules import constructor_of
from gradlint.recorded.shrink import Shrinker
from gradlint.recorded.values import ranges, structures
from gradlint.spec.open import open_spec
from gradlint.spec.starter import dump_starter

#: Calls of a kind that are tried where one does not run (heuristic: another one rarely does).
MOST_TRIED = 3


@dataclass
class Learned:
    """What was learned of an operator.

    Args:
        text: its spec; "" where none could be made.
        samples: how many samples it has; 0 where inputs have to be inferred.
        notes: what could not be kept, and why, as sentences.
    """

    text: str = ""
    samples: int = 0
    notes: list[str] = field(default_factory=list)


def learn(
    op: Op,
    files: Sequence[str],
    settings: Settings,
    folder: str,
    header: Sequence[str],
    *,
    shrink: bool = True,
) -> Learned:
    """The spec of ``op`` for a file in ``folder``.

    Args:
        op: the operator.
        files: of its calls.
        settings: the seed is read.
        folder: where the spec will be.
        header: comments for its first lines.
        shrink: whether samples are made smaller.
    """
    learner = _Learner(op, settings, folder, header, shrink)
    _, calls, learner.notes = constructor_of(read_calls(files))
    return learner.learned(calls)


class _Learner:
    def __init__(
        self, op: Op, settings: Settings, folder: str, header: Sequence[str], shrink: bool
    ) -> None:
        self.op = op
        self.settings = settings
        self.folder = folder
        self.header = list(header)
        self.shrink = shrink
        self.notes: list[str] = []

    def learned(self, calls: Sequence[Call]) -> Learned:
        whole = [call for call in calls if not call.objects]
        lost = sorted({text for call in calls for text in call.objects})
        if lost:
            self.note(f"no spec can hold an argument that is {_listed(lost)}")
        kept: list[_Kept] = []
        for cluster in representative(clusters(whole)):
            made = self.sample_of(cluster)
            if made is not None and self.unlike(made, kept):
                kept.append(made)
        texts = self.written(kept)
        if not texts and not whole:
            return self.inferred()
        return Learned(texts, len(kept), self.notes)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    # -- One sample --------------------------------------------------------------------------------

    def sample_of(self, cluster: Cluster) -> _Kept | None:
        """A small sample that stands for ``cluster``; None if none runs."""
        error = ""
        for call in examples(cluster)[:MOST_TRIED]:
            try:
                given = as_sample(call, cluster, self.settings.seed)
                sample = samples_for(self.op, self.settings, [given])[0]
            except (GradlintError, ValueError, RuntimeError, TypeError) as problem:
                error = error or error_line(problem)
                continue
            first = self.attempt(sample)
            if not first.runs:
                error = error or first.error
                continue
            if call.cut:
                self.note(f"call {call.number} had more arguments than were kept")
            small = self.smaller(sample, cluster) if self.shrink else sample
            return _Kept(small, self.attempt(small), cluster)
        self.note(f"a call can't be repeated: {error}")
        return None

    def attempt(self, sample: Sample) -> Tried:
        return tried(self.op, sample, self.settings.seed)

    def smaller(self, sample: Sample, cluster: Cluster) -> Sample:
        count = [tensor.dim() for tensor in tensors_of(sample)]
        shapes = [[entry["shape"] for entry in call.tensors] for call in cluster.calls]
        alike = [item for item in shapes if [len(shape) for shape in item] == count]
        try:
            return Shrinker(sample, alike, self.attempt, self.settings.seed).shrunk()
        except (RuntimeError, ValueError, IndexError, TypeError) as problem:
            self.note(f"sizes stay as they were: {error_line(problem)}")
            return sample

    def unlike(self, one: _Kept, others: Iterable[_Kept]) -> bool:
        """Whether ``one`` shows anything that none of ``others`` does."""
        return all(_shown(one.sample) != _shown(other.sample) for other in others)

    # -- The text ----------------------------------------------------------------------------------

    def written(self, kept: list[_Kept]) -> str:
        """The spec with all samples that run as well when they are read back; the others are taken
        out of ``kept``."""
        for item in kept:
            again: Tried | None = None
            for domains, exact in self.descriptions(item):
                item.sample = dataclasses.replace(item.sample, domains=domains)
                item.exact = exact
                again = self.read_back(item)
                if again is not None and again.as_good_as(item.known):
                    break
            else:
                item.exact = frozenset()
                self.note(f"{item.sample.label} {_worse(item, again)}")
        kept[:] = [item for item in kept if item.exact is not None]
        return self.text(kept, self.folder) if kept else ""

    def descriptions(self, item: _Kept) -> list[tuple[dict[str, str], frozenset[str]]]:
        """Ways to describe the values of a sample, the most general first."""
        named = item.sample.named_tensors(self.op.signature)
        seen = item.values(named)
        domains, exact = structures(seen)
        floating = [name for name, t in named if t.is_floating_point() or t.is_complex()]
        every = frozenset(name for name, _ in named)
        return [
            (domains, exact),
            (ranges(seen, domains), exact),
            ({}, exact | frozenset(floating)),
            ({}, every),
        ]

    def read_back(self, item: _Kept) -> Tried | None:
        """What comes of the sample as a spec says it."""
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=".gradlint-") as folder:
            path = os.path.join(folder, "spec.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.text([item], folder))
            try:
                _, samples = open_spec(OpRef(path, "spec", path), self.settings)
            except GradlintError as problem:
                self.note(f"{item.sample.label}: {error_line(problem)}")
                return None
            return self.attempt(samples[0])

    def text(self, kept: Sequence[_Kept], folder: str) -> str:
        return dump_starter(
            self.op,
            [item.sample for item in kept],
            folder,
            header=self.header,
            imports=self.settings.imports,
            exact={item.sample.label: item.exact or frozenset() for item in kept},
        )

    def inferred(self) -> Learned:
        """The spec with inputs that were inferred, where no call could be kept."""
        try:
            samples_for(self.op, self.settings)
        except GradlintError:
            return Learned("", 0, self.notes)
        self.note("its inputs are inferred")
        # Without inputs: those that were inferred may hold what no spec can say.
        text = dump_starter(
            self.op, [], self.folder, header=self.header, imports=self.settings.imports
        )
        return Learned(text, 0, self.notes)


def _worse(item: _Kept, again: Tried | None) -> str:
    """What a call does less well where it is read back; ``again`` is what came of that."""
    when = "when it is read back from a spec"
    if again is None or not again.runs:
        return f"does not run {when}"
    if len(tensors_of(item.sample)) < len(list(item.sample.named_tensors(None))):
        return "passes one tensor for several arguments: a spec gives each its own"
    if again.score == 3:
        return f"runs {when}, and its backward raises then: {again.error}"
    return f"has fewer gradients that are finite and not zero {when}"


@dataclass
class _Kept:
    """A sample that is kept.

    Args:
        sample: it.
        known: what comes of it.
        cluster: the calls that it stands for.
        exact: the tensors whose values are written down.
    """

    sample: Sample
    known: Tried
    cluster: Cluster
    exact: frozenset[str] | None = None

    def values(self, named: Sequence[tuple[str, torch.Tensor]]) -> dict[str, list[torch.Tensor]]:
        """The tensors of all calls by name, this sample's first."""
        order = {id(t): number for number, t in enumerate(tensors_of(self.sample))}
        found: dict[str, list[torch.Tensor]] = {}
        for name, tensor in named:
            number = order[id(tensor)]
            recorded = [
                call.values[number]
                for call in self.cluster.calls
                if number < len(call.values) and "block" not in call.tensors[number]
            ]
            found[name] = [tensor.detach(), *(value for value in recorded if value is not None)]
        return found


def _shown(sample: Sample) -> list[Any]:
    """What a sample can show: ranks, sizes of one, and plain values."""
    found: list[Any] = []
    for name, value in sample.named_leaves(None):
        if isinstance(value, torch.Tensor):
            ones = [size if size < 2 else 2 for size in value.shape]
            found.append((name, ones, str(value.dtype), value.requires_grad, str(value.layout)))
        else:
            found.append((name, repr(value)))
    return found


def _listed(texts: Sequence[str]) -> str:
    shown = ", ".join(f"`{text}`" for text in texts[:3])
    return f"{shown} and {len(texts) - 3} others" if len(texts) > 3 else shown
