"""The fixture ``gradlint``, and the seeds of tests."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from gradlint.testing.gpu import gpu_of, on_own_gpu, visible_gpus, worker_number
from tests.testing.conftest import Run

CHECKS = """
def test_right(gradlint):
    report = gradlint.check(Square, (X,), select="GL401")
    assert report.ok

def test_wrong(gradlint):
    gradlint.check(Half, (X,), select="GL401")

def test_wrong_too(gradlint):
    gradlint.check(Half, (X,), select="GL401")

def test_order(gradlint):
    codes = {check.code for check in gradlint.check(Square, (X,), select="GL5").targets[0].checks}
    assert codes == {"GL501", "GL502", "GL503"}
"""


def seeds(done: pytest.RunResult) -> list[str]:
    return re.findall(r"^E +seed (\d+),", done.stdout.str(), re.MULTILINE)


def test_a_check_in_a_test(suite: Callable[[str], None], run: Run) -> None:
    suite(CHECKS)
    done = run()
    done.assert_outcomes(passed=2, failed=2)
    done.stdout.fnmatch_lines(
        [
            '>       gradlint.check(Half, (X,), select="GL401")',
            "E       *CheckFailedError: GL401 wrong gradient for `x`",
            "E       test_ops.py:2?:16  GL401  wrong gradient for `x`",
            "FAILED test_ops.py::test_wrong - *CheckFailedError: GL401 wrong gradient for `x`",
        ]
    )
    assert "gradlint/testing/" not in done.stdout.str()
    first, second = seeds(done)
    assert first != second
    assert seeds(run("-k", "wrong")) == [first, second]
    assert seeds(run("-k", "wrong", "--gradlint-seed", "7")) == ["7", "7"]


def test_settings_give_the_seed(
    suite: Callable[[str], None], run: Run, pytester: pytest.Pytester
) -> None:
    suite(CHECKS)
    pytester.makepyprojecttoml("[tool.gradlint]\nseed = 11\norder = 1\n")
    done = run()
    done.assert_outcomes(passed=1, failed=3)
    assert seeds(done) == ["11", "11", "11"]


def test_workers_share_the_gpus(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [gpu_of(number, ("0", "GPU-a", "2")) for number in range(5)] == [
        *("0", "GPU-a", "2"),
        *("0", "GPU-a"),
    ]
    assert gpu_of(3, ()) is None

    class Worker:
        workerinput = {"workerid": "gw3"}  # noqa: RUF012

    assert worker_number(Worker()) == 3  # type: ignore[arg-type]
    visible_gpus.cache_clear()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4, 5")
    try:
        seen = []
        for devices in (("cpu", "cuda"), ("cpu",)):
            with on_own_gpu(Worker(), devices):  # type: ignore[arg-type]
                import os

                seen.append(os.environ["CUDA_VISIBLE_DEVICES"])
        assert seen == ["5", "4, 5"]
    finally:
        visible_gpus.cache_clear()
