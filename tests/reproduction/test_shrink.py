"""Shrinking: the smallest arguments that still show it, the same for every run."""

from __future__ import annotations

import torch

from gradlint.model.sample import Sample
from gradlint.reproduction.shrink import MOST_TRIALS, elements, shrunk


def sample(*args: object) -> Sample:
    return Sample("given", "given", args)


def test_sizes_fall_as_far_as_it_shows() -> None:
    def shows(at: Sample) -> bool:
        x, weight = at.args
        return x.shape[1] == weight.shape[0] and weight.shape[1] > 1

    found = shrunk(sample(torch.randn(6, 5), torch.randn(5, 4)), shows)
    assert [tuple(t.shape) for t in found.sample.args] == [(1, 1), (1, 2)]
    assert (found.before, found.after) == (50, 3)


def test_arguments_that_are_not_needed_go() -> None:
    found = shrunk(sample(torch.randn(4), torch.randn(4), 2.5), lambda at: True)
    assert len(found.sample.args) == 1
    assert elements(found.sample) == 0 or found.after == 1


def test_numbers_become_simple() -> None:
    found = shrunk(sample(torch.randn(3)), lambda at: len(at.args) == 1 and _three(at))
    assert found.sample.args[0].tolist() == [1.0, 2.0, 0.5]


def _three(at: Sample) -> bool:
    return isinstance(at.args[0], torch.Tensor) and at.args[0].numel() == 3


def test_indices_stay_in_range() -> None:
    def shows(at: Sample) -> bool:
        x, index = at.args
        return bool((x[index] == x[index]).all()) and index.numel() > 1

    found = shrunk(sample(torch.randn(9), torch.tensor([8, 3, 0])), shows)
    assert found.after < found.before
    assert int(found.sample.args[1].max()) < found.sample.args[0].numel()


def test_it_ends_where_nothing_is_smaller() -> None:
    calls = []

    def shows(at: Sample) -> bool:
        calls.append(at)
        return False

    start = sample(torch.randn(7, 6), torch.randn(6, 5), 3, 0.25)
    found = shrunk(start, shows)
    assert found.sample is start
    assert len(calls) == found.trials <= MOST_TRIALS


def test_an_operator_that_raises_is_not_the_end() -> None:
    def shows(at: Sample) -> bool:
        if at.args[0].numel() < 4:
            raise RuntimeError("too small")
        return True

    assert shrunk(sample(torch.randn(12)), shows).after == 4
