"""Does an op that passes do the same where nothing watches it?

A worker that judges an op has the op in it, which can look for gradlint, replace what it calls,
remember earlier calls, or recognise its directions. Here the op runs in processes of its own, in
which nothing of gradlint is loaded, and its module has another name and path if it can. This
process judges and never imports the user's code. What it asks for comes from a seed that no op has
seen: the op sees calls of forward and backward at values near the sample's, and can't tell which
of them are compared. Neighbouring calls go to different processes, so that answers made up from
earlier ones do not fit together.

The measurement is that of GL401. A disagreement counts when it is there again, twice, with a fresh
process for every call.

Where one worker confirms several operators of a plain file, the processes of one that is confirmed
serve the next one of that file. Nothing is said against an op before it had processes of its own.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import torch

from gradlint.checking.severity import MATERIAL
from gradlint.experiments.call_budget import SINGLE_DIRECTION
from gradlint.model.op import OpRef
from gradlint.model.report import Confirmation
from gradlint.model.settings import Settings
from gradlint.numerics.concatenated_inputs import by_dtype, merged
from gradlint.numerics.decide import Decision, decide
from gradlint.numerics.directions import KINDS
from gradlint.numerics.map import Map
from gradlint.numerics.pair import Pair
from gradlint.numerics.products import all_finite
from gradlint.numerics.verdict import DIFFERS, UNSURE
from gradlint.ops.bare import unpacked
from gradlint.running._zygote import BareProcess, Unable, alive
from gradlint.running.events import Confirmed, Disagreement
from gradlint.running.job import ConfirmWork
from gradlint.targets.bytecode import put_beside
from gradlint.targets.importing import place_of_file
from gradlint.targets.locate import find_module

#: Share of its size by which a value is moved away from the sample's: no farther than GL401 moves
#: it (``numerics.differences.GLANCE``). At 2⁻¹⁰, a layer that keeps its largest singular value from
#: call to call was wrong: its buffers, which are not moved, no longer fitted its weight.
NEARBY = 2.0**-17

#: The same for the first question to the other process, whose answer is not used. It must lie
#: beyond the steps of differences, so that what fits it does not fit what the first process says.
ELSEWHERE = 2.0**-7

#: Processes that answer in turns: as few as can contradict each other.
PROCESSES = 2

#: What is said of an op of which no two processes are alike.
DRAWS = "in a single process: its module draws random numbers when it is imported"

#: Roundings, relative to the largest element, up to which two processes return the same from the
#: same first call (heuristic: sums in another order).
SAME = 2.0**10


@dataclass
class _Call:
    """The call that is repeated: what to load, the tensors, and which of them are the inputs."""

    request: dict[str, Any]
    arrays: list[torch.Tensor]
    inputs: list[int]
    names: list[str]

    #: Where it is imported from, as a request says it.
    where: dict[str, Any] = field(default_factory=dict)
    #: Names that place for processes that hold what they have imported; "" to import it anew.
    key: str = ""
    #: Whether such a process was forked for it.
    held: bool = False
    forward_calls: int = 0
    backward_calls: int = 0

    @property
    def values(self) -> list[torch.Tensor]:
        return [self.arrays[place] for place in self.inputs]


class _Processes:
    """Fresh processes with the op, which answer in turns.

    Args:
        call: what they load, and from where.
        lasting: how many there are; none to give every question a process of its own.
    """

    def __init__(self, call: _Call, lasting: int) -> None:
        self._call = call
        self._all: list[BareProcess] = []
        self._turns: list[BareProcess] = []
        self._lasting = lasting

    def start(self) -> None:
        """Start those that last, all at once."""
        for side in range(self._lasting):
            self._all.append(self._process(side))
        for process in self._all:
            process.ready()
        self._turns = list(self._all)
        random.SystemRandom().shuffle(self._turns)

    def next(self) -> BareProcess:
        """The one whose turn it is."""
        if self._turns:
            self._turns.append(self._turns.pop(0))
            return self._turns[-1]
        if self._all:
            self._all[-1].close()
        self._all.append(self._process())
        self._all[-1].ready()
        return self._all[-1]

    def any(self) -> BareProcess:
        """One of them by chance."""
        for _ in range(random.SystemRandom().randrange(2)):
            self.next()
        return self.next()

    def close(self) -> None:
        """End them, and count what was asked of them."""
        for process in self._all:
            if process not in _kept:
                process.close()
            self._call.held |= process.held
            self._call.forward_calls += process.forward_calls
            self._call.backward_calls += process.backward_calls

    def keep(self) -> None:
        """Those that last may serve another op of the module, and no older ones."""
        for process in _kept:
            process.close()
        _kept[:] = [process for process in self._all if process.key]

    def _process(self, side: int | None = None) -> BareProcess:
        """A fresh one, or one that is kept. Those that take turns are never forks of the same
        process that holds the module, so that they share no memory that its import made; one for a
        single question is none at all."""
        call = self._call
        key = f"{call.key} {side}" if call.key and side is not None else ""
        request = {**call.request, **call.where}
        for process in [kept for kept in _kept if key and kept.key == key]:
            _kept.remove(process)
            with suppress(Unable):
                process.load(request, call.arrays)
                process.held = True
                return process
            process.close()
        return BareProcess(request, call.arrays, key)


#: Processes of the op that was confirmed last, for the next one of its module.
_kept: list[BareProcess] = []


def confirm(work: ConfirmWork) -> Confirmed:
    """Judge the op of ``work`` where nothing watches it."""
    started = time.perf_counter()
    call: _Call | None = None
    try:
        call = _call(work)
        forked = alive()
        try:
            confirmation, wrong = _judged(call, work)
        except Unable:
            if not forked or alive():
                raise
            # An op that was confirmed meanwhile ended the zygote, and all processes with it.
            confirmation, wrong = _judged(call, work)
    except Unable as error:
        confirmation, wrong = Confirmation("not confirmed", str(error)), []
    if call is not None:
        confirmation.forward_calls = call.forward_calls
        confirmation.backward_calls = call.backward_calls
    confirmation.duration_s = time.perf_counter() - started
    return Confirmed(confirmation, wrong)


def _judged(call: _Call, work: ConfirmWork) -> tuple[Confirmation, list[Disagreement]]:
    reasons: list[str] = []
    for way in _ways(work.ref, work.settings, work.folder):
        with way as where:
            key = where.pop("key")
            for call.key in (f"{work.run} {key}", "") if work.run and key else ("",):
                call.where, call.held = where, False
                try:
                    return _judged_there(call)
                except Unable as error:
                    reasons.append(str(error))
                if not call.held:
                    break
    raise Unable(reasons[-1])


def _judged_there(call: _Call) -> tuple[Confirmation, list[Disagreement]]:
    """Judge by processes that take turns. Where they contradict each other or backward, nothing is
    said against the op before every call was the first of its process, and that twice."""
    decision = _decision(call, PROCESSES)
    if not _doubtful(decision):
        return Confirmation("confirmed", resolution=decision.resolution), []
    if call.held:
        # Nothing is said against the op before its module was imported for itself.
        raise Unable("it is not right where its module was imported for others too")
    lasting = _fewest(call)
    if lasting is None:
        return Confirmation("not confirmed", "it returns other values at every call"), []
    decisions = []
    for _ in range(2):
        decision = _decision(call, lasting)
        if DIFFERS not in decision.verdicts:
            return _not_wrong(decision, lasting), []
        decisions.append(decision)
    wrong = [one for one in _disagreements(decisions, call.names) if one.relative_error > MATERIAL]
    if not wrong:
        return Confirmation("not confirmed", f"off by less than {MATERIAL:g} of its gradient"), []
    return Confirmation("refuted", resolution=decision.resolution), wrong


def _not_wrong(decision: Decision, lasting: int) -> Confirmation:
    """What is said where processes contradict each other, and nothing is wrong without that."""
    if UNSURE in decision.verdicts:
        return Confirmation("not confirmed", "the measurement can't tell")
    if lasting:
        return Confirmation("confirmed", DRAWS, decision.resolution)
    return Confirmation("not confirmed", "its answers depend on earlier calls")


# -- The call --------------------------------------------------------------------------------------
def _call(work: ConfirmWork) -> _Call:
    """What the worker sent, which may be anything, checked for what is read here."""
    try:
        request = json.loads(work.call.request)
        arrays = unpacked(request, b"".join(work.call.arrays))
        inputs, names = request["inputs"], request["names"]
        if len(inputs) != len(names) or not all(arrays[k].numel() >= 0 for k in inputs):
            raise ValueError("inputs without names")
    except (ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
        raise Unable(f"its call can't be read: {error}") from error
    request["seed"] = secrets.randbits(31)
    request["memory_mb"] = work.memory_mb
    request["environment"] = {
        name: value for name, value in os.environ.items() if not name.startswith("GRADLINT_")
    }
    request["folder"] = os.getcwd()
    return _Call(request, arrays, inputs, [str(name) for name in names])


def _ways(ref: OpRef, settings: Settings, made_in: str | None) -> Iterator[Any]:
    """Where the op's module can be imported from, the least recognisable place first: context
    managers that give what a request says of it.

    Args:
        made_in: see :class:`ConfirmWork`, ``folder``.
    """
    if ref.source == "spec":
        # Imported for specs alone: a single operator need not wait for pydantic.
        named = import_module("gradlint.spec.open").named_ref(ref, settings)
        if named is None:
            raise Unable("its spec names no operator that can be imported by itself")
        ref, settings = named
    imports = [os.path.abspath(i) if os.path.exists(i) else i for i in settings.imports]
    attribute = ref.attribute.split(".")
    file, name = ref.path, ref.path
    if ref.source == "module":
        found = find_module(ref.path)
        file = found.file if found and found.file and not found.folders else ""
        if "." in ref.path or not file:
            yield _as_named(ref.path, imports, attribute, [])
            return
    elif ref.source == "library":
        yield _as_named("torch", imports, ref.path.split(".")[1:], [])
        return
    place = place_of_file(file)
    name = place.name
    if place.in_package:
        yield _in_linked_package(made_in, place.root, name, imports, attribute)
        yield _as_named(name, imports, attribute, [place.root])
        return
    folders = [] if place.shadows else [place.root]
    yield _linked(made_in, os.path.abspath(file), imports, attribute, folders)
    yield _renamed(os.path.abspath(file), imports, attribute, folders)


@contextmanager
def _as_named(
    name: str, imports: list[str], attribute: list[str], folders: list[str]
) -> Iterator[dict[str, Any]]:
    """Under its own name."""
    yield _where(name, "", imports, attribute, folders, f"named {name}")


@contextmanager
def _renamed(
    file: str, imports: list[str], attribute: list[str], folders: list[str]
) -> Iterator[dict[str, Any]]:
    """In its own place, under another name."""
    yield _where(_new_name(), file, imports, attribute, folders, f"renamed {file}")


@contextmanager
def _linked(
    made_in: str | None, file: str, imports: list[str], attribute: list[str], folders: list[str]
) -> Iterator[dict[str, Any]]:
    """In another folder, under another name."""
    name = _new_name()
    with _folder(made_in) as folder:
        link = os.path.join(folder, f"{name}.py")
        _link(file, link)
        put_beside(file, link)
        yield _where(name, link, imports, attribute, folders, f"linked {file}")


@contextmanager
def _in_linked_package(
    made_in: str | None, root: str, name: str, imports: list[str], attribute: list[str]
) -> Iterator[dict[str, Any]]:
    """In another folder. Modules of a package keep the names by which they import each other."""
    top = name.partition(".")[0]
    with _folder(made_in) as folder:
        _link(os.path.join(root, top), os.path.join(folder, top))
        yield _where(name, "", imports, attribute, [folder])


def _where(
    name: str,
    file: str,
    imports: list[str],
    attribute: list[str],
    folders: list[str],
    key: str = "",
) -> dict[str, Any]:
    """What a request says of it.

    Args:
        key: the same for all operators of the module, wherever it is linked to; "" where what is
            imported needs the link for longer.
    """
    here = os.getcwd()
    rest = [path for path in sys.path if path and path not in (*folders, here)]
    return {
        "name": name,
        "file": file,
        "imports": imports,
        "attribute": attribute,
        "sys_path": [*folders, here, *rest],
        "key": key,
    }


def _new_name() -> str:
    return "".join(random.SystemRandom().choices("abcdefghijklmnopqrstuvwxyz", k=8))


@contextmanager
def _folder(made_in: str | None) -> Iterator[str]:
    try:
        folder = tempfile.mkdtemp(prefix="", dir=made_in)
    except OSError as error:
        raise Unable(f"a folder can't be made: {error}") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _link(old: str, new: str) -> None:
    try:
        os.symlink(old, new)
    except OSError as error:
        raise Unable(f"a link can't be made: {error}") from error


# -- The judgement ---------------------------------------------------------------------------------
@contextmanager
def _processes(call: _Call, lasting: int) -> Iterator[_Processes]:
    made = _Processes(call, lasting)
    try:
        made.start()
        yield made
    finally:
        made.close()


def _decision(call: _Call, lasting: int) -> Decision:
    """The gradients at values near the sample's, judged as GL401 does: first with all inputs moved
    together, and one by one where that does not settle it."""
    seed = secrets.randbits(62)
    kinds = KINDS if lasting else SINGLE_DIRECTION
    with _processes(call, lasting) as processes:
        function = _map(processes, call)
        decision = _decided(function, seed, kinds)
        if lasting == PROCESSES and not _doubtful(decision):
            processes.keep()
        return decision


def _decided(function: Map, seed: int, kinds: Sequence[str]) -> Decision:
    moved = [k for k, value in enumerate(function.values) if value.numel()]
    if not moved or not any(y.numel() for y in function.outputs):
        raise Unable("nothing of it can move")
    if len(moved) > 1:
        together = decide(merged(function, by_dtype(function, moved)), seed=seed, kinds=kinds)
        if not _doubtful(together):
            return together
    return decide(function, seed=seed, kinds=kinds, inputs=moved)


def _doubtful(decision: Decision) -> bool:
    """Whether anything differs, or can't be told."""
    return not {DIFFERS, UNSURE}.isdisjoint(decision.verdicts)


def _map(processes: _Processes, call: _Call) -> Map:
    """x ↦ f(x) over the differentiable outputs, at values near the sample's."""
    values = [_near(value) for value in call.values]
    try:
        outputs, chosen = _outputs(processes.next(), values)
    except Unable:
        outputs = []
    if not outputs or not all(all_finite(y) for y in outputs):
        values = call.values
        outputs, chosen = _outputs(processes.next(), values)
    if not outputs:
        raise Unable("no output that is differentiable")
    with suppress(Unable):
        processes.next().outputs([_near(value, ELSEWHERE) for value in values])

    def evaluate(point: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        try:
            found, _ = processes.next().outputs(point)
        except Unable:
            return None
        fits = len(found) > max(chosen) and all(
            found[k].shape == y.shape and found[k].dtype == y.dtype
            for k, y in zip(chosen, outputs, strict=True)
        )
        return [found[k] for k in chosen] if fits else None

    def pull_at(
        point: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        found = processes.any().gradients(point, cotangents)
        if not all(gradient is None or all_finite(gradient) for gradient in found):
            raise Unable("a gradient is not finite")
        return found

    return Map(values, outputs, evaluate, pull_at)


def _outputs(
    process: BareProcess, values: Sequence[torch.Tensor]
) -> tuple[list[torch.Tensor], list[int]]:
    """The differentiable outputs, and their positions among all."""
    found, flags = process.outputs(values)
    chosen = [k for k, flag in enumerate(flags) if flag]
    return [found[k] for k in chosen], chosen


def _near(value: torch.Tensor, most: float = NEARBY) -> torch.Tensor:
    """``value`` with every element moved by up to ``most`` of its size."""
    generator = torch.Generator().manual_seed(secrets.randbits(62))
    share = torch.rand(value.shape, generator=generator, dtype=torch.float64) * 2.0 - 1.0
    return value * (1.0 + most * share).to(value.real.dtype)


def _fewest(call: _Call) -> int | None:
    """How few lasting processes can compute one function: none if the first call of each returns
    the same; one if the module draws random numbers of its own when it is imported; None if every
    call returns something else."""
    values = [_near(value) for value in call.values]
    with _processes(call, 2) as processes:
        one, other, again = (processes.next().outputs(values)[0] for _ in range(3))
    if _all_same(one, other):
        return 0
    return 1 if _all_same(one, again) else None


def _all_same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return len(one) == len(other) and all(map(_same, one, other))


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not (one.is_floating_point() or one.is_complex()):
        return torch.equal(one, other)
    if one.dtype == torch.complex32:
        one, other = torch.view_as_real(one), torch.view_as_real(other)
    tolerance = SAME * torch.finfo(one.dtype).eps * float(one.abs().max()) if one.numel() else 0.0
    return torch.allclose(one, other, rtol=0.0, atol=tolerance, equal_nan=True)


def _disagreements(decisions: Sequence[Decision], names: Sequence[str]) -> Iterator[Disagreement]:
    """The clearest disagreement on each input that differs in the last of ``decisions``.

    Of an input of few elements the errors may cancel along a single direction: a gradient of three
    elements that is half too large was off by less than 0.001 along 3 of 1,000. So the largest
    error of all the draws counts: of each decision, and of what confirmed it.
    """
    for place, item in enumerate(decisions[-1].judgement.inputs):
        if decisions[-1].verdicts[place] != DIFFERS:
            continue
        pairs = [pair for one in decisions for pair in _pairs(one, item.index) if pair.differs]
        worst = max(pairs or [item.worst], key=lambda pair: pair.relative_error)
        yield Disagreement(
            names[item.index],
            float(worst.claimed),
            float(worst.measured),
            float(worst.bar),
            float(worst.relative_error),
        )


def _pairs(decision: Decision, index: int) -> Iterator[Pair]:
    """What was measured of input ``index`` at first, and to confirm it."""
    for judgement in (decision.judgement, decision.confirmed.get(index)):
        for item in judgement.inputs if judgement else ():
            if item.index == index:
                yield from item.pairs
