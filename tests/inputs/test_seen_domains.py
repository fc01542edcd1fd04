"""What given values show of the domains that they come from."""

from __future__ import annotations

import pytest
import torch

from gradlint.inputs.designed_masks import mixed_masks
from gradlint.inputs.seen_domains import seen_domain, with_seen_domains
from gradlint.model.sample import Sample
from gradlint.targets.build import from_object

T = torch.tensor
REAL = T([[0.3, -1.2, 0.7], [-0.4, 2.1, -0.6]])


@pytest.mark.parametrize(
    ("value", "guessed", "domain"),
    [
        (REAL, "real", "all reals"),
        (REAL.abs() + 1, "real", "positive"),
        (REAL.abs() / 3, "real", "between 0 and 1"),
        (-REAL.abs(), "real", "negative"),
        (REAL.abs(), "positive", "positive"),
        (REAL, "positive", ""),
        (REAL, "ordered", "increasing along the last axis"),
        (REAL / 3, "ball", "vectors of length below 1 along the last axis"),
        (REAL, "ball", ""),
        (T([1.0, 0.0, 3.0, -1.0]), "real", ""),
        (T([-0.5, 0.1, 0.4, 1.7]), "real", ""),
        (REAL.softmax(-1), "real", ""),
        (REAL.softmax(0), "real", ""),
        (REAL.log_softmax(-1), "real", ""),
        (torch.nn.functional.normalize(REAL, dim=-1), "real", ""),
        (T([[0.2, -1.1], [-1.1, 0.4]]), "real", ""),
        (T([[0.2, 0.0], [-1.1, 0.4]]), "real", ""),
        (T([0.5, float("nan"), -1.0]), "real", ""),
        (T([[0, 2, 1], [1, 1, 3]]), "real", "indices"),
        (T([0, 1, 1, 4]), "real", "integers in an order"),
        (T([2, 2, 4, 4, -1]), "real", "positions that come later"),
        (T([-1, 0, 0, 1, 3]), "real", "positions that come before"),
        (T([2, 2, 4, 3, -1]), "real", "indices"),
        (T([101, 2003, 45, 999]), "real", "indices"),
        (T([3, 5, 4, 9]), "real", "indices"),
        (T([-1, 9, 4, -1]), "real", "indices"),
        (T([2, 0, 3, 1]), "real", "a permutation along the last axis"),
        (T([3, 1, 2]), "sizes", "sizes"),
        (T([True, False]), "real", ""),
    ],
)
def test_values_show_their_domain(value, guessed, domain):
    assert seen_domain(value, guessed) == domain


class Loss(torch.autograd.Function):
    """Cross entropy.

    Args:
        logits: (N, C)
        target: (N,) int64
    """

    @staticmethod
    def forward(ctx, logits, target):
        return torch.nn.functional.cross_entropy(logits, target)


def test_given_samples_get_domains_and_others_keep_theirs():
    op = from_object(Loss)
    given = Sample("given", "--inputs", (REAL, T([2, 0])))
    assert with_seen_domains(op, given).domains == {"logits": "all reals", "target": "indices"}
    told = Sample("told", "spec", given.args, domains={"logits": "positive"})
    assert with_seen_domains(op, told) is told
    inferred = Sample("inferred", "inferred", given.args)
    assert with_seen_domains(op, inferred) is inferred


def test_masks_that_are_alike_are_mixed():
    op = from_object(Loss)
    none, every = torch.zeros(2, 3, dtype=torch.bool), torch.ones(4, 1, dtype=torch.bool)
    both = T([True, False, False])
    made = [one.sample for one in mixed_masks(op, Sample("s", "--inputs", (none, every, both)))]
    assert [one.label for one in made] == [
        "where `logits` has True and False",
        "where `target` has True and False",
    ]
    assert made[0].args[0].tolist() == [[False, True, False]] * 2
    assert made[1].args[1].flatten().tolist() == [True, False, True, False]
