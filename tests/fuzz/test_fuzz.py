"""A short run of the fuzzer, every case that it or anyone ever found, and faults planted for it."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

if sys.platform != "linux":
    pytest.skip("the fuzzer watches processes as Linux can", allow_module_level=True)

from tests.fuzz import __main__ as fuzzer
from tests.fuzz import cell as cells
from tests.fuzz.cell import Cell

CORPUS = [
    line.split(" ", 1)
    for line in (Path(__file__).parent / "corpus.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
#: Texts of each kind; ``FUZZ_TEXTS=100000 FUZZ_SEED=7 pytest tests/fuzz`` tries more and others.
TEXTS = int(os.environ.get("FUZZ_TEXTS", "200"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))


@pytest.fixture
def cell() -> Iterator[Cell]:
    made = Cell()
    yield made
    made.close()


@pytest.mark.parametrize("kind", sorted(fuzzer.KINDS))
def test_no_text_escapes(kind: str, cell: Cell) -> None:
    tried, found = fuzzer.fuzz(kind, SEED, TEXTS, cell)
    assert tried >= min(TEXTS, 100)
    assert found == {}


def test_what_was_found_once_stays_mended(cell: Cell) -> None:
    for kind, text in CORPUS:
        assert (text, cell.verdict(kind, json.loads(text))) == (text, "")


# -- the tester, tested ----------------------------------------------------------------------------


def _opens(text: str) -> str:
    with open(text) as file:
        return file.read(0)


def _loops(text: str) -> str:
    while True:
        pass


def _grows(text: str) -> str:
    torch.ones(2**24, dtype=torch.float64)
    return ""


def _exits(text: str) -> str:
    os._exit(7)


def _dies(text: str) -> str:
    os.kill(os.getpid(), signal.SIGKILL)


def _raises(text: str) -> str:
    raise KeyError(text)


@pytest.mark.parametrize(
    ("attempt", "said"),
    [
        (_opens, "audit events: open"),
        (_grows, "grows by 1"),
        (_exits, "ended with exit code 7"),
        (_dies, "ended by SIGKILL"),
        (_raises, "KeyError: '/dev/null'"),
        (_loops, "takes more than 1 s"),
    ],
)
def test_planted_attempts_are_seen(
    attempt: object, said: str, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(cells.ATTEMPTS, "planted", attempt)
    monkeypatch.setattr(cells, "SECONDS", 1)
    monkeypatch.setattr(cells, "MEGABYTES", 64)
    assert cell.verdict("planted", "/dev/null").startswith(said)
    # The next one finds a living process.
    assert cell.verdict("expression", "x + 1") == ""


def test_an_input_that_changed_is_seen(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    # batch_norm writes to its statistics without a trace in their version counters.
    monkeypatch.setattr("gradlint.expressions._bounds.check_statistics", lambda *_: None)
    said = cell.verdict("expression", "batch_norm(x, y, parts[0][0], training=True)")
    assert said == "`y` was written to"
