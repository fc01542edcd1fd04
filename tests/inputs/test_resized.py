"""Samples of other sizes keep what their values stand for."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gradlint.inputs.resized import (
    repeats_indices,
    resizable,
    resized,
    tensors_of,
    tied_axes,
    with_leading_axis,
    without_dimensions,
    without_leading_axis,
)
from gradlint.inputs.values import turning
from gradlint.model.sample import Sample


def sample(*args: Any) -> Sample:
    return Sample("s", "sample_inputs", args)


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def changed(given: Sample, sizes: dict[int, int], **kwargs: Any) -> Sample:
    groups = tied_axes(given)
    change = {axis: new for old, new in sizes.items() for axis in groups[old]}
    found = resized(given, change, seed=3, **kwargs)
    assert found is not None
    return found


def test_axes_of_one_size_are_tied() -> None:
    given = sample(randn(4, 3), [randn(5, 3)], randn(1, 4))
    assert tied_axes(given) == {4: [(0, 0), (2, 1)], 3: [(0, 1), (1, 1)], 5: [(1, 0)]}


def test_what_is_as_long_as_a_list_of_tensors_keeps_its_size() -> None:
    maps = [randn(2, 3), randn(2, 3) + 1, randn(2, 3) + 2]
    assert tied_axes(sample(maps, randn(3))) == {
        2: [(0, 0), (1, 0), (2, 0)],
        3: [(0, 1), (1, 1), (2, 1)],
    }
    assert tied_axes(sample(maps[:2], randn(3)))[3] == [(0, 1), (1, 1), (2, 0)]


def test_slices_are_dropped_and_added() -> None:
    x, w = randn(4, 3).requires_grad_(), randn(3)
    x2, w2 = changed(sample(x, w), {4: 2, 3: 7}).args
    assert (x2.shape, w2.shape) == ((2, 7), (7,))
    assert (x2.requires_grad, w2.requires_grad) == (True, False)
    assert torch.equal(x2[:, :3], x[:2])
    assert torch.equal(w2[:3], w)
    assert x2.detach().unique().numel() == 14  # no ties
    assert x2.min() >= x.min()
    assert x2.max() <= x.max()


def test_same_values_from_the_same_seed() -> None:
    given = sample(randn(4))
    assert torch.equal(changed(given, {4: 9}).args[0], changed(given, {4: 9}).args[0])


def test_one_tensor_twice_stays_one() -> None:
    x = randn(4)
    a, b = changed(sample(x, [x]), {4: 5}).args
    assert a is b[0]


def test_rows_that_sum_to_one_still_do() -> None:
    rows = torch.softmax(randn(4, 3), -1)
    (found,) = changed(sample(rows), {4: 9, 3: 17}).args
    assert found.shape == (9, 17)
    assert torch.allclose(found.sum(-1), torch.ones(9, dtype=torch.float64))
    assert bool((found > 0).all())


def test_the_sum_of_a_single_row_is_chance_unless_it_is_one() -> None:
    shares = torch.tensor([0.4, 0.7, 0.9], dtype=torch.float64)
    one, one_of_sum = changed(sample(shares), {3: 1}), changed(sample(shares / 2.0), {3: 1})
    assert torch.equal(tensors_of(one)[0], shares[:1])
    assert float(tensors_of(one_of_sum)[0]) == 1.0


def test_zeros_and_ones_signs_and_unit_vectors_still_are() -> None:
    ones = torch.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
    unit = torch.nn.functional.normalize(randn(2, 3), dim=-1)
    found = changed(sample(ones, 2 * ones - 1, unit), {2: 9, 3: 17}).args
    assert [set(t.unique().tolist()) for t in found[:2]] == [{0.0, 1.0}, {-1.0, 1.0}]
    assert torch.allclose(found[2].norm(dim=-1), torch.ones(9, dtype=torch.float64))


def test_rotations_stay_rotations() -> None:
    generator = torch.Generator().manual_seed(0)
    factor = torch.randn(4, 3, 3, generator=generator, dtype=torch.float64)
    rotations = turning(torch.linalg.qr(factor).Q)
    assert torch.allclose(torch.linalg.det(rotations), torch.ones(4, dtype=torch.float64))
    found = resized(Sample("", "given", (rotations,)), {(0, 0): 33}, seed=0)
    assert found is not None
    assert torch.allclose(torch.linalg.det(found.args[0]), torch.ones(33, dtype=torch.float64))


def test_new_rows_differ_from_all_others() -> None:
    """Two atoms are in one place nowhere, though one is at the origin."""
    atoms = torch.tensor([[0.0, 0.0], [1.0, 0.5], [5.0, 5.0]], dtype=torch.float64)
    found = resized(Sample("", "given", (atoms,)), {(0, 0): 65}, seed=0)
    assert found is not None
    (more,) = found.args
    assert len(torch.unique(more, dim=0)) == 65
    assert torch.equal(more[:3], atoms)


def test_skew_symmetric_and_orthogonal_matrices_still_are() -> None:
    (skew,) = changed(sample(randn(3, 3) - randn(3, 3).mT), {3: 9}).args
    assert torch.equal(skew, -skew.mT)
    assert float(skew.abs().max()) > 0.1
    (turned,) = changed(sample(torch.linalg.qr(randn(3, 3)).Q), {3: 9}).args
    assert torch.allclose(turned @ turned.mT, torch.eye(9, dtype=torch.float64))


def test_other_values_are_not_rounded() -> None:
    half = torch.tensor([0.0, 1.0, 0.5])
    assert len(changed(sample(half), {3: 17}).args[0].unique()) > 3
    assert changed(sample(torch.ones(3)), {3: 4}).args[0].tolist() != [1.0] * 4


def test_contractions_still_are() -> None:
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(3, 3, generator=generator, dtype=torch.float64)
    short = 0.6 * drawn / torch.linalg.matrix_norm(drawn, ord=2)
    for matrix, most in ((short, 0.6), (2 * short, None)):
        made = resized(sample(matrix), {(0, 0): 33, (0, 1): 33}, seed=0)
        norm = float(torch.linalg.matrix_norm(made.args[0].detach(), ord=2))
        assert norm <= 0.6 + 1e-9 if most else norm > 1.2


def test_short_vectors_are_no_longer_than_they_were() -> None:
    drawn = 0.6 * torch.nn.functional.normalize(randn(2, 3), dim=-1)
    drawn[0] *= 0.5
    for vectors, most in ((drawn, 0.6), (2 * drawn, None)):
        longest = float(changed(sample(vectors), {3: 257}).args[0].detach().norm(dim=-1).max())
        assert longest <= 0.6 + 1e-9 if most else longest > 2.0


def test_positive_definite_matrices_still_are() -> None:
    half = randn(3, 3)
    matrix = half @ half.mT + torch.eye(3)
    (found,) = changed(sample(matrix), {3: 9}).args
    assert torch.allclose(found, found.mT)
    assert bool((torch.linalg.eigvalsh(found) > 0).all())


@pytest.mark.parametrize("size", [1, 9])
def test_indices_keep_pointing_somewhere(size: int) -> None:
    index = torch.tensor([3, 0, 2])
    x, found = changed(sample(randn(4, 2), index), {4: size, 3: 5}).args
    assert found.shape == (5,)
    assert int(found.min()) >= 0
    assert int(found.max()) < len(x)


def test_offsets_stay_sorted_and_end_at_the_end() -> None:
    offsets = torch.tensor([0, 2, 4])
    x, found = changed(sample(randn(4, 2), offsets), {4: 9, 3: 5}).args
    assert bool((found.diff() >= 0).all())
    assert (int(found[0]), int(found[-1])) == (0, len(x))


def test_no_index_into_nothing() -> None:
    given = sample(randn(4, 2), torch.tensor([3, 0, 2]))
    assert resized(given, {(0, 0): 0}, seed=3) is None
    assert resized(given, {(0, 0): 0, (1, 0): 0}, seed=3) is not None


def test_repeated_indices_are_noticed() -> None:
    given = sample(randn(4, 2), torch.tensor([3, 0, 2]))
    assert repeats_indices(given, changed(given, {3: 9}))
    assert repeats_indices(given, changed(given, {4: 2}))
    assert not repeats_indices(given, changed(given, {2: 9}))


def test_integers_change_on_request() -> None:
    given = sample(randn(4), 4, [4, 3], True)
    assert changed(given, {4: 9}).args[1:] == (4, [4, 3], True)
    assert changed(given, {4: 9}, integers={4: 9}).args[1:] == (9, [9, 3], True)


def test_dimensions_dropped_and_added() -> None:
    x, w = randn(4, 3).requires_grad_(), randn(3)
    given = sample(x, w)
    flat, scalar = without_dimensions(given).args
    assert (flat.shape, scalar.shape, flat.requires_grad) == ((), (), True)
    assert flat in x
    row, kept = without_leading_axis(given, {0}).args
    assert (row.shape, kept.shape) == ((3,), (3,))
    assert torch.equal(row, x[0])
    more, kept = with_leading_axis(given, {0}, 2, seed=1).args
    assert (more.shape, kept.shape) == ((2, 4, 3), (3,))
    assert torch.equal(more[0], x)
    assert not torch.equal(more[1], x)


def test_sparse_tensors_are_not_resized() -> None:
    assert resizable(sample(randn(3)))
    assert not resizable(sample(randn(3, 3).to_sparse()))
    assert len(tensors_of(sample(randn(3), {"w": randn(2)}))) == 2


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("lead", [(), (2,)])
def test_triangular_matrices_still_are_and_can_be_solved(
    lead: tuple[int, ...], *, upper: bool
) -> None:
    lower = 0.5 * randn(*lead, 3, 3).tril(-1) + torch.diag_embed(randn(*lead, 3).abs() + 0.4)
    first = lower.mT.contiguous() if upper else lower
    rank = first.dim()
    change = {(0, axis): 64 for axis in range(rank - 2, rank)}
    if lead:
        change[0, 0] = 5
    found = resized(sample(first), change, seed=0)
    assert found is not None
    (large,) = found.args
    assert large.shape == ((5,) if lead else ()) + (64, 64)
    other = large.tril(-1) if upper else large.triu(1)
    assert not other.any()
    assert float(torch.linalg.cond(large).max()) < 1e3
    small = resized(sample(first), dict.fromkeys(change, 2), seed=0)
    assert small is not None
    assert torch.equal(small.args[0][..., :2, :2], first[..., :2, :2])


@pytest.mark.parametrize(
    ("values", "axis", "step"),
    [
        (torch.tensor([0.0, 0.7, 1.5, 2.2]), 0, 1),  # knots
        (torch.tensor([0.9, 0.5, 0.2, 0.1, -0.3]), 0, -1),
        (torch.tensor([[0.1], [0.4], [0.5], [2.0]]), 0, 1),  # times, a column
        (torch.tensor([[0.1, 0.2], [0.4, 0.5], [0.3, 1.0], [0.6, 2.0], [0.2, 0.3]]), 1, 1),
    ],
)
def test_an_order_stays_one(values: torch.Tensor, axis: int, step: int) -> None:
    made = resized(sample(values), {(0, 0): 31}, seed=0)
    assert made is not None
    assert made.args[0].shape[0] == 31
    assert bool((step * made.args[0].diff(dim=axis) > 0).all())


def test_an_order_by_chance_is_none() -> None:
    values = torch.tensor([-0.1, 0.5, 2.0])
    made = resized(sample(values), {(0, 0): 31}, seed=0)
    assert made is not None
    assert torch.equal(made.args[0][:3], values)
    assert bool((made.args[0].diff() < 0).any())
