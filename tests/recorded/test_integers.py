"""Small indices, masks and labels show what the recorded ones did."""

from __future__ import annotations

import pytest
import torch

from gradlint.inputs.tried import Tried
from gradlint.model.sample import Sample
from gradlint.recorded.integers import features, telling
from gradlint.recorded.shrink import Shrinker

SEEDED = torch.Generator().manual_seed(0)
RANDOM = torch.randint(300, (500,), generator=SEEDED)
LABELS = torch.randint(10, (64,), generator=torch.Generator().manual_seed(1))
IGNORED = torch.where(torch.arange(64) % 5 == 0, -100, LABELS)
CTC = torch.randint(1, 20, (4, 30), generator=torch.Generator().manual_seed(2))
KNN = torch.stack([torch.randperm(90, generator=SEEDED)[:8] for _ in range(90)])


@pytest.mark.parametrize(
    ("before", "size", "small"),
    [
        (RANDOM, 300, 4),
        (RANDOM.sort().values, 300, 4),
        (torch.randperm(300, generator=SEEDED), 300, 4),
        (LABELS, 10, 4),
        (IGNORED, 10, 4),
        (RANDOM.reshape(2, 250), 300, 5),
    ],
)
def test_indices_show_what_they_did(before: torch.Tensor, size: int, small: int) -> None:
    shape = [*before.shape[:-1], 4]
    now = before[..., :4].clamp(max=small - 1)
    made = telling(before, now, [size, before.shape[-1]], [small, 4])
    made = now if made is None else made
    assert list(made.shape) == shape
    lost = features(before) - features(made)
    assert lost <= ({"first"} if before is not IGNORED else {"repeated"})
    assert int(made.max()) == small - 1  # the last row is met
    assert int(made[made >= 0].min()) == 0  # and the first
    assert set(made[made < 0].tolist()) <= set(before[before < 0].tolist())


def test_labels_that_are_never_zero_stay_so() -> None:
    made = telling(CTC, CTC[:3, :3].clamp(max=3), [20, 4, 30], [4, 3, 3])
    assert made is None or int(made.min()) >= 1


def test_rows_without_repetition_stay_so() -> None:
    made = telling(KNN, KNN[:3, :3].clamp(max=3), [90, 90, 8], [4, 3, 3])
    assert made is None or "distinct" in features(made)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (torch.zeros(50, dtype=torch.int64), torch.zeros(3, dtype=torch.int64)),
        (torch.tensor([0, 20, 20, 100]), torch.tensor([0, 3, 3])),  # ends of segments
        (torch.tensor([4, 1, 1, 0]), torch.tensor([4, 1, 1, 0])),
        (torch.zeros(9, dtype=torch.bool), torch.zeros(3, dtype=torch.bool)),
    ],
)
def test_what_shows_all_is_left(before: torch.Tensor, now: torch.Tensor) -> None:
    assert telling(before, now, [100, 4], [5, 3]) is None


def test_a_mask_has_both_values() -> None:
    made = telling(torch.arange(60).reshape(6, 10) > 40, torch.zeros(3, 3).bool(), [6], [3])
    assert made is not None
    assert made.unique().tolist() == [False, True]


def shrunk(run: object, *args: torch.Tensor) -> tuple[torch.Tensor, ...]:
    def attempt(sample: Sample) -> Tried:
        try:
            run(*sample.args)  # type: ignore[operator]
        except Exception as error:
            return Tried(0, 0, str(error))
        return Tried(6, 0)

    sample = Sample("call 1", "recorded", args)
    sizes = [[list(value.shape) for value in args]]
    return Shrinker(sample, sizes, attempt, 0).shrunk().args


def test_shrinking_keeps_what_indices_show() -> None:
    table, index = shrunk(lambda table, index: table[index], torch.rand(300, 24), RANDOM)
    assert table.numel() < 40
    assert {"several", "repeated", "unsorted"} <= features(index)
    assert int(index.max()) == table.shape[0] - 1


def test_what_does_not_run_is_not_taken() -> None:
    def run(table: torch.Tensor, index: torch.Tensor) -> None:
        assert (index == index[0]).all() or len(index) > 99

    _, index = shrunk(run, torch.rand(300, 24), RANDOM)
    assert len(index.unique()) == 1
