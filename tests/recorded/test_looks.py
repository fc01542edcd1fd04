"""Looking at calls takes a share of the program's time, and what is not looked at is counted."""

from __future__ import annotations

import pytest
import torch

from gradlint.recorded.looks import FIRST_LOOKED, MOST_SKIPPED, SHARE, Budget, Seen, kind_of


class Clock:
    """A clock that stands still between calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("time.perf_counter", lambda: self.now)


def run(clock: Clock, budget: Budget, seen: Seen, calls: int, *, call: float, look: float) -> float:
    """Make calls of ``call`` seconds each, as the recorder does; seconds that looks took."""
    spent = 0.0
    for _ in range(calls):
        clock.now += call
        if seen.skip > 0:
            seen.skip -= 1
            continue
        begun = clock.now
        seen.calls += 1
        seen.looked += 1
        seen.due = max(seen.due, 2 * seen.calls)
        clock.now += look
        spent += look
        budget.spend(seen, begun)
    return spent


@pytest.mark.parametrize("call", [1e-5, 5e-5])
def test_looks_take_their_share_of_short_calls(
    monkeypatch: pytest.MonkeyPatch, call: float
) -> None:
    clock = Clock(monkeypatch)
    budget, seen = Budget(), Seen()
    run(clock, budget, seen, 1000, call=call, look=5e-6)
    spent = run(clock, budget, seen, 20000, call=call, look=5e-6)
    assert 0.5 * SHARE < spent / (20000 * call) < 1.2 * SHARE
    assert seen.counted == 21000
    assert seen.step <= MOST_SKIPPED


def test_each_of_the_first_calls_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    seen = Seen()
    run(clock, Budget(), seen, FIRST_LOOKED, call=0.0, look=1.0)
    assert (seen.looked, seen.calls) == (FIRST_LOOKED, FIRST_LOOKED)


def test_each_long_call_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    seen = Seen()
    run(clock, Budget(), seen, 3000, call=1e-3, look=5e-6)
    assert (seen.looked, seen.counted) == (3000, 3000)


def test_no_rhythm_hides_a_kind_of_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of another kind in each tenth place is looked at, although most are not."""
    clock = Clock(monkeypatch)
    budget, seen = Budget(), Seen()
    looked = []
    for number in range(20000):
        before = seen.looked
        run(clock, budget, seen, 1, call=1e-5, look=5e-6)
        if seen.looked > before:
            looked.append(number % 10)
    assert len(looked) < 2000
    assert {looked.count(place) > len(looked) // 40 for place in range(10)} == {True}


def test_what_tells_calls_apart() -> None:
    x = torch.ones(2, 3)
    seen = Seen()
    kinds = [
        kind_of(torch, seen, args, kwargs)
        for args, kwargs in [
            ((x,), {}),
            ((torch.zeros(2, 3),), {}),
            ((torch.ones(3, 2),), {}),
            ((x.double(),), {}),
            ((torch.ones(2, 3, requires_grad=True),), {}),
            ((x, 1), {}),
            ((x, 2), {}),
            ((x, "sum"), {}),
            ((x,), {"reduction": "sum"}),
            (([x, x],), {}),
        ]
    ]
    assert kinds[0] == kinds[1]
    assert len(set(kinds)) == len(kinds) - 1
    # A number that is another one at every call is a count, and no option.
    many = {kind_of(torch, seen, (x, number), {}) for number in range(100, 300)}
    assert len(many) < 40
