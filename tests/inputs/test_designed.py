"""Further samples differ from the first one in what they say, and in nothing else."""

from __future__ import annotations

import enum
import itertools
from typing import Any, Literal

import pytest
import torch

from gradlint.inputs.designed import Designed
from gradlint.inputs.designed_arguments import (
    MOST_OPTIONALS,
    MOST_ROWS,
    is_written_for,
    other_arguments,
    other_optionals,
    selected_count,
    several_arguments,
)
from gradlint.inputs.designed_broadcasts import broadcast
from gradlint.inputs.designed_indices import indexes_one, other_indices
from gradlint.inputs.designed_kinds import as_complex
from gradlint.inputs.designed_marks import marked_labels
from gradlint.inputs.designed_values import around, nearer, other_values
from gradlint.inputs.samples import samples_for
from gradlint.model.op import Op
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.targets.build import from_object


class Side(enum.Enum):
    LEFT = 1
    RIGHT = 2


def pooled(
    x,
    stride=1,
    dim=0,
    eps=1e-8,
    tol=1e-9,
    p=2.0,
    keepdim=False,
    reduction="mean",
    mode: Literal["a", "b"] = "a",
    side: Side = Side.LEFT,
    pad=(0, 1),
    padding_idx=None,
):
    return x * stride


def op_of(function: Any) -> Op:
    return from_object(function, name=function.__name__)


def sample(*args: Any, **domains: str) -> Sample:
    return Sample("inferred", "inferred", args, domains=domains)


def randn(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def moved(found: list[Designed]) -> dict[str, list[Any]]:
    values: dict[str, list[Any]] = {}
    for item in found:
        for name, value in item.moved.items():
            values.setdefault(name, []).append(value)
    return values


def test_every_argument_is_moved_away_from_its_default():
    found = moved(list(other_arguments(op_of(pooled), sample(randn(3, 4)), 0)))
    assert found["stride"] == [2]
    assert found["dim"] == [-1, -2]
    assert found["eps"] == [0.1]
    assert found["keepdim"] == [True]
    assert found["reduction"] == ["sum", "none"]
    assert found["mode"] == ["b"]
    assert found["side"] == [Side.RIGHT]
    assert "tol" not in found  # what is solved less exactly has a less exact gradient
    assert "p" not in found  # GL401 itself moves floats of a moderate size
    assert "padding_idx" not in found  # rows that get no gradient by design


def test_an_epsilon_that_bounds_nothing_bounds_nothing_when_it_is_moved():
    def moved_to(**guards: Any) -> list[Any]:
        return moved(list(other_arguments(op_of(pooled), sample(randn(3, 4)), 0, **guards)))["eps"]

    own = pooled.__defaults__[2]
    assert moved_to(guards={own: 0.05}) == [0.025]
    assert moved_to(guards={own: 3.0}) == [0.1]  # the least value is far above
    assert moved_to(guards={2 * own: 0.05}) == [0.1]  # another number
    assert moved_to() == [0.1]


def cut(values, offsets, max_len=None, total=None, limit=None):
    """Rows of ``values`` between ``offsets``, as many as the longest has, or ``max_len``."""
    if max_len is None:
        max_len = int((offsets[1:] - offsets[:-1]).max())
    if total is None:
        total = int(offsets.max())
    return values[:max_len] * values.new_zeros(total).sum()


def test_a_limit_that_follows_from_the_others_may_be_lower():
    given = sample(randn(5, 3), torch.tensor([0, 5]))
    found = moved(list(other_arguments(op_of(cut), given, 0)))
    assert found["max_len"] == [3]
    assert "total" not in found  # whatever follows from the others, and is no limit


def damped(x, damping=0.85, gain=0.85):
    """Damping of x, 0 < damping < 1."""
    return damping * gain * x


def test_numbers_stay_in_the_documented_range():
    found = moved(list(other_arguments(op_of(damped), sample(randn(3, 4)), 0)))
    assert set(found["damping"]) == {0.425}
    assert all(value > 1 for value in found["gain"])


def test_labels_complete_a_sentence():
    found = list(other_arguments(op_of(pooled), sample(randn(3, 4)), 0))
    labels = [item.sample.label for item in found]
    assert labels[0] == "with stride=2"
    assert "with reduction='sum'" in labels
    assert all(item.sample.kind == "same" for item in found)
    assert (found[0].sample.args[1:], found[0].sample.kwargs) == ((2,), {})


def test_defaults_before_an_argument_are_written_out():
    given = sample(randn(3, 4))
    found = next(d for d in other_arguments(op_of(pooled), given, 0) if "eps" in d.moved)
    assert (found.sample.args[1:], found.sample.kwargs) == ((1, 0, 0.1), {})


def test_arguments_that_were_given_are_moved_from_their_values():
    found = moved(list(other_arguments(op_of(pooled), sample(randn(3, 4), 3), 0)))
    assert 3 not in found["stride"]


def test_numbers_are_moved_together_and_with_each_choice():
    taken = {"stride": [2], "eps": [0.1], "keepdim": [True]}
    found = list(several_arguments(op_of(pooled), sample(randn(3, 4)), taken, 0))
    assert [item.moved for item in found] == [
        {"stride": 2, "eps": 0.1},
        {"stride": 2, "eps": 0.1, "keepdim": True},
    ]


def picked(x, index):
    return x[index]


INDEX = torch.tensor([2, 0, 3, 1])


def test_indices_repeat_and_count_from_the_end():
    given = sample(randn(4, 3), INDEX, x="all reals", index="indices")
    found = list(other_indices(op_of(picked), given, repeat=True, from_the_end=True))
    crowded, single, negative = (item.sample.args[1].tolist() for item in found)
    assert sorted(crowded) == [0, 0, 3, 3]
    assert single == [3, 3, 3, 3]
    assert min(negative) < 0
    assert all(-4 <= value < 4 for value in negative)


def test_pairs_of_indices_repeat_within_the_sizes_that_each_row_indexes():
    pairs = torch.tensor([[0, 2, 1, 2], [3, 0, 4, 1]])
    given = sample(randn(3, 5), pairs, x="all reals", index="indices")
    found = list(other_indices(op_of(picked), given, repeat=True, from_the_end=False))
    crowded, single = (item.sample.args[1] for item in found)
    assert {tuple(pair) for pair in crowded.T.tolist()} == {(0, 0), (2, 4)}
    assert {tuple(pair) for pair in single.T.tolist()} == {(2, 4)}


def grouping(indices):
    values = indices.tolist()
    return [values.index(value) for value in values]


@pytest.mark.parametrize("across", [False, True])
def test_edges_that_group_alike_get_other_targets(across):
    edges = torch.tensor([[0, 2, 2, 0], [1, 0, 0, 1]])
    given = sample(randn(3, 4), edges.T if across else edges, x="all reals", index="indices")
    found = list(other_indices(op_of(picked), given, repeat=True, from_the_end=False))
    (other,) = (item for item in found if "other targets" in item.sample.label)
    sources, targets = other.sample.args[1].T if across else other.sample.args[1]
    assert grouping(sources) != grouping(targets)
    assert not bool((sources == targets).any())
    assert int(torch.stack([sources, targets]).max()) <= 2
    for near in ([[0, 2, 2, 0], [1, 0, 1, 1]], [[0, 1, 1], [1, 0, 0]], [[0, 0], [1, 1]]):
        given = sample(randn(3, 4), torch.tensor(near), x="all reals", index="indices")
        found = other_indices(op_of(picked), given, repeat=True, from_the_end=False)
        assert not any("other targets" in item.sample.label for item in found)


def gathered(x, source, target):
    return x[source] * x[target]


def test_sources_and_targets_apart_that_group_alike():
    args = randn(3, 4), torch.tensor([0, 2, 2]), torch.tensor([1, 0, 0])
    domains = {"x": "all reals", "source": "indices", "target": "indices"}
    given = Sample("s", "inferred", args, domains=domains)
    found = list(other_indices(op_of(gathered), given, repeat=True, from_the_end=False))
    (other,) = (item for item in found if "differs for one" in item.sample.label)
    _, sources, targets = other.sample.args
    assert grouping(sources) != grouping(targets)


def test_no_data_lie_around_what_only_keeps_from_zero():
    given = sample(randn(4, 3), x="all reals")
    assert list(around(op_of(pooled), given, [torch.finfo(torch.float64).tiny])) == []
    (found,) = around(op_of(pooled), given, [1e-300, 0.0])
    assert found.sample.label == "where values are on both sides of 0"


def faded(x, lam):
    """x (N,), complex or real, over 1 + lam."""
    return x / (1 + lam)


def test_what_has_a_sign_stays_real_beside_complex_numbers():
    args = randn(4).requires_grad_(), torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    domains = {"x": "all reals", "lam": "nonnegative"}
    given = Sample("s", "inferred", args, domains=domains)
    (found,) = as_complex(op_of(faded), given, expected=True)
    x, lam = found.sample.args
    assert x.is_complex()
    assert not lam.is_complex()


def consistent(k, k0, mask):
    """Measured where ``mask`` is one."""
    return (1 - mask) * k + mask * k0


def test_masks_stay_real_beside_complex_numbers():
    args = tuple(randn(4).requires_grad_() for _ in range(3))
    domains = dict.fromkeys(("k", "k0", "mask"), "all reals")
    (found,) = as_complex(
        op_of(consistent), Sample("s", "inferred", args, domains=domains), expected=True
    )
    assert [value.is_complex() for value in found.sample.args] == [True, True, False]


def between(x, index):
    return (x[index[:, 0]] - x[index[:, 1]]).norm(dim=1)


def between_unpacked(x, index):
    i, j = index.unbind(1)
    return (x[i] - x[j]).norm(dim=1)


def of_a_grid(x, index):
    i, j = index.unbind(1)
    return x[i, j]


def of_two(x, y, index):
    return x[index[:, 0]] * y[index[:, 1]]


@pytest.mark.parametrize(
    ("op", "apart"),
    [(between, True), (between_unpacked, True), (of_a_grid, False), (of_two, False)],
)
def test_members_of_one_tensor_stay_apart_however_far_they_reach(op, apart):
    pairs = torch.tensor([[1, 0], [3, 0], [3, 1], [3, 0]])
    others = {"y": randn(4, 3)} if op is of_two else {}
    args = [randn(4, 4), *others.values(), pairs]
    given = sample(*args, **dict.fromkeys(("x", *others), "all reals"), index="indices")
    assert indexes_one(op_of(op), "index") == apart
    found = list(other_indices(op_of(op), given, repeat=True, from_the_end=False))
    equal = [bool((a == b).any()) for a, b in (item.sample.args[-1].T for item in found)]
    assert len(found) == 2
    assert any(equal) != apart


def test_a_permutation_stays_one():
    given = sample(randn(4, 3), INDEX, x="all reals", index="a permutation along the last axis")
    assert not list(other_indices(op_of(picked), given, repeat=True, from_the_end=True))


def test_what_is_an_order_by_its_name_stays_one():
    def reordered(x, new_order):
        return x[new_order]

    given = sample(randn(4, 3), INDEX, x="all reals", new_order="indices")
    (found,) = other_indices(op_of(reordered), given, repeat=True, from_the_end=True)
    turned = found.sample.args[1]
    assert turned.tolist() == [3, 0, 1, 2]
    assert turned.argsort().tolist() != turned.tolist()


def test_what_is_ignored_occurs():
    def loss(x, target, ignore_index=-100):
        return x

    given = sample(randn(4, 3), INDEX, target="indices")
    occurs, other = marked_labels(op_of(loss), given)
    assert (occurs.sample.args[1] == -100).any()
    assert occurs.sample.label == "where ignore_index=-100 occurs in `target`"
    assert other.moved == {"ignore_index": 2}


class Nll(torch.nn.Module):
    def __init__(self, ignore_index=255, eps=0.1):
        super().__init__()
        self.ignore_index, self.eps = ignore_index, eps

    def forward(self, x, target):
        return x


def test_what_a_constructor_ignores_occurs():
    given = sample(randn(4, 3), INDEX, target="indices")
    occurs, other = marked_labels(from_object(Nll()), given)
    assert (occurs.sample.args[1] == 255).any()
    assert occurs.op is None
    assert other.op.module.ignore_index == 2
    assert other.sample.args[1] is INDEX


def test_padding_is_marked_by_numbers_that_are_no_index():
    def looked_up(table, ids, pad_id=-100, padding_idx=None):
        return table

    there = sample(randn(4, 2), torch.tensor([3, 0, 1, 2]), table="all reals", ids="indices")
    found = list(marked_labels(op_of(looked_up), there))
    marked, moved_to, embedded = found
    assert marked.sample.args[1].tolist() == [-100, 0, 1, -100]
    assert (moved_to.moved, moved_to.only_if_seen) == ({"pad_id": 3}, True)
    assert (embedded.moved, embedded.only_if_seen) == ({"padding_idx": 3}, True)


def test_a_length_is_moved_beyond_all_sizes():
    def stretched(x, out_len, stride=1):
        return x

    found = moved(list(other_arguments(op_of(stretched), sample(randn(3, 4), 2), 0)))
    assert found == {"out_len": [3, 1, 9], "stride": [2]}


@pytest.mark.parametrize(("name", "expected"), [("top_k", [3, 1]), ("order", [3, 1, 9])])
def test_no_more_is_selected_than_there_is(name, expected):
    op = op_of(eval(f"lambda x, {name}: x"))
    found = moved(list(other_arguments(op, sample(randn(3, 4), 2), 0)))
    assert found == {name: expected}
    assert selected_count(op, sample(randn(3, 4), 2)) == (2 if name == "top_k" else 0)


def test_a_window_as_long_as_the_axis_gets_room():
    def filtered(x, taps, stride=1):
        return x

    (found,) = other_arguments(op_of(filtered), sample(randn(2, 3), randn(3)), 0)
    shapes = [[tuple(t.shape) for t in item.args[:2]] for item in found.alternatives]
    assert shapes[-1] == [(2, 8), (3,)]


def test_values_stay_below_a_threshold():
    (found,) = nearer(op_of(pooled), sample(randn(3, 4), x="all reals"), 0.25)
    assert torch.allclose(found.sample.args[0], 0.25 * randn(3, 4))
    assert found.sample.label == "where values are 0.25 times as large"


def test_windows_are_written_for_other_numbers_are_not():
    assert is_written_for({"stride": 2})
    assert is_written_for({"keepdim": True, "padding": 1})
    assert not is_written_for({"n": 2})
    assert not is_written_for({})


def test_operands_are_broadcast_one_at_a_time():
    def add(x, y):
        return x + y

    found = list(broadcast(op_of(add), sample(randn(3, 4), randn(3, 4))))
    shapes = [[tuple(t.shape) for t in item.sample.args] for item in found]
    assert shapes == [
        [(3, 1), (3, 4)],
        [(1, 4), (3, 4)],
        [(4,), (3, 4)],
        [(3, 4), (3, 1)],
        [(3, 4), (1, 4)],
        [(3, 4), (4,)],
        [(2, 3, 4), (3, 4)],
    ]
    kinds = ["broadcast", "broadcast", "other-rank"]
    assert [item.sample.kind for item in found] == [*kinds, *kinds, "other-rank"]
    for item in found:
        assert item.as_if is not None
        assert torch.equal(add(*item.sample.args), add(*item.as_if.args))
        assert all(t.requires_grad and t.is_leaf for t in item.sample.args)


def test_operands_stay_in_their_domains_where_they_are_broadcast():
    def add(x, y):
        return x + y

    given = sample(randn(3, 4), randn(3, 4), x="rows sum to 1", y="0 or 1")
    shapes = [item.sample.args[0].shape for item in broadcast(op_of(add), given)]
    assert [tuple(shape) for shape in shapes] == [(1, 4), (4,)]


def test_values_lie_on_both_sides_of_every_threshold():
    given = sample(randn(3, 4), x="all reals")
    (found,) = around(op_of(pooled), given, [6.0, 0.0])
    values = found.sample.args[0]
    assert bool((values < 0).any() & ((values > 0) & (values < 6)).any() & (values > 6).any())
    assert values.unique().numel() == 12


@pytest.mark.parametrize("count", [4, 12, 13, 24, 60])
@pytest.mark.parametrize("marks", [[0.1], [0.5], [0.1, 0.9], [1e-6], [1.0, -1.0], [0.0, 6.0]])
@pytest.mark.parametrize("domain", ["all reals", "positive", "between 0 and 1"])
def test_no_value_is_at_a_threshold_or_at_its_mirror_image(domain, marks, count):
    kept = [mark for mark in marks if domain == "all reals" or 0.0 < mark < 1.0]
    given = sample(torch.rand(count, dtype=torch.float64), x=domain)
    for found in around(op_of(pooled), given, kept):
        (values,) = found.sample.args
        for mark in kept:
            assert float((values.abs() - abs(mark)).abs().min()) > 0.01 * abs(mark)
            assert bool((values < mark).any() & (values > mark).any())
        if domain == "all reals":
            assert bool((values != 0).all())


def test_no_value_is_within_an_epsilon_of_zero_but_some_are_within_a_larger_threshold():
    for count in (4, 12, 60):
        given = sample(torch.rand(count, dtype=torch.float64), x="all reals")
        (epsilon,), (larger,) = (list(around(op_of(pooled), given, [m])) for m in (0.1, 1.0))
        assert float(epsilon.sample.args[0].abs().min()) > 0.1
        assert bool((larger.sample.args[0].abs() < 1.0).any())


@pytest.mark.parametrize(("domain", "count"), [("all reals", 4), ("positive", 2), ("rows", 0)])
def test_values_stay_in_their_domain(domain, count):
    found = list(other_values(op_of(pooled), sample(randn(3, 4), x=domain)))
    assert len(found) == count


def test_a_parameter_of_one_sign_keeps_it():
    given = sample(randn(3, 4).abs().detach().requires_grad_(), x="all reals")
    assert [item.sample.kind for item in other_values(op_of(pooled), given)] == ["extreme"] * 2


class Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, index):
        ctx.save_for_backward(index)
        ctx.rows = x.shape[0]
        return x[index]

    @staticmethod
    def backward(ctx, grad):
        (index,) = ctx.saved_tensors
        zeros = grad.new_zeros(ctx.rows, *grad.shape[1:])
        return zeros.index_add(0, index, grad), None


class Put(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, index, source):
        ctx.save_for_backward(index)
        out = x.clone()
        out[index] = source
        return out

    @staticmethod
    def backward(ctx, grad):
        (index,) = ctx.saved_tensors
        rest = grad.clone()
        rest[index] = 0
        return rest, None, grad[index]


@pytest.mark.parametrize("seed", range(4))
def test_the_first_indices_repeat_leave_one_out_and_touch_both_ends(seed):
    first = samples_for(op_of(Rows), Settings(seed=seed))[0]
    x, index = first.args
    values = index.tolist()
    assert len(set(values)) < len(values)
    assert {0, x.shape[0] - 1} <= set(values)
    assert len(set(values)) < x.shape[0]


@pytest.mark.parametrize("seed", range(4))
def test_indices_are_distinct_where_rows_are_overwritten(seed):
    first = samples_for(op_of(Put), Settings(seed=seed))[0]
    values = first.args[1].tolist()
    assert len(set(values)) == len(values)


def test_masks_have_rows_of_both_kinds():
    def masked(x, mask):
        return x.masked_fill(mask, 0.0) * x

    for seed in range(4):
        mask = samples_for(op_of(masked), Settings(seed=seed))[0].args[1]
        assert mask.dtype == torch.bool
        if mask.dim() > 1:
            assert bool((mask.any(-1) & ~mask.all(-1)).all())


@pytest.mark.parametrize(
    ("domain", "marks", "low", "high"),
    [("between 0 and 1", [0.1, 0.9, 2.0], 0.0, 1.0), ("positive", [0.5, -1.0], 0.0, 1e9)],
)
def test_values_around_a_threshold_stay_in_their_domain(domain, marks, low, high):
    given = Sample("first", "inferred", (torch.rand(12),), domains={"x": domain})
    (found,) = around(op_of(lambda x: x.sqrt()), given, marks)
    (x,) = found.sample.args
    assert bool(((x > low) & (x < high)).all())
    for mark in (m for m in marks if low < m < high):
        assert bool((x < mark).any() & (x > mark).any())
        assert f"{mark:g}" in found.sample.label


def met(rows: list[Designed]) -> set[frozenset[tuple[str, Any]]]:
    return {
        frozenset(pair)
        for row in rows
        for pair in itertools.combinations([(k, repr(v)) for k, v in row.moved.items()], 2)
    }


TAKEN = {"stride": [2, 3], "eps": [0.1], "keepdim": [True], "reduction": ["sum", "none"]}
#: Every two arguments with every value of each.
PAIRS = {
    frozenset([(one, repr(value)), (other, repr(more))])
    for one, other in itertools.combinations(TAKEN, 2)
    for value in TAKEN[one]
    for more in TAKEN[other]
}


def test_every_pair_of_values_meets():
    rows = list(several_arguments(op_of(pooled), sample(randn(3, 4)), TAKEN, 0))
    assert met(rows) == PAIRS
    assert len(rows) == 7
    assert [row.sample.label for row in rows[:2]] == [
        "with stride=2, eps=0.1",
        "with stride=2, eps=0.1, keepdim=True",
    ]


def test_pairs_of_a_row_that_forward_refuses_are_made_alone():
    refused: set[str] = set()
    rows = []
    for row in several_arguments(op_of(pooled), sample(randn(3, 4)), TAKEN, 0, refused):
        rows.append(row)
        if len(row.moved) > 2:
            refused.add(row.sample.label)
    alone = [row for row in rows if len(row.moved) == 2]
    assert met(alone) >= {pair for pair in PAIRS if "reduction" not in dict(pair)}
    assert len(alone) <= MOST_ROWS + 2


def test_a_third_choice_stays_at_its_default():
    choices = {"keepdim": [True], "reduction": ["sum", "none"], "mode": ["b"], "stride": [2, 3]}
    rows = list(several_arguments(op_of(pooled), sample(randn(3, 4)), choices, 0))
    several = [sum(not isinstance(v, int) or v is True for v in r.moved.values()) for r in rows]
    # The row in which all of them are moved is one of the usual ones.
    assert sorted(several)[-2:] == [2, 3]
    assert ("reduction", "'sum'") in set().union(*met(rows))
    assert frozenset([("keepdim", "True"), ("reduction", "'sum'")]) in met(rows)


def test_options_are_moved_where_an_optional_argument_is_given():
    there = sample(randn(3, 4))
    there.label, there.moved = "weight given", ("weight",)
    found = list(other_optionals(op_of(pooled), [there], {"reduction": ["sum", "none"]}, 0))
    assert [item.sample.label for item in found] == [
        "with weight given, reduction='sum'",
        "with weight given, reduction='none'",
    ]
    assert [item.sample.moved for item in found] == [("weight", "reduction")] * 2
    assert not list(other_optionals(op_of(pooled), [there], {"weight": [None]}, 0))
    many = {f"a{k}": [1, 2] for k in range(9)}
    assert len(list(other_optionals(op_of(pooled), [there], many, 0))) == MOST_OPTIONALS


def test_documented_indices_are_not_counted_from_the_end() -> None:
    def stated(x, index):
        """Rows of x at index, 0 <= index < N."""
        return x[index]

    def free(x, index):
        """Rows of x at index, index < N."""
        return x[index]

    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    domains = {"x": "all reals", "index": "indices"}
    given = Sample("inferred", "inferred", (x, torch.tensor([0, 2, 3])), domains=domains)
    negative = [
        sum(
            "negative" in item.sample.label
            for item in other_indices(from_object(op), given, repeat=True, from_the_end=True)
        )
        for op in (stated, free)
    ]
    assert negative == [0, 1]


def combined(rows, slot):
    """Adds each row to its slot; rows with slot -1 were dropped."""
    return rows.new_zeros(4, rows.shape[1]).index_add(0, slot.clamp(min=0), rows)


def shifted_down(rows, slot):
    """Near it: rows of slot, slot -1 being the last."""
    return rows[slot]


def test_the_documented_mark_of_what_is_left_out_occurs():
    args = randn(4, 3), INDEX
    domains = {"rows": "all reals", "slot": "indices"}
    given = Sample("s", "inferred", args, domains=domains)
    (found,) = marked_labels(op_of(combined), given)
    assert found.sample.label == "where -1 occurs in `slot`"
    assert found.sample.args[1].tolist() == [-1, 0, 3, -1]
    assert list(marked_labels(op_of(shifted_down), given)) == []
