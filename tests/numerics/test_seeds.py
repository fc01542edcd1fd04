"""Seeds for one purpose are not those for another."""

from __future__ import annotations

from gradlint.numerics.seeds import ON_IMPORT, PARAMETERS, mixed


def test_seeds_are_apart_and_fit_a_generator():
    seeds = [mixed(seed, purpose) for seed in range(50) for purpose in (0, ON_IMPORT, PARAMETERS)]
    assert len(set(seeds)) == len(seeds)
    assert not set(seeds) & set(range(1000))
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert mixed(1, 2) != mixed(2, 1)
    assert mixed(2**70, 3) == mixed(2**70 % 2**63, 3)
