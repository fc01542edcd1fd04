"""What a probe is given: one op on one sample, with the measurements that rules share."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property
from typing import Any, TypeVar, get_args

from gradlint.base.clock import had_seconds
from gradlint.experiments.call_budget import Plan, decide_within
from gradlint.experiments.differentiable_maps import faulty_outputs, first_order
from gradlint.experiments.reproduce import reproduce
from gradlint.model.op import Op, comes_with_torch, is_of_torch
from gradlint.model.report import Excerpt, Finding, Grounds, Location, Severity, Where
from gradlint.model.rule import LargeExperiment, Rule
from gradlint.model.sample import Sample, SampleKind
from gradlint.model.settings import Settings
from gradlint.numerics.decide import Decision, decide
from gradlint.numerics.map import Map
from gradlint.numerics.products import all_finite
from gradlint.numerics.verdict import DIFFERS
from gradlint.targets import source
from gradlint.trace.coverage import Coverage
from gradlint.trace.problem import Problem
from gradlint.trace.record import RunRecord, record

T = TypeVar("T")

#: Experiments whose results hold so much memory that they are freed once no rule ahead needs them.
LARGE = frozenset(get_args(LargeExperiment))

#: The kind of a sample → where its findings are seen.
_WHERE_OF_SAMPLES: dict[SampleKind, Where] = {
    "same": "sample",
    "broadcast": "sample",
    "special": "special",
    "extreme": "extreme",
    "other-rank": "other-rank",
    "left-out": "left-out",
}


class Subject:
    """One op on one sample under one seed. Costly measurements are made once, when first asked
    for, and shared by the rules that read them.

    ``coverage`` notes what the instrumented run reaches of the user's code, if given.
    """

    def __init__(
        self, op: Op, sample: Sample, settings: Settings, coverage: Coverage | None = None
    ) -> None:
        self.op = op
        self.coverage = coverage
        self.sample = sample
        self.settings = settings
        self.seed = settings.seed
        self.problem = Problem(op, sample, seed=settings.seed)
        self.run_s = 0.0
        self.planned: Plan | None = None
        #: Inputs whose gradient is wrong by so little at the sample that it may be plainly wrong
        #: elsewhere only; they are judged there as if it were right here.
        self.barely_wrong: frozenset[int] = frozenset()
        self._results: dict[str, Any] = {}
        self._made: set[str] = set()

    def once(self, make: Callable[[Subject], T]) -> T:
        """What ``make(subject)`` returned when it was first asked for: a costly experiment is
        made once and shared by the rules that read it."""
        if make.__name__ not in self._results:
            self._results[make.__name__] = make(self)
            self._made.add(make.__name__)
        found: T = self._results[make.__name__]
        return found

    def made(self, experiment: str) -> bool:
        """Whether the experiment of this name was made (see :meth:`once`)."""
        return experiment in self._made

    def release(self, needed: Collection[str]) -> None:
        """Free the results of the experiments that are :data:`LARGE` and not ``needed``."""
        for experiment in LARGE - set(needed):
            self._results.pop(experiment, None)

    def affords(self, calls: int) -> bool:
        """Whether ``--max-calls`` leaves this many calls to experiments that are no numerics; what
        first and second order will take is kept back for them."""
        plan, problem = self.plan, self.problem
        if plan.budget is None:
            return True
        kept = 0 if self.first_order_is_known else plan.first_calls
        kept += 0 if self.made("differentiate_twice") else plan.reserved
        return calls <= plan.budget - kept - problem.forward_calls - problem.backward_calls

    def arguments(self) -> list[tuple[str, Any]]:
        """Every argument of the sample with its name, containers unpacked."""
        return list(self.sample.named_leaves(self.op.signature))

    def other_arguments(self) -> dict[str, Any]:
        """What the op got beside its differentiable inputs, by name: other tensors, numbers and
        strings, those that are left to their defaults too, and the public numbers that a module
        keeps as attributes."""
        inputs = {item.name for item in self.problem.inputs}
        found = {name: value for name, value in self.arguments() if name not in inputs}
        for name, parameter in self.op.signature.parameters.items() if self.op.signature else ():
            if isinstance(parameter.default, (int, float, str)):
                found.setdefault(name, parameter.default)
        for name, value in vars(self.op.module).items() if self.op.module is not None else ():
            if not name.startswith("_") and isinstance(value, (int, float)):
                found.setdefault(name, value)
        return {name: value for name, value in found.items() if not isinstance(value, bool)}

    @cached_property
    def run(self) -> RunRecord:
        """The instrumented run: one forward and one backward with everything recorded."""
        started = had_seconds()
        found = record(self.problem, self.coverage)
        if found.error is not None and self.problem.only_backward:
            found = record(self.problem)  # the graph was used up when .backward() followed .grad()
        self.run_s = had_seconds() - started
        return found

    @property
    def plan(self) -> Plan:
        """How many pairs a budget affords, as ``_examine`` planned it; all where it did not."""
        return self.planned or Plan()

    @cached_property
    def first_order_map(self) -> Map:
        """x ↦ f(x) over the differentiable outputs."""
        return first_order(self.problem)

    @cached_property
    def judged(self) -> list[int]:
        """Positions of the inputs that the measurement judges: those whose gradient is None by
        the op's own backward (GL103), not finite (GL302), or declared a surrogate are left out."""
        gradients = self.run.gradients
        declared = self.op.intent.surrogate or {}
        chosen = []
        for position, item in enumerate(self.problem.inputs):
            gradient = gradients[position] if gradients is not None else None
            if item.name in declared:
                continue
            if gradient is None:
                if self.run.own is None:
                    chosen.append(position)
            elif all_finite(gradient):
                chosen.append(position)
        return chosen

    @cached_property
    def first_order(self) -> Decision:
        """The confirmed judgement of the gradients of the inputs :attr:`judged`."""
        kinds, judged = self.plan.first, self.judged
        return decide_within(
            self.plan,
            self.problem,
            self.first_order_map,
            self.plan.reserved,
            lambda map: decide(map, seed=self.seed, kinds=kinds, inputs=judged),
        )

    @cached_property
    def of_torch(self) -> bool:
        """Whether the operator is a module or a Function of PyTorch's own, which no code of a
        user takes part in."""
        return is_of_torch(self.op) and all(comes_with_torch(n.function) for n in self.run.nodes)

    @property
    def first_order_is_known(self) -> bool:
        """Whether :attr:`first_order` was measured already."""
        return "first_order" in vars(self)

    @property
    def wrong_inputs(self) -> set[int]:
        """Positions of the inputs whose gradient GL401 finds wrong."""
        pairs = zip(self.first_order.judgement.inputs, self.first_order.verdicts, strict=True)
        return {item.index for item, verdict in pairs if verdict == DIFFERS}

    def faulty_outputs(self, position: int) -> list[str]:
        """The outputs whose gradient towards input ``position`` is wrong; none are named where
        there is a single output."""
        within = self.first_order.function  # as long as there is time
        return faulty_outputs(self.problem, within, position, seed=self.seed)

    def finding(
        self,
        rule: Rule,
        message: str,
        *,
        severity: Severity | None = None,
        cause: str | None = None,
        cause_text: str = "",
        input: str | None = None,
        output: str | None = None,
        index: list[int] | None = None,
        place: tuple[Location | None, Excerpt | None, list[Location]] | None = None,
        evidence: dict[str, Any] | None = None,
        help: str = "",
        grounds: Grounds | None = None,
    ) -> Finding:
        """A finding of ``rule`` on this subject, with its reproduction line filled in.

        Args:
            severity: the highest that the finding can have; default that of the rule.
            grounds: what the severity policy goes by; default a silent fault at this sample.
            place: where in the source, from ``gradlint.targets.source``; default the place where
                the op is defined.
        """
        location, excerpt, related = place or source.definition(self.op)
        return Finding(
            code=rule.code,
            name=rule.name,
            severity=severity or rule.severity,
            message=message,
            cause=cause,
            cause_text=cause_text,
            input=input,
            output=output,
            index=index,
            location=location,
            excerpt=excerpt,
            related=list(related),
            evidence=dict(evidence or {}),
            help=help,
            sample=self.sample.label,
            seed=self.seed,
            reproduce=reproduce(self.op.target, rule.code, self.settings, self.sample),
            grounds=self.grounds() if grounds is None else grounds,
        )

    def grounds(self, **known: Any) -> Grounds:
        """Grounds of a finding at this sample.

        Args:
            known: fields of :class:`gradlint.model.report.Grounds` that differ from the default.
        """
        if self.run.error is None and self.of_torch:
            known["torch_owned"] = True
        where = _WHERE_OF_SAMPLES[self.sample.kind]
        if where != "sample" and known.get("where", "sample") in ("sample", "other-size"):
            known["where"] = where
        if self.sample.backward_only:
            known["explained"] = known.get("explained") or "backward-only"
        if self.sample.guarded:
            known["explained"] = known.get("explained") or "guard"
        if self.sample.unmeant:
            known["explained"] = known.get("explained") or "broadcast"
        return Grounds(**known)
