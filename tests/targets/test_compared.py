"""The strings that a constructor may be given."""

from __future__ import annotations

import pytest

from gradlint.targets.compared import compared_strings

FORMS = {"outgoing": "ik,jk->ij", "incoming": "ki,kj->ij"}
NAMES = frozenset({"sum", "mean"})
NUMBERS = {1: "one"}


class LookedUp:
    def __init__(self, mode: str = "outgoing", reduce: str = "mean", count: int = 1) -> None:
        assert reduce in NAMES
        self.mode = mode
        self.word = NUMBERS[count]

    def forward(self) -> str:
        return FORMS[self.mode]


class Asked:
    def __init__(self, mode: str = "outgoing") -> None:
        if mode not in FORMS:
            raise ValueError(mode)


@pytest.mark.parametrize(
    ("cls", "expected"),
    [
        (LookedUp, {"mode": ["outgoing", "incoming"], "reduce": ["mean", "sum"]}),
        (Asked, {"mode": ["outgoing", "incoming"]}),
    ],
)
def test_keys_of_tables_beside_the_class(cls: type, expected: dict[str, list[str]]) -> None:
    assert compared_strings(cls, ["mode", "reduce", "count"]) == expected
