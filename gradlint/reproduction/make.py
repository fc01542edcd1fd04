"""In a worker: from a finding to its script."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from typing import Any

import torch

from gradlint.checking.examine import examine
from gradlint.checking.severity import as_loud_as_evidence
from gradlint.experiments.subject import Subject
from gradlint.model.events import Event
from gradlint.model.op import Op, OpRef
from gradlint.model.report import Finding, jsonable
from gradlint.model.rule import Outcome, Rule
from gradlint.model.sample import Sample, map_tensors
from gradlint.model.settings import Settings
from gradlint.ops.phase import phase
from gradlint.reproduction.compose import Operator, composed
from gradlint.reproduction.kinds import CHOOSING, ENDING, Shows, checks_of
from gradlint.reproduction.literal import Literals, NotWritten
from gradlint.reproduction.shrink import Shrunk, elements, shrunk
from gradlint.reproduction.torch_alone.case import Case, Defect
from gradlint.reproduction.wanted import NOT_SHOWN, Wanted
from gradlint.rules.catalogue import CATALOGUE
from gradlint.targets.importing import place_of_file
from gradlint.trace.global_state import preserved_state
from gradlint.trace.problem import Problem

#: Calls whose arguments are kept while a rule runs, and elements of each, at most.
MOST_CALLS, MOST_ELEMENTS = 400, 2**16


def script_for(
    op: Op,
    samples: Sequence[Sample],
    settings: Settings,
    ref: OpRef,
    wanted: Wanted,
    formulas: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The script as plain data: ``script`` its text, ``tensors`` what is kept beside it in base64;
    or ``why`` there is none.

    Args:
        formulas: of a specification that makes the operator, as ``torch_alone.formulas`` reads
            them.
    """
    if wanted.code in NOT_SHOWN:
        return {"why": NOT_SHOWN[wanted.code]}
    try:
        return _Making(op, settings, ref, wanted, formulas).made(samples)
    except NotWritten as reason:
        return {"why": str(reason)}


class _Making:
    """One script while it is made."""

    def __init__(
        self,
        op: Op,
        settings: Settings,
        ref: OpRef,
        wanted: Wanted,
        formulas: dict[str, Any] | None,
    ) -> None:
        self.op = op
        self.formulas = formulas
        self.settings = replace(settings, select=(wanted.code,))
        self.ref = ref
        self.wanted = wanted
        self.rule: Rule = next(rule for rule in CATALOGUE if rule.code == wanted.code)

    def made(self, samples: Sequence[Sample]) -> dict[str, Any]:
        operator = self._operator()
        ending = self.rule.code in ENDING
        seen = None if ending else self._seen_again(samples)
        sample, finding = seen or self._as_told(samples)
        found = None if ending else self._shown(sample, finding)
        if found is None:
            # What shows only once in a process has been seen: a fresh one will tell.
            check, result = (
                self._unseen(finding),
                Shrunk(sample, elements(sample), elements(sample), 0),
            )
        else:
            check, at = found
            result, finding, check = self._smallest(sample, finding, at, check)
        literals = Literals()
        case = self._case(result.sample)
        given = literals.of(case.given)
        script = composed(
            self._title(finding),
            check.source,
            operator,
            given,
            literals,
            case.names,
            self.settings.seed,
            self.wanted.file,
        )
        return {
            "script": script,
            "tensors": _packed(literals.kept),
            "before": result.before,
            "after": result.after,
            "trials": result.trials,
            "finding": self._told(finding, result.sample, case),
        }

    # -- the finding again ---------------------------------------------------------------------

    def _seen_again(self, samples: Sequence[Sample]) -> tuple[Sample, Finding] | None:
        """The arguments on which the rule makes the finding, and what it says there."""
        found: list[tuple[Sample, Finding]] = []

        def witness(subject: Subject, outcome: Outcome) -> None:
            found.extend((subject.sample, item) for item in outcome.findings)

        examine(self.op, samples, self.settings, _unheard, witness=witness)
        same = [pair for pair in found if self._same(pair[1])]
        here = [pair for pair in same if pair[1].sample == self.wanted.sample]
        return next(iter(here or same), None)

    def _as_told(self, samples: Sequence[Sample]) -> tuple[Sample, Finding]:
        """The arguments that are known, and the finding as it was told, which the rule does not
        make again here."""
        if not samples:
            raise NotWritten("the finding is not made again with the same seed")
        wanted = self.wanted
        with_label = [sample for sample in samples if sample.label == wanted.sample]
        finding = Finding(
            wanted.code,
            self.rule.name,
            self.rule.severity,
            wanted.message,
            wanted.cause,
            input=wanted.input,
            output=wanted.output,
        )
        return (with_label or list(samples))[0], finding

    def _unseen(self, finding: Finding) -> Shows:
        checks = checks_of(finding, self.settings.timeout)
        if not checks:
            raise NotWritten("no script shows findings of this rule")
        return checks[0]

    def _same(self, finding: Finding) -> bool:
        wanted = self.wanted
        return (finding.code, finding.input, finding.cause) == (
            wanted.code,
            wanted.input,
            wanted.cause,
        )

    def _finding_at(self, op: Op, sample: Sample) -> Finding | None:
        """What the rule says at ``sample``, if it is the same finding."""
        with phase("rule"), preserved_state():
            outcome = as_loud_as_evidence(self.rule.probe(Subject(op, sample, self.settings)))
        return next((item for item in outcome.findings if self._same(item)), None)

    # -- where torch alone shows it --------------------------------------------------------------

    def _shown(self, sample: Sample, finding: Finding) -> tuple[Shows, Sample] | None:
        """The first check that shows it, and on which arguments: the sample's, or others that the
        rule tried."""
        checks = checks_of(finding)
        places: tuple[Callable[[], list[Sample]], ...] = (
            lambda: [sample],
            lambda: self._tried_by_rule(sample),
        )
        for place in places:
            tried = place()
            for check in checks:
                for at in tried:
                    if self._looks(check, at) is not None:
                        return check, at
        return None

    def _looks(self, check: Shows, sample: Sample, like: Defect | None = None) -> Defect | None:
        """What ``check`` sees at ``sample``, if that is of the same kind as ``like``."""
        try:
            with phase("rule"), preserved_state(), _Silent():
                seen = check.look(self._case(sample))
        except Exception:  # of the operator at arguments that it does not take
            return None
        return seen if like is None or _kind_of(seen) == _kind_of(like) else None

    def _tried_by_rule(self, sample: Sample) -> list[Sample]:
        """The arguments of every call that the rule makes, each once, the smallest first."""
        kept: list[Sample] = []

        def watched(*args: Any, **kwargs: Any) -> Any:
            if len(kept) < MOST_CALLS and _size((args, kwargs)) <= MOST_ELEMENTS:
                kept.append(_as_sample(sample, args, kwargs))
            return self.op.call(*args, **kwargs)

        if self.op.module is not None:
            return []
        self._finding_at(replace(self.op, call=watched), sample)
        return sorted(kept, key=elements)

    # -- shrinking -----------------------------------------------------------------------------

    def _smallest(
        self, sample: Sample, finding: Finding, at: Sample, check: Shows
    ) -> tuple[Shrunk, Finding, Shows]:
        """The arguments shrunk, what the rule says there, and the check that shows it."""
        like = self._looks(check, at)
        if self.rule.code in CHOOSING or at is not sample:
            found = shrunk(at, lambda s: self._looks(check, s, like) is not None)
            return found, finding, check
        last: list[Finding] = [finding]

        def shows(candidate: Sample) -> bool:
            if self._looks(check, candidate, like) is None:
                return False
            there = self._finding_at(self.op, candidate)
            if there is None:
                return False
            last.append(there)
            return True

        result = shrunk(sample, shows)
        # The place is that of the shrunk arguments now.
        again = next((c for c in checks_of(last[-1]) if self._looks(c, result.sample, like)), check)
        return result, last[-1], again

    # -- what is written -------------------------------------------------------------------------

    def _case(self, sample: Sample) -> Case:
        """The operator on ``sample`` as scripts see it: arguments, keyword arguments, and the state
        of a module."""
        problem = Problem(self.op, sample, seed=self.settings.seed)
        names = [item.name for item in problem.inputs]
        call, module = self.op.call, self.op.module
        given: Any = (sample.args, sample.kwargs)
        if module is not None:
            state = {
                name: value.detach().clone().requires_grad_(name in problem.binding.parameters)
                for name, value in problem.binding.state().items()
            }
            given = (*given, state)

        def called(given: Any) -> Any:
            if module is None:
                return call(*given[0], **given[1])
            return torch.func.functional_call(module, given[2], given[0], given[1])

        case = Case(called, given, names, self.settings.seed)
        case.operator = call
        return case

    def _operator(self) -> Operator:
        """How a script finds the operator.

        Raises:
            NotWritten: it can't without gradlint.
        """
        op, ref = self.op, self.ref
        here = os.path.abspath(self.wanted.folder)
        folders = [os.path.relpath(os.getcwd(), here)]
        file = None
        name, module = ref.attribute, ref.path
        if self.formulas is not None:
            return self._by_formulas(self.formulas, here)
        if ref.source == "spec" or op.kind == "formula":
            raise NotWritten("its spec makes the operator, which needs gradlint")
        if ref.source == "library":
            module, name = "torch", ref.path.removeprefix("torch.")
        if ref.source == "file":
            place = place_of_file(ref.path)
            folders.insert(0, os.path.relpath(place.root, here))
            module = place.name
            if place.shadows or not all(part.isidentifier() for part in module.split(".")):
                file = os.path.relpath(os.path.abspath(ref.path), here)
        if any(name.endswith((".py", ".so", ".dll", ".dylib")) for name in self.settings.imports):
            raise NotWritten("--import names a file, which a script can't import by name")
        return Operator(
            tuple(dict.fromkeys(folders)),
            module,
            name,
            self._call_source(),
            file,
            tuple(self.settings.imports),
        )

    def _by_formulas(self, formulas: dict[str, Any], here: str) -> Operator:
        path = os.path.abspath(self.ref.path)
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        shown = os.path.relpath(path, here)
        call = "lambda given: operator(*given[0], **given[1])"
        return Operator((), "", "", call, shown, (), formulas, digest)

    def _call_source(self) -> str:
        op = self.op
        if op.function is not None:
            return "lambda given: operator.apply(*given[0], **given[1])"
        if op.module is None:
            return "lambda given: operator(*given[0], **given[1])"
        made = "operator"
        chosen = ", ".join(f"{k!a}: {Literals().of(v)}" for k, v in op.constructor.items())
        if self.ref.attribute and op.constructor:
            made = f"operator(**{{{chosen}}})"
        mode = "train" if op.module.training else "eval"
        return (
            "(lambda module: lambda given: torch.func.functional_call("
            "module, given[2], given[0], given[1]))("
            f"({made} if isinstance(operator, torch.nn.Module) is False and {bool(op.constructor)}"
            f" else operator() if isinstance(operator, type) else operator).{mode}())"
        )

    def _title(self, finding: Finding) -> str:
        lines = [f"{finding.code} {finding.message}, of {self.op.target}"]
        lines += [finding.cause_text] if finding.cause_text else []
        return "\n".join(lines)

    def _told(self, finding: Finding, sample: Sample, case: Case) -> dict[str, Any]:
        """What of a finding is about the arguments, at the shrunk ones."""
        shapes = [
            f"{item.name}: {'×'.join(map(str, item.shape)) or 'no dimensions'}"
            for item in sample.report(self.op.signature).args
            if item.shape is not None
        ]
        told: dict[str, Any] = jsonable(
            {
                "message": finding.message,
                "index": finding.index,
                "evidence": finding.evidence,
                "shapes": ", ".join(shapes),
            }
        )
        return told


def _unheard(_: Event) -> None:
    """Nobody is told."""


def _kind_of(defect: Defect | None) -> str:
    """What stays of a defect at other arguments: what is wrong, and the error where one is
    raised."""
    if defect is None:
        return ""
    told = f"{defect.what} {defect.got}" if "raises" in defect.what else defect.what
    return re.sub(r"\[[\d, ]*\]|\d+", "#", told)


class _Silent:
    """What the operator prints while arguments are tried is not shown."""

    def __enter__(self) -> None:
        self._out = redirect_stdout(io.StringIO())
        self._err = redirect_stderr(io.StringIO())
        self._out.__enter__()
        self._err.__enter__()

    def __exit__(self, *_: object) -> None:
        self._err.__exit__(None, None, None)
        self._out.__exit__(None, None, None)


def _size(value: Any) -> int:
    total = 0

    def count(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal total
        total += tensor.numel()
        return tensor

    map_tensors(value, count)
    return total


def _as_sample(sample: Sample, args: Any, kwargs: Any) -> Sample:
    """A call's arguments as a sample: what requires grad does there."""
    like = [t.requires_grad for _, t in sample.named_tensors(None)]
    found: list[torch.Tensor] = []

    def copy(tensor: torch.Tensor) -> torch.Tensor:
        made = tensor.detach().clone()
        place = len(found)
        found.append(made)
        floating = made.is_floating_point() or made.is_complex()
        wanted = tensor.requires_grad or (place < len(like) and like[place])
        return made.requires_grad_(wanted and floating)

    args, kwargs = map_tensors((args, kwargs), copy)
    return replace(sample, args=args, kwargs=kwargs, otherwise=None)


def _packed(kept: dict[str, torch.Tensor]) -> str:
    """The tensors as the file beside the script holds them, in base64; empty for none."""
    if not kept:
        return ""
    file = io.BytesIO()
    torch.save(kept, file)
    return base64.b64encode(file.getvalue()).decode()
