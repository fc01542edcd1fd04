"""The kernels for CUDA, emulated, do what those for the CPU do, in any order of their threads."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.kernels.support.agreement import share
from tests.kernels.support.emulated_cases import FAMILIES, results
from tests.kernels.support.emulated_library import made_once
from tests.kernels.support.emulated_runs import RUNS, run_all


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "emulated_kernels", run_all)


@pytest.mark.parametrize("family", FAMILIES)
def test_many_threads_agree_with_one(family: str, runs: Path) -> None:
    by_processors, _, _ = torch.load(runs / f"{family}.pt")
    expected = results(family)
    assert list(by_processors) == list(RUNS)
    every, few = by_processors.values()
    assert list(every) == list(expected)
    assert list(few) == [name for name in every if not name.endswith("bfloat16")]
    for found in (every, few):
        shares = {
            f"{name}, result {k}": share(here, there)
            for name in found
            for k, (here, there) in enumerate(zip(expected[name], found[name], strict=True))
        }
        assert {name: value for name, value in shares.items() if value > 1} == {}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_order_of_threads_changes_no_bit(family: str, runs: Path) -> None:
    _, unlike, _ = torch.load(runs / f"{family}.pt")
    assert unlike == []


def test_every_kernel_was_launched(runs: Path) -> None:
    launched: dict[str, int] = {}
    for family in FAMILIES:
        for name, count in torch.load(runs / f"{family}.pt")[2].items():
            launched[name] = launched.get(name, 0) + count
    assert len(launched) > 100
    assert [name for name, count in launched.items() if count == 0] == []
