"""What the process that reports keeps of an operator."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from gradlint.running.spool import Spool
from tests.benchmarks import many_results

#: Bytes for each operator: 27,000 by all rules when this was written; 74,000 before what collects
#: an operator's events went with their end, and reports had no dictionaries.
MOST_BYTES = 40_000

#: The same where the results are in a file: 1,900 when this was written.
MOST_BYTES_SPOOLED = 2_600


@pytest.fixture(scope="module")
def bodies(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    return many_results.recorded(tmp_path_factory.mktemp("operators"))


def test_the_reports_are_those_of_the_run(bodies: list[bytes]) -> None:
    report = many_results.replayed(bodies, 2)
    assert [target.target for target in report.targets] == ["operators.py:Op0", "operators.py:Op1"]
    for target in report.targets:
        assert target.verdict == "pass"
        assert len({check.code for check in target.checks}) > 40
        assert target.confirmation is not None
        assert target.confirmation.verdict == "confirmed"


@pytest.mark.parametrize(
    ("spool", "most"), [(None, MOST_BYTES), (Spool(), MOST_BYTES_SPOOLED)], ids=["held", "spooled"]
)
def test_little_is_kept_of_an_operator(bodies: list[bytes], spool: Spool | None, most: int) -> None:
    many_results.replayed(bodies, 1, spool)
    tracemalloc.start()
    try:
        report = many_results.replayed(bodies, 50, spool)
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(report.targets) == 50
    assert held < 50 * most
