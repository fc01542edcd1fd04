"""Events that contradict those before them are refused, and honest ones are not."""

from __future__ import annotations

import pytest

from gradlint.model.coverage import FunctionCoverage
from gradlint.model.events import (
    ANATOMY,
    FURTHER,
    Accepts,
    Anatomy,
    Begin,
    CheckDone,
    Confirmable,
    Covered,
    Event,
    Found,
    Further,
    Note,
    Predicted,
    Reguessed,
    Samples,
    Skip,
    TorchVerdictMade,
)
from gradlint.model.report import (
    MEMORY_RAN_OUT,
    Check,
    CheckVerdict,
    Finding,
    Location,
    Report,
    SampleReport,
    TargetReport,
    TorchVerdict,
    Tried,
)
from gradlint.model.settings import Settings
from gradlint.running._collect import Collector, Contradiction
from gradlint.running.events import Done, Loaded, Result

SETTINGS = Settings(select=("GL003", "GL101"))

LOADED = Loaded("function", None)
SAMPLES = Samples([SampleReport("s", "given"), SampleReport("t", "given")])


def ran(code: str, sample: str) -> list[Event]:
    return [Begin(code, sample), CheckDone(Check(code, "pass", sample))]


FINDING = Found(Finding("GL003", "n", "error", "m"))
ALL = [*ran("GL003", "s"), *ran("GL101", "s"), *ran("GL003", "t"), *ran("GL101", "t")]
START: list[Event] = [LOADED, SAMPLES]
CALL = Confirmable("s", "why not", "", [])
END: list[Event] = [CALL, Done()]


def collector(*events: Event) -> Collector:
    made = Collector(TargetReport("t"), SETTINGS)
    for event in events:
        made.take(event)
    return made


HONEST: dict[str, list[Event]] = {
    "all rules on all samples": [*START, *ALL, *END],
    "a finding, and a note": [*START, Begin("GL003", "s"), *ALL[1:2], FINDING, Note("x")],
    "a rule that looks at the first sample": [
        *START,
        *ALL[:4],
        *ran("GL003", "t"),
        Skip("GL101", "looks at the first sample only"),
        *END,
    ],
    "work beside the rules": [
        *START,
        Begin("GL003", "s"),
        Predicted([]),
        *ALL[1:2],
        Begin("anatomy", "s"),
        Anatomy([]),
        Begin("gradcheck", "s"),
        TorchVerdictMade("gradcheck", TorchVerdict("fast", "pass")),
    ],
    "further samples, and rules on one of them": [
        *START,
        *ALL,
        Begin("further sample", "with n=2"),
        Further(Tried("with n=2", "right")),
        Begin("further sample", "with n=3"),
        Further(Tried("with n=3", "wrong"), SampleReport("with n=3", "inferred")),
        *ran("GL101", "with n=3"),
        *END,
    ],
    "another guess, on which all rules run again": [
        *START,
        *ALL,
        Begin("further sample", "another"),
        Further(Tried("another", "right")),
        Reguessed(SampleReport("t", "inferred"), "why"),
        *ALL[4:],
        *END,
    ],
    "coverage between checks": [*START, *ALL[:2], Covered([], [], ""), *ALL[2:4]],
    "two samples of one label": [
        Samples([SampleReport("s", "given"), SampleReport("s", "given")]),
        *ran("GL003", "s"),
        *ran("GL003", "s"),
    ],
}


@pytest.mark.parametrize("events", HONEST.values(), ids=HONEST)
def test_what_can_be_is_taken(events: list[Event]) -> None:
    collector(*events)


FORGED: dict[str, tuple[list[Event], Event, str]] = {
    "a check that never began": (START, CheckDone(Check("GL003", "pass", "s")), "not running"),
    "another rule's check": (
        [*START, Begin("GL003", "s")],
        CheckDone(Check("GL101", "pass", "s")),
        "GL101, which was not running",
    ),
    "another sample's check": (
        [*START, Begin("GL003", "s")],
        CheckDone(Check("GL003", "pass", "t")),
        "not running",
    ),
    "a second check": ([*START, *ALL[:2]], ALL[1], "not running"),
    "a check that begins again": ([*START, *ALL[:2]], ALL[0], "a second time"),
    "a check within another": (
        [*START, ALL[0]],
        ALL[2],
        "before GL003 on sample s came to its end",
    ),
    "a rule that is not selected": (START, Begin("GL401", "s"), "not selected"),
    "a rule that does not exist": (START, Begin("GL999", "s"), "not selected"),
    "a sample that does not exist": (START, Begin("GL003", "u"), "not one of the samples"),
    "a check before the samples": ([LOADED], Begin("GL003", "s"), "not one of the samples"),
    "other samples": (START, SAMPLES, "Samples a second time"),
    "another kind": (START, LOADED, "Loaded a second time"),
    "a finding of nothing": (START, FINDING, "while no rule was running"),
    "a look at nothing": (START, Further(Tried("u", "right")), "not running"),
    "a look at another sample": (
        [*START, Begin("further sample", "u")],
        Further(Tried("v", "right")),
        "not running",
    ),
    "a second look": (
        [*START, Begin("further sample", "u"), Further(Tried("u", "right"))],
        Begin("further sample", "u"),
        "a second time",
    ),
    "a rule on a sample that was right": (
        [*START, Begin("further sample", "u"), Further(Tried("u", "right"))],
        Begin("GL101", "u"),
        "not one of the samples",
    ),
    "a look before the samples": (
        [LOADED],
        Begin("further sample", "u"),
        "not one of the samples",
    ),
    "another guess for no sample": (
        START,
        Reguessed(SampleReport("u", "inferred"), "why"),
        "in place of sample u",
    ),
    "another guess within a check": (
        [*START, ALL[0]],
        Reguessed(SampleReport("s", "inferred"), "why"),
        "in place of sample s",
    ),
    "a third guess": (
        [*START, *ALL, Reguessed(SampleReport("s", "inferred"), "why")],
        Reguessed(SampleReport("s", "inferred"), "why"),
        "a second time",
    ),
    "the end before a new guess was examined": (
        [*START, *ALL, Reguessed(SampleReport("s", "inferred"), "why")],
        Done(),
        "before GL003, GL101 had run",
    ),
    "an anatomy of nothing": (START, Anatomy([]), "not running"),
    "a skip of an unknown rule": (START, Skip("GL401", "why"), "skip GL401, which is not selected"),
    "the end without samples": ([LOADED], Done(), "before any sample"),
    "the end within a check": ([*START, ALL[0]], Done(), "during GL003 on sample s"),
    "an early end": ([*START, *ALL[:6]], Done(), "before GL101 had run"),
    "a second end": ([*START, *ALL, *END], Done(), "after the end"),
    "a note after the end": ([*START, *ALL, *END], Note("x"), "after the end"),
    "the end without a call": ([*START, *ALL], Done(), "before the call that is to be confirmed"),
    "a second call": ([*START, CALL], CALL, "a second time"),
    "coverage before the samples": ([LOADED], Covered([], [], ""), "before any sample"),
    "coverage within a check": ([*START, ALL[0]], Covered([], [], ""), "while a rule was running"),
    "an event of another job": (START, Result(1), "which no check sends"),
}


@pytest.mark.parametrize(("before", "event", "words"), FORGED.values(), ids=FORGED)
def test_what_can_not_be_is_refused(before: list[Event], event: Event, words: str) -> None:
    made = collector(*before)
    with pytest.raises(Contradiction, match=words):
        made.take(event)


def test_the_next_worker_goes_on_where_the_last_one_crashed() -> None:
    made = collector(*START, *ALL[:2], Begin("GL101", "s"))
    made.give_up_current()
    made.next_worker()
    for event in [*START, *ALL[4:], *END]:
        made.take(event)
    assert [(check.code, check.sample) for check in made.report.checks] == [
        ("GL003", "s"),
        ("GL003", "t"),
        ("GL101", "t"),
    ]


def test_further_samples_of_a_worker_that_crashed_stay() -> None:
    made = collector(
        *START,
        *ALL,
        Begin("further sample", "u"),
        Further(Tried("u", "wrong"), SampleReport("u", "inferred")),
        Begin("further sample", "v"),
    )
    made.give_up_current()
    made.next_worker()
    made.take(SAMPLES)
    assert {("further sample", "u"), ("further sample", "v")} <= made.done
    assert [sample.label for sample in made.report.samples] == ["s", "t", "u"]
    assert [(item.label, item.verdict) for item in made.report.tried] == [("u", "wrong")]


def test_memory_that_ran_out_beside_an_op_that_ran_is_noted() -> None:
    made = collector(*START, *ran("GL003", "s"), Begin("GL101", "t"))
    assert made.memory_ran_out()
    assert made.report.checks[-1] == Check("GL101", "inconclusive", "t", note=MEMORY_RAN_OUT)
    made = collector(*START, *ALL, Begin(FURTHER, "with n=2"))
    assert made.memory_ran_out()
    assert made.report.notes == ["not tried with n=2: memory ran out"]


def test_an_op_that_raised_later_leaves_its_rule_undecided() -> None:
    made = collector(*START, Begin("GL003", "s"))
    made.op_raised("forward", "ValueError: no")
    note = "forward raised ValueError: no in a later call"
    assert made.report.checks == [Check("GL003", "inconclusive", "s", note=note)]
    for begun, told in (
        (START, note),
        ([*START, *ALL, Begin(ANATOMY, "s")], note),
        ([*START, *ALL, Begin(FURTHER, "with n=2")], f"not tried with n=2: {note}"),
    ):
        made = collector(*begun)
        made.op_raised("forward", "ValueError: no")
        assert made.report.notes == [told]
        assert all(check.verdict == "pass" for check in made.report.checks)


def test_memory_that_ran_out_before_an_op_ran_may_be_its_fault() -> None:
    made = collector(*START, Begin("GL003", "s"))
    assert not made.memory_ran_out()
    assert made.report.checks == []


def test_what_was_found_at_a_guess_that_gives_way_is_forgotten() -> None:
    wrong = Finding("GL003", "n", "error", "m", sample="t")
    kept = Finding("GL101", "n", "error", "m", sample="s")
    made = collector(*START, *ALL[:2], ALL[2], Found(kept), ALL[3], ALL[4], Found(wrong), *ALL[5:])
    made.take(Reguessed(SampleReport("t", "inferred", notes=["other"]), "why"))
    assert made.report.findings == [kept]
    assert {check.sample for check in made.report.checks} == {"s"}
    assert made.report.notes == ["why"]
    assert made.done == {("GL003", "s"), ("GL101", "s"), ("guessed otherwise", "t")}
    assert [sample.notes for sample in made.report.samples] == [[], ["other"]]


def test_results_of_a_worker_that_is_not_trusted_are_dropped() -> None:
    made = collector(*START, *ALL[:2])
    made.next_worker()
    for event in [*START, *ALL[2:4]]:
        made.take(event)
    made.distrust()
    assert [check.code for check in made.report.checks] == ["GL003"]


def test_a_job_that_says_why_may_end_early() -> None:
    made = collector(LOADED)
    made.excuse()
    made.take(Done())


def test_what_several_workers_reached_is_put_together() -> None:
    def covered(ran: list[int], *values: str) -> Covered:
        function = FunctionCoverage("a.py", "backward", "backward", [3, 4, 5], ran)
        return Covered([function], list(values), "")

    made = collector(*START, *ALL[:2], covered([3], "stride != 1"))
    made.take(covered([3, 4], "stride != 1", "p != 2"))
    made.next_worker()
    for event in [*START, *ALL[2:], covered([3], "stride != 1"), *END]:
        made.take(event)
    made.report.location = Location("a.py", 1)
    report = made.finish()
    assert report.not_tried == ["stride != 1", "line 5"]
    assert (report.coverage["backward"].lines, report.coverage["backward"].missed) == (2, [5])
    assert report.uncovered


@pytest.mark.parametrize(
    ("verdict", "note", "expected"),
    [
        (
            "pass",
            "smaller sizes; further sizes are left out: 25% of --timeout 60 are spent",
            ["further sizes (25% of --timeout 60 are spent)"],
        ),
        ("pass", "not tried: too slow at 31 × 33", ["too slow at 31 × 33"]),
        ("pass", "forward accepts no other sizes", []),
        # What was skipped as a whole is listed among what could not run.
        ("skipped", "further sizes are left out: beyond --max-calls 20", []),
    ],
)
def test_what_a_check_that_passed_had_no_time_for_was_not_tried(
    verdict: CheckVerdict, note: str, expected: list[str]
) -> None:
    done = [Begin("GL101", "s"), CheckDone(Check("GL101", verdict, "s", note=note))]
    report = collector(*START, *ALL[:2], *done, *ALL[4:], *END).finish()
    assert report.not_tried == expected
    assert not report.uncovered


@pytest.mark.parametrize(
    ("select", "note", "expected"),
    [
        (("GL803",), "needs cuda: not available here", "inconclusive"),
        (("GL803",), "ignored by the op: known", "skipped"),
        (("GL803",), "accepted in ops.py:3:1", "skipped"),
        (None, "needs cuda: not available here", "skipped"),
    ],
)
def test_a_selected_rule_that_could_not_run_is_inconclusive(select, note, expected) -> None:
    made = Collector(TargetReport("t"), Settings(seed=1, select=select), complete=False)
    made.report.checks = [Check("GL803", "skipped", note=note)]
    report = made.finish()
    assert report.verdict == expected
    assert Report([report]).exit_code == 5


def test_a_worker_can_not_say_that_a_finding_is_in_the_baseline() -> None:
    forged = Finding("GL003", "n", "error", "m", baselined=True)
    made = collector(*START, ALL[0], ALL[1], Found(forged))
    assert not made.report.findings[0].baselined


def test_what_is_accepted_is_said_once_and_not_by_untrusted_code() -> None:
    made = collector(Accepts({"GL6": "by contract"}), *START)
    assert made.report.accepts == {"GL6": "by contract"}
    with pytest.raises(Contradiction, match="Accepts a second time"):
        made.take(Accepts({}))
    confined = Collector(TargetReport("t"), Settings(untrusted=True))
    with pytest.raises(Contradiction, match="not trusted"):
        confined.take(Accepts({"GL4": ""}))


def test_what_checks_of_many_operators_say_is_held_once() -> None:
    """As they come from workers, equal texts are different objects."""
    notes = ["".join(["not ", "here"]) for _ in range(2)]
    assert notes[0] is not notes[1]
    reports = []
    for note in notes:
        events = [Begin("GL003", "s"), CheckDone(Check("GL003", "skipped", "s", note=note))]
        made = collector(*START, *events)
        reports.append(made.finish())
    (one,), (other,) = (report.checks for report in reports)
    assert one.note == "not here"
    assert one.note is other.note
