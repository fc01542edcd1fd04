"""Specs, marked operators and listed targets as test items."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.testing.conftest import OPERATORS, Run

Suite = Callable[[str], None]

RIGHT = """
forward: "x * x"
backward: {x: "2 * x * grad_output"}
inputs:
  x: {shape: [3]}
"""
WRONG = RIGHT.replace("2 * x", "x")

#: One rule is enough here, and quick.
QUICK = ("--gradlint", "--gradlint-select", "GL401")


def test_marked_operators_are_tests(suite: Suite, run: Run) -> None:
    suite("""
@pytest.mark.gradlint
class Right(Square):
    pass

@pytest.mark.gradlint(inputs="linspace(1, 2, 3)")
class Wrong(Half):
    pass

class NotMarked(Wrong):
    pass

@pytest.mark.skip(reason="later")
@pytest.mark.gradlint
class Later(Half):
    pass

@pytest.mark.xfail
@pytest.mark.gradlint
class Known(Half):
    pass

@pytest.mark.gradlint
def cube(x):
    return x * Square.apply(x)

@pytest.mark.gradlint
def test_of_another_kind():
    pass
""")
    done = run(*QUICK, "-rA")
    done.assert_outcomes(passed=3, failed=1, skipped=1, xfailed=1)
    done.stdout.fnmatch_lines(
        [
            "test_ops.py:2?:16  GL401  wrong gradient for `x`",
            "  cause      scaled: *",
            "  reproduce  gradlint check *",
            "gradlint: 4 operators checked: 2 fail, 2 pass",
            "PASSED test_ops.py::Right",
            "PASSED test_ops.py::cube",
            "PASSED test_ops.py::test_of_another_kind",
            "SKIPPED * later",
            "XFAIL test_ops.py::Known*",
            "FAILED test_ops.py::Wrong - GL401 wrong gradient for `x`",
        ]
    )
    assert "Traceback" not in done.stdout.str()
    assert "gradlint/testing/" not in done.stdout.str()
    run().assert_outcomes(passed=1)
    run(*QUICK, "-m", "not gradlint").assert_outcomes(deselected=6)


def test_a_module_lists_operators(suite: Suite, run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "right.yaml").write_text(RIGHT, encoding="utf-8")
    suite("""
gradlint_targets = [
    Square,
    Square.apply,
    pytest.param(Half, (X,), id="half", marks=pytest.mark.xfail(strict=True)),
    pytest.param(Square, marks=pytest.mark.gradlint(select="GL1")),
    "right.yaml",
]
""")
    done = run(*QUICK, "-v", "test_ops.py")
    done.assert_outcomes(passed=4, xfailed=1)
    done.stdout.fnmatch_lines(
        [
            "test_ops.py::gradlint_targets[[]Square] PASSED*",
            "test_ops.py::gradlint_targets[[]apply] PASSED*",
            "test_ops.py::gradlint_targets[[]half] XFAIL*",
            "test_ops.py::gradlint_targets[[]Square-2] PASSED*",
            "test_ops.py::gradlint_targets[[]right.yaml] PASSED*",
        ]
    )


@pytest.mark.parametrize("entries", ["'right.yaml'", "None"])
def test_what_is_no_list_is_said(suite: Suite, run: Run, entries: str) -> None:
    suite(f"gradlint_targets = {entries}")
    done = run(*QUICK)
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*gradlint_targets must be a list of operators*"])


def test_specs_are_tests(run: Run, pytester: pytest.Pytester) -> None:
    for name, text in {
        "right": RIGHT,
        "wrong": WRONG,
        "broken": RIGHT.replace("shape", "shap"),
        "settings": "name: of another tool\n",
    }.items():
        (pytester.path / f"{name}.yaml").write_text(text, encoding="utf-8")
    done = run(*QUICK, "-v")
    done.assert_outcomes(passed=1, failed=2)
    done.stdout.fnmatch_lines(
        [
            "broken.yaml::gradlint FAILED*",
            "right.yaml::gradlint PASSED*",
            "wrong.yaml::gradlint FAILED*",
            "wrong.yaml:3:16  GL401  wrong gradient for `x`",
            "FAILED broken.yaml::gradlint - broken.yaml:5:*shap*",
            "FAILED wrong.yaml::gradlint - GL401 wrong gradient for `x`",
        ]
    )
    assert "Traceback" not in done.stdout.str()


def test_listed_targets_are_tests(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeini(
        "[pytest]\ngradlint = true\ntestpaths = tests\n"
        "gradlint_targets =\n    ops\n    alone.py:Half"
    )
    for name in ("tests", "ops"):
        (pytester.path / name).mkdir()
    for name in ("ops/squares.py", "alone.py"):
        (pytester.path / name).write_text(OPERATORS, encoding="utf-8")
    (pytester.path / "tests/test_other.py").write_text("def test_it(): pass\n", encoding="utf-8")

    def collected(*options: str) -> list[str]:
        lines = run("--collect-only", "-q", *options).outlines
        return [line for line in lines if "::" in line]

    listed = ["alone.py::Half", "ops/squares.py::Square", "ops/squares.py::Half"]
    assert sorted(collected()) == sorted(["tests/test_other.py::test_it", *listed])
    assert collected("tests") == ["tests/test_other.py::test_it"]
    assert collected("ops/squares.py::Half") == ["ops/squares.py::Half"]
    assert collected("-o", "gradlint=false") == ["tests/test_other.py::test_it"]

    done = run("--gradlint-select", "GL401", "-k", "squares or test_it")
    done.assert_outcomes(passed=2, failed=1, deselected=1)
    done.stdout.fnmatch_lines(["FAILED ops/squares.py::Half - GL401 wrong gradient for `x`"])


def test_a_target_that_does_not_exist_is_said(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\ngradlint = true\ngradlint_targets = nowhere.py:Half")
    done = run()
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["*gradlint_targets: *nowhere.py*"])


def test_what_can_not_be_told_is_no_pass(suite: Suite, run: Run) -> None:
    suite("""
@pytest.mark.gradlint(inputs="linspace(0.5, 2, 3)")
def noisy(x):
    return torch.sin(1e12 * x)
""")
    done = run(*QUICK, "-rs")
    done.assert_outcomes(skipped=1)
    done.stdout.fnmatch_lines(["SKIPPED [[]1] test_ops.py:*: inconclusive: GL401 *"])
    done = run(*QUICK, "--gradlint-fail-on", "inconclusive")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["FAILED test_ops.py::noisy - inconclusive: GL401 *"])


def test_what_can_not_run_is_skipped(
    run: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradlint.running.run.call_in_worker", lambda *_, **__: {"cuda": False})
    (pytester.path / "right.yaml").write_text(RIGHT, encoding="utf-8")
    done = run(*QUICK, "--gradlint-device", "cuda", "-rs")
    done.assert_outcomes(skipped=1)
    done.stdout.fnmatch_lines(["SKIPPED * nothing was checked: checks on cuda: not available here"])


@pytest.mark.parametrize(
    ("option", "text", "told"),
    [
        ("select", "GL40x", "no rule is called 'GL40x'"),
        ("order", "3", "expected 1 or 2, got '3'"),
        ("fail-on", "erorr", "'erorr' is not one of *"),
    ],
)
def test_wrong_options_are_said_once(run: Run, option: str, text: str, told: str) -> None:
    done = run("--gradlint", f"--gradlint-{option}", text)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines([f"ERROR: --gradlint-{option}: {told}*"])


def test_the_marker_takes_names_only(suite: Suite, run: Run) -> None:
    suite("""
@pytest.mark.gradlint("randn(3)")
class Right(Square):
    pass
""")
    done = run(*QUICK)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["FAILED * pytest.mark.gradlint: the marker takes no positional*"])
