"""``--gradlint-gradcheck``: whole suites on gradlint's gradcheck, and what is said of them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable

import pytest
import torch

from tests.testing.conftest import OPTIONS, Run

#: Right and wrong, by every name of the functions; and one on which torch is wrong, because its
#: step is too fine for float32.
SUITE = """
import functools

import torch.testing._internal.common_utils as common

quick = functools.partial(gradcheck, fast_mode=True)
X.requires_grad_()


def test_right():
    assert gradcheck(Square.apply, (X,))
    assert gradgradcheck(Square.apply, (X,))
    assert quick(Square.apply, (X,))
    assert common.gradcheck(Square.apply, (X,))


def test_wrong():
    gradcheck(Half.apply, (X,))


def test_wrong_is_expected():
    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0"):
        torch.autograd.gradcheck(Half.apply, (X,))
    assert not quick(Half.apply, (X,), raise_exception=False)


def test_single_precision():
    assert gradcheck(torch.sin, (X.detach().float().requires_grad_(),))


def test_refused_by_both():
    with pytest.raises(ValueError, match="at least one"):
        gradcheck(Square.apply, (X.detach(),))


def test_numbers_and_inputs_stay():
    x = X.detach().clone().requires_grad_()

    def refuses(value):
        if not torch.equal(value, X):
            raise KeyError("moved")
        return value * torch.rand(())

    torch.manual_seed(3)
    with pytest.raises(KeyError):
        gradcheck(refuses, (x,))
    assert torch.equal(x, X)


def test_the_fixture_asks_torch(gradlint):
    report = gradlint.check(Square, (X.detach(),), select="GL401")
    assert report.targets[0].gradcheck.verdict == "pass"
"""

SUMMARY = [
    "*gradlint in the place of torch's gradcheck*",
    "9 calls of gradcheck and 1 call of gradgradcheck in 6 tests. gradlint and torch differ on 1 "
    "of 10:",
    "test_ops.py::test_single_precision  (call 1: gradcheck)",
    "  gradlint passes",
    "  torch    fails: Jacobian mismatch for output 0 with respect to input 0,",
]


def test_a_suite_runs_on_the_drop_ins(suite: Callable[[str], None], run: Run) -> None:
    suite(SUITE)
    home = sys.modules["torch.autograd.gradcheck"]
    before = torch.autograd.gradcheck, torch.autograd.gradgradcheck, home.gradcheck  # type: ignore[attr-defined]
    run("--gradlint-gradcheck", "-k", "not test_single").assert_outcomes(
        passed=5, failed=1, deselected=1
    )
    done = run("--gradlint-gradcheck", "-W", "ignore")
    done.assert_outcomes(passed=6, failed=1)
    done.stdout.fnmatch_lines(
        [
            "E       *GradcheckError: Jacobian mismatch for output 0 with respect to input 0*",
            "E *scaled*",
            *SUMMARY,
        ]
    )
    assert "gradlint/testing/" not in done.stdout.str()
    after = torch.autograd.gradcheck, torch.autograd.gradgradcheck, home.gradcheck  # type: ignore[attr-defined]
    assert all(one is other for one, other in zip(before, after, strict=True))
    assert inspect.signature(torch.autograd.gradcheck).parameters["fast_mode"].default is False


def test_in_several_processes(
    suite: Callable[[str], None], pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With workers, in which nothing has imported torch before the tests do."""
    suite(
        SUITE
        + """

@pytest.mark.gradlint(select="GL401")
class Marked(Half):
    pass
"""
    )
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    done = pytester.runpytest_subprocess(
        *OPTIONS, "--gradlint", "--gradlint-gradcheck", "-n", "1", "-W", "ignore"
    )
    done.assert_outcomes(passed=6, failed=2)
    done.stdout.fnmatch_lines(
        [
            "test_ops.py:*  GL401  wrong gradient for `x`",
            "gradlint: 1 operator checked: 1 fail",
            *SUMMARY,
            "FAILED test_ops.py::Marked - GL401 wrong gradient for `x`",
        ]
    )


def test_nothing_to_compare_is_said(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_other="def test_it(): pass")
    done = run("--gradlint-gradcheck")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["No test called gradcheck or gradgradcheck."])
