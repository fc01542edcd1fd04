from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from gradlint.model.coverage import PhaseCoverage
from gradlint.model.report import (
    Accepted,
    Argument,
    Check,
    Confirmation,
    Finding,
    Location,
    Report,
    SampleReport,
    TargetReport,
    TorchVerdict,
)
from gradlint.report import wording
from gradlint.report.render import render


def test_at_80_columns(report: Report, page: SnapshotAssertion) -> None:
    assert render(report, width=80) == page


def test_at_40_columns(report: Report, page: SnapshotAssertion) -> None:
    assert render(report, width=40) == page


def test_at_40_columns_only_paths_and_the_command_are_wider(report: Report) -> None:
    wide = [
        line for line in render(report, width=40, verbose=1).splitlines() if cell_len(line) > 40
    ]
    assert {line.split()[0] for line in wide} == {
        "examples/wrong/linear.py:SquareWeight",
        "gradlint",
    }


def test_verbose_adds_anatomy_and_checks(
    failing_target: TargetReport, page: SnapshotAssertion
) -> None:
    text = render(Report([failing_target], seed=1), width=80, verbose=1)
    assert text[text.index("  anatomy") : text.index("The operator fails")] == page


def test_the_command_is_one_line_at_any_width(report: Report) -> None:
    command = report.findings[0].reproduce
    for width in (1, 20, 40, 60, 80, 200):
        lines = render(report, width=width).splitlines()
        assert any(line.endswith(command) for line in lines), width


@pytest.mark.parametrize("width", [1, 16, 20, 33, 40, 59, 60, 80, 300])
@pytest.mark.parametrize("verbose", [0, 1])
def test_no_word_is_lost_at_any_width(report: Report, width: int, verbose: int) -> None:
    text = "".join(render(report, width=width, verbose=verbose).split())
    for word in (
        "`weight`",
        "-0.812041",
        "2.1e+00",
        "transposed:",
        "holdsnooperator",
        "8315",
        "3e-10",
    ):
        assert word in text


@pytest.mark.parametrize(
    "text",
    [
        "[5]",
        "[red]",
        "[/]",
        "[bold]x[/bold]",
        ":smile:",
        "{0} %s",
        "<b>&amp;",
        "`",
        "\\[x]",
        "a_b*c*",
    ],
)
def test_users_texts_are_no_markup(hostile: Callable[[str], Report], text: str) -> None:
    plain = render(hostile(text), width=300)
    assert plain.count(text) > 20
    for line in ("  cause      ", "  help       ", "  original   ", "  reproduce  "):
        assert f"\n{line}{text}\n" in plain


def test_control_characters_are_shown_not_obeyed(hostile: Callable[[str], Report]) -> None:
    for color in (False, True):
        text = render(
            hostile("a\x1b[31mb\x07\u202e\r\u2028\ud800c"), width=300, verbose=1, color=color
        )
        shown = text if not color else text.replace("\x1b[0m", "")
        assert "a\\x1b[31mb\\x07\\u202e" in shown
        assert "\\ud800c" in shown
        assert not set(text) & set("\x07\u202e\u2028\r\ud800")
        assert color or "\x1b" not in text
        assert text.encode()


@pytest.mark.parametrize(
    "text", ["", "\n", "\n\n x \n", "\t", " " * 200, "x" * 5000, "é" * 50, "你" * 60]
)
@pytest.mark.parametrize("width", [1, 20, 40, 80])
def test_odd_texts_do_not_crash(hostile: Callable[[str], Report], text: str, width: int) -> None:
    for ascii in (False, True):
        shown = render(hostile(text), width=width, ascii=ascii, verbose=1)
        assert shown.endswith("seed 0\n")
        assert shown.isascii() or not ascii


def test_ascii_prints_nothing_else(report: Report) -> None:
    report.targets[1].findings[0].help = "use x² – not “x”…"
    text = render(report, width=80, ascii=True, verbose=1)
    assert text.isascii()
    assert 'help       use x\\xb2 - not "x"...' in text


def test_colour_changes_no_letter(report: Report) -> None:
    from rich.text import Text

    colored = render(report, width=80, color=True)
    assert "\x1b[1;31mGL401\x1b[0m" in colored
    assert Text.from_ansi(colored).plain.rstrip() == render(report, width=80).rstrip()


def test_severity_is_said_unless_it_is_an_error() -> None:
    warning = Finding("GL302", "x", "warning", "something odd", help="look")
    info = Finding("GL503", "y", "info", "first order only", reproduce="gradlint check x")
    report = Report([TargetReport("m:Op", "function", "fail", findings=[warning, info])])
    text = render(report, width=80)
    assert "m:Op  GL302 warning  something odd\n" in text
    assert "m:Op  GL503 info  first order only\n" in text
    assert "fail   m:Op  (function)  1 warning, 1 info finding\n" in text
    assert "1 info finding below --fail-on warning does not fail the run." in text


def test_an_info_is_brief_unless_verbose() -> None:
    info = Finding("GL503", "y", "info", "first order only", reproduce="gradlint check x")
    report = Report([TargetReport("m:Op", "function", "pass", findings=[info])])
    assert "reproduce" not in render(report, width=80)
    assert "  reproduce  gradlint check x\n" in render(report, width=80, verbose=1)


def test_a_passing_target_is_one_line(
    page: SnapshotAssertion, passing_target: TargetReport
) -> None:
    assert render(Report([passing_target], seed=4), width=110) == page


def test_disagreement_is_told_of_a_passing_target(passing_target: TargetReport) -> None:
    passing_target.gradcheck = TorchVerdict("fast", "fail", "mismatch", "gradlint is right: noise")
    text = render(Report([passing_target]), width=80)
    assert "  gradcheck      fast: fails; gradlint is right: noise\n" in text
    assert "                 mismatch\n" in text


@pytest.mark.parametrize(
    ("found", "verbose", "words"),
    [
        (Confirmation("not confirmed", "an argument\x1b[2J"), 0, "not confirmed: an argument"),
        (Confirmation("confirmed", "", 1e-9, 11, 3, 0.02), 0, None),
        (
            Confirmation("confirmed", "", 1e-9, 11, 3, 0.02),
            1,
            "confirmed; 11 forward calls, 3 backward; 20 ms",
        ),
    ],
)
def test_what_a_pass_does_by_itself(
    passing_target: TargetReport, found: Confirmation, verbose: int, words: str | None
) -> None:
    passing_target.confirmation = found
    text = render(Report([passing_target]), width=100, verbose=verbose)
    shown = [line for line in text.splitlines() if "by itself" in line]
    assert len(shown) == (words is not None)
    assert all(words in line and "\x1b" not in line for line in shown)


def test_inconclusive_is_said_plainly(page: SnapshotAssertion) -> None:
    target = TargetReport(
        "m:Op",
        "function",
        "inconclusive",
        checks=[Check("GL401", "inconclusive", "spec", note="noise of some 1e-2", dtype="float32")],
    )
    assert render(Report([target], seed=2), width=80) == page


def test_many_samples_are_cut_short_but_not_those_with_findings() -> None:
    samples = [SampleReport(f"N={n}", "spec", [Argument("x", [n], "float32")]) for n in range(9)]
    finding = Finding("GL401", "wrong_gradient", "error", "wrong", sample="N=7")
    target = TargetReport("m:Op", "function", "fail", samples, [], [finding])
    text = render(Report([target]), width=80)
    assert "  inputs     from the spec, N=3: x float32[3]" in text
    assert "N=4" not in text
    assert "  inputs     from the spec, N=7: x float32[7]" in text
    assert "             and 4 more samples (-v shows them)\n" in text
    assert "  sample     N=7\n" in text
    assert "N=4" in render(Report([target]), width=80, verbose=1)


def test_inputs_that_do_not_require_grad_are_told() -> None:
    args = [
        Argument("x", [2], "float64", "cuda:0", requires_grad=True),
        Argument("y", [2], "float64"),
    ]
    target = TargetReport("m:Op", "function", "fail", [SampleReport("a", "--inputs", args)])
    text = render(Report([target]), width=80)
    assert "  inputs     --inputs: x float64[2], y float64[2] on cuda:0; gradients of x\n" in text


def test_an_exception_keeps_its_words_and_lines() -> None:
    original = "RuntimeError: " + "very long words " * 10 + "\n  indented [second] line"
    finding = Finding("GL003", "x", "error", "forward raised", evidence={"original": original})
    text = render(Report([TargetReport("m:Op", findings=[finding], verdict="error")]), width=40)
    assert original.split("\n")[0].rstrip() in text
    assert "\n      indented [second] line\n" in text


def test_long_output_is_cut_and_says_so() -> None:
    finding = Finding(
        "GL005",
        "x",
        "error",
        "crashed",
        evidence={"output_tail": [f"line {n}" for n in range(40)], "traceback": "a\nb"},
    )
    report = Report([TargetReport("m:Op", findings=[finding], verdict="error")])
    text = render(report, width=80)
    assert "  printed    … 30 more lines (-v shows them)\n             line 30\n" in text
    assert "  traceback  a\n             b\n" in text
    assert "line 0\n" in render(report, width=80, verbose=1)


def test_places_outside_the_excerpt_are_listed() -> None:
    finding = Finding(
        "GL401",
        "x",
        "error",
        "wrong",
        location=Location("a.py", 3),
        related=[Location("b.py", 7, 5)],
    )
    text = render(Report([TargetReport("m:Op", findings=[finding], verdict="fail")]), width=80)
    assert "a.py:3:1  GL401  wrong\n  see also   b.py:7:5\n" in text


def test_numbers_that_are_no_numbers() -> None:
    elements = [
        {"index": [0], "returned": float("nan"), "measured": 1e-9, "error": float("inf")},
        {"index": [], "returned": "1+2j", "measured": None, "error": 3e20},
    ]
    finding = Finding(
        "GL302", "x", "error", "NaN", evidence={"elements": elements, "worst_z": float("inf")}
    )
    text = render(Report([TargetReport("m:Op", findings=[finding], verdict="fail")]), width=80)
    assert (
        "  measured   worst elements\n"
        "             index  returned      measured    error\n"
        "             [0]         nan  +1.00000e-09      inf\n"
        "             []         1+2j                3.0e+20\n"
    ) in text


def test_nothing_and_interrupted(page: SnapshotAssertion) -> None:
    assert render(Report(seed=3), width=80) == "Nothing was checked.\nseed 3\n"
    text = render(Report([TargetReport("m:Op")], seed=3, interrupted=True), width=80)
    assert text == page


def test_resolving_power_by_dtype_and_device() -> None:
    checks = [
        Check("GL401", "pass", resolution=2e-10, dtype="float64", device="cpu"),
        Check("GL401", "pass", resolution=5e-4, dtype="float32", device="cuda"),
        Check("GL501", "pass", resolution=1e-3, dtype="float32", device="cuda"),
        Check("GL501", "fail", resolution=1.0, dtype="float32", device="cuda"),
    ]
    text = render(Report([TargetReport("m:Op", "function", "fail", checks=checks)]), width=120)
    assert (
        "3 checks passed, resolving power 2e-10 (float64, cpu); "
        "1e-3 at worst, 5e-4 at best (float32, cuda)."
    ) in text


def test_skipped_reasons_are_grouped_and_cut_short() -> None:
    checks = [
        Check(f"GL{n}", "skipped", note=f"left out: {n % 8}", name="rule") for n in range(100, 116)
    ]
    target = TargetReport("m:Op", "function", "pass", checks=checks)
    text = render(Report([target]), width=80)
    assert "  2 checks (GL100 rule, GL108 rule): left out: 4\n" in text
    assert "  and 2 more reasons (-v shows them)\n" in text
    assert "more reasons" not in render(Report([target]), width=80, verbose=1)


def test_what_does_not_apply_is_no_skip_worth_a_line() -> None:
    checks = [
        Check("GL401", "pass", name="wrong_gradient"),
        Check("GL403", "skipped", note="no Python Function with a jvp of its own", name="jvp"),
        Check("GL706", "skipped", note="odd; not tried: too slow at 31 × 33", name="odd_sizes"),
    ]
    target = TargetReport("m:Op", "function", "pass", checks=checks)
    text = render(Report([target]), width=80)
    assert "jvp" not in text
    assert "Skipped: 1 check (GL706 odd_sizes): odd; not tried: too slow at 31 × 33\n" in text
    assert "1 check (GL403 jvp): no Python" in render(Report([target]), width=80, verbose=1)
    # Where nothing ran, it is said why.
    nothing = TargetReport("m:Op", "function", "skipped", checks=checks[1:2])
    text = render(Report([nothing]), width=80)
    assert "Skipped: 1 check (GL403 jvp): no Python Function with a jvp of its own\n" in text


def test_accepted_findings_are_counted() -> None:
    accepted = [Accepted("GL604", "GL6", "the cache is meant to live")]
    note = "ignored by the op: the cache is meant to live"
    checks = [
        Check("GL401", "pass"),
        Check("GL604", "skipped", note=note, accepted=accepted, name="tensor_kept_on_ctx"),
    ]
    target = TargetReport("m:Op", "function", "pass", checks=checks)
    text = " ".join(render(Report([target]), width=80).split())
    assert (
        "1 finding is accepted by comments, operators or specs (GL604 tensor_kept_on_ctx); "
        "-v shows why."
    ) in text
    assert note not in text
    assert note in " ".join(render(Report([target]), width=80, verbose=1).split())


def test_a_reason_that_names_what_was_skipped_stands_alone() -> None:
    skipped = {"cuda": "checks on cuda: not available here", "a.py": "holds no operator"}
    text = render(Report([TargetReport("m:Op")], skipped=skipped), width=80)
    assert "Skipped:\n  checks on cuda: not available here\n  a.py: holds no operator\n" in text


def test_a_target_that_could_not_be_judged_is_not_called_lenient() -> None:
    finding = Finding("GL002", "no_usable_inputs", "warning", "no usable inputs found")
    report = Report(
        [TargetReport("m:Op", "function", "error", findings=[finding])], fail_on="error"
    )
    assert report.exit_code == 1
    assert "does not fail" not in render(report, width=80)


def test_what_fails_a_run_of_passing_operators_is_said() -> None:
    info = Finding("GL503", "once_differentiable", "info", "second derivatives are refused")
    passing = TargetReport("m:Op", "function", "pass", findings=[info])
    unsure = TargetReport("m:Other", "function", "inconclusive")
    text = render(Report([passing], fail_on="info"), width=80)
    assert "1 info finding fails the run (--fail-on info)." in text
    text = render(Report([passing, unsure], fail_on="inconclusive"), width=80)
    assert "1 inconclusive operator fails the run (--fail-on inconclusive)." in text
    assert "fails the run" not in render(Report([passing, unsure]), width=80)


def test_a_label_that_begins_with_the_origin_is_said_once() -> None:
    samples = [SampleReport("inferred", "inferred"), SampleReport("inferred [float32]", "inferred")]
    target = TargetReport("m:Op", "function", "inconclusive", samples=samples)
    text = render(Report([target]), width=80)
    assert "inputs     inferred [float32]: no arguments" in text


def passing_with(missed: list[int], not_tried: list[str]) -> TargetReport:
    coverage = {"backward": PhaseCoverage(9 - len(missed), 9, missed)}
    return TargetReport("m:Op", "function", "pass", not_tried=not_tried, coverage=coverage)


def test_what_was_not_tried_stands_under_the_verdict() -> None:
    target = passing_with([84], ["stride != 1", "complex", "line 84", "line 9: `a != 1` true"])
    text = render(Report([target]), width=80)
    assert "  not tried  stride ≠ 1, complex, line 84, line 9: `a != 1` true\n" in text
    narrow = render(Report([target]), width=40, ascii=True)
    assert "  not tried\n    stride != 1, complex, line 84, line\n    9: `a != 1` true\n" in narrow
    assert max(map(len, narrow.splitlines())) <= 40
    assert "not tried" not in render(Report([passing_with([], [])]), width=80)
    assert "not tried" not in render(Report([target]), "concise", width=80)


def test_of_many_things_not_tried_the_first_are_shown() -> None:
    target = passing_with([], [f"a{number} != 1" for number in range(12)])
    text = " ".join(render(Report([target]), width=80).split())
    assert "a7 ≠ 1 and 4 more (-v shows them)" in text
    assert "a11 ≠ 1" in render(Report([target]), width=80, verbose=1)


def test_operators_that_pass_with_code_that_never_ran_are_counted() -> None:
    report = Report([passing_with([84], ["line 84"]), passing_with([], ["complex"])])
    text = " ".join(render(report, width=80).split())
    assert "All 2 operators pass. 1 passed with code that never ran." in text
    assert "passed with code" not in render(Report([passing_with([], [])]), width=80)
    strict = Report(report.targets, fail_on="uncovered")
    assert (report.exit_code, strict.exit_code) == (0, 1)
    text = " ".join(render(strict, width=80).split())
    assert "1 operator with code that never ran fails the run (--fail-on uncovered)." in text


def test_uncovered_means_inconclusive_too() -> None:
    unsure = TargetReport("m:Other", "function", "inconclusive")
    codes = [Report([unsure], fail_on=level).exit_code for level in ("warning", "uncovered")]
    assert codes == [0, 1]
    assert Report([passing_with([], ["complex"])], fail_on="uncovered").exit_code == 0


def test_code_that_cannot_be_watched_is_counted_by_its_reason() -> None:
    native = [TargetReport("m:Op", verdict="pass", coverage_note="code outside of Python")] * 2
    text = render(Report([*native, passing_with([], [])]), width=80)
    assert "Coverage unknown: 2 operators (code outside of Python).\n" in text


def test_statistics_are_for_verbose_reports_only() -> None:
    evidence = {"directions": 4, "worst_z": 3e10, "critical_z": 6.5, "numel": 12}
    evidence |= {
        "differing": 3,
        "measured_elements": 12,
        "relative_error": 0.63,
        "resolution": 2e-3,
    }
    what = "3 of 12 elements differ; the gradient is off by 63 %"
    sure = "sure: errors from 2e-3 on would have been seen, this one is 315 times larger"
    assert wording.measurement(evidence) == [what, sure]
    statistics = "4 directions, worst z 3.0e+10 (critical 6.5), relative error 6.3e-01"
    assert wording.measurement(evidence, verbose=True) == [what, sure, statistics]


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.5, "150 %"), (0.004, "0.4 %"), (2e-5, "2e-5"), (3e7, "3e+7"), (math.inf, "inf")],
)
def test_shares(value: float, text: str) -> None:
    assert wording.share(value) == text


def test_torch_is_compared_with_findings_of_its_sample_only(passing_target: TargetReport) -> None:
    passing_target.verdict = "fail"
    passing_target.samples = [SampleReport("s0", "given"), SampleReport("s1", "given")]
    passing_target.findings = [Finding("GL401", "x", "error", "wrong", sample="s1")]
    passing_target.gradcheck = TorchVerdict("slow", "pass", agreement="agrees", sample="s0")
    text = render(Report([passing_target]), width=80)
    assert "  gradcheck      slow: passes on sample s0\n" in text
    passing_target.gradcheck.sample = "s1"
    passing_target.gradcheck.verdict = "fail"
    assert "  gradcheck  slow: fails too\n" in render(Report([passing_target]), width=80)


def _missing(name: str, module: str) -> TargetReport:
    finding = Finding(
        "GL001",
        "target_not_loadable",
        "error",
        f"target cannot be loaded: importing `{name}` needs the module `{module}`",
        location=Location("pkg/__init__.py", 3, 1),
        evidence={"original": f"ModuleNotFoundError: No module named '{module}'"},
    )
    return TargetReport(target=name, kind="function", verdict="error", findings=[finding])


def test_what_is_missing_is_said_once() -> None:
    targets = [_missing(f"pkg.ops:Op{k}", "cv2") for k in range(12)]
    targets.insert(3, _missing("pkg.ops:Other", "scipy"))
    text = " ".join(render(Report(targets, seed=1), width=100).split())
    assert text.count("needs the module `cv2`") == 1
    assert text.count("needs the module `scipy`") == 1
    assert "11 more operators: pkg.ops:Op1, pkg.ops:Op2" in text
    assert "and 3 others (-v shows them)" in text
    assert render(Report(targets, seed=1), width=100, verbose=1).count("module `cv2`") == 12
