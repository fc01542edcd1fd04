"""What a probe is given: one op on one sample, with the measurements that rules share."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from gradlint.experiments.baseline_comparison import Baseline, make_baseline
from gradlint.experiments.call_budget import decide_within
from gradlint.experiments.differentiable_maps import faulty_outputs, first_order
from gradlint.experiments.finite.extremes import Extremes, make_extremes
from gradlint.experiments.order.second_order import Twice, differentiate_twice
from gradlint.experiments.plan import Plan
from gradlint.experiments.reproduce import reproduce
from gradlint.experiments.state.guarded_run import Guarded, declared_writes, guard
from gradlint.experiments.state.inplace_after_forward import Tail, change_outputs
from gradlint.experiments.state.lifetimes import Lifetime, live_and_die
from gradlint.model.op import Op
from gradlint.model.report import Excerpt, Finding, Location
from gradlint.model.rule import Rule
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.numerics.decide import Decision, decide
from gradlint.numerics.map import Map
from gradlint.numerics.products import all_finite
from gradlint.targets import source
from gradlint.trace.problem import Problem
from gradlint.trace.record import RunRecord, record

#: Large measurements → the rules that read them.
READERS = {
    "extremes": ("GL301", "GL302", "GL402"),
    "twice": ("GL501", "GL502", "GL503"),
}


class Subject:
    """One op on one sample under one seed. Costly measurements are made once, when first asked
    for, and shared by the rules that read them."""

    def __init__(self, op: Op, sample: Sample, settings: Settings) -> None:
        self.op = op
        self.sample = sample
        self.settings = settings
        self.seed = settings.seed
        self.problem = Problem(op, sample, seed=settings.seed)
        self.run_s = 0.0
        self.planned: Plan | None = None
        self._gone: set[str] = set()

    def has(self, measurement: str) -> bool:
        """Whether ``measurement``, the name of one of the properties below, was made."""
        return measurement in vars(self) or measurement in self._gone

    def let_go(self, ahead: Iterable[str]) -> None:
        """Free the memory of measurements that none of the rules ``ahead`` reads."""
        codes = set(ahead)
        for measurement, readers in READERS.items():
            if measurement in vars(self) and codes.isdisjoint(readers):
                delattr(self, measurement)
                self._gone.add(measurement)

    def arguments(self) -> list[tuple[str, Any]]:
        """Every argument of the sample with its name, containers unpacked."""
        return list(self.sample.named_leaves(self.op.signature))

    @cached_property
    def run(self) -> RunRecord:
        """The instrumented run: one forward and one backward with everything recorded."""
        started = time.perf_counter()
        found = record(self.problem)
        if found.error is not None and self.problem.only_backward:
            found = record(self.problem)  # the graph was used up when .backward() followed .grad()
        self.run_s = time.perf_counter() - started
        return found

    @cached_property
    def baseline(self) -> Baseline | None:
        """What the op returns when nothing is altered, for comparisons of the op with itself;
        None where it raised, or has sparse inputs."""
        return make_baseline(self)

    @cached_property
    def extremes(self) -> Extremes:
        """The op at zeros, ties, large and tiny values, for the rules that look there."""
        return make_extremes(self)

    @cached_property
    def guarded(self) -> Guarded:
        """One forward and two or three backwards in which nothing may be written to."""
        return guard(self.problem, self.run.cotangents, declared_writes(self.op))

    @cached_property
    def lifetime(self) -> Lifetime | None:
        """What outlives a call of the op; None where it raised."""
        return live_and_die(self.problem, self.run.cotangents)

    @cached_property
    def tail(self) -> Tail:
        """What an in-place operation on the outputs does; needs a :attr:`baseline`."""
        assert self.baseline is not None
        return change_outputs(self.problem, self.baseline)

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
    def twice(self) -> Twice:
        """One attempt to differentiate twice, judged."""
        return differentiate_twice(self)

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
        severity: str | None = None,
        cause: str | None = None,
        cause_text: str = "",
        input: str | None = None,
        output: str | None = None,
        index: list[int] | None = None,
        place: tuple[Location | None, Excerpt | None, list[Location]] | None = None,
        evidence: dict[str, Any] | None = None,
        help: str = "",
    ) -> Finding:
        """A finding of ``rule`` on this subject, with its reproduction line filled in.

        Args:
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
        )
