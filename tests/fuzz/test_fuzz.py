"""A short run of the fuzzer, every case that it or anyone ever found, and faults planted for it."""

from __future__ import annotations

import json
import mmap
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

if sys.platform != "linux":
    pytest.skip("the fuzzer watches processes as Linux can", allow_module_level=True)

from tests.fuzz import __main__ as fuzzer
from tests.fuzz import cell as cells
from tests.fuzz.cell import BATCH, Cell
from tests.fuzz.texts import GRAMMARS

CORPUS = [
    line.split(" ", 1)
    for line in (Path(__file__).parent / "corpus.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
#: Texts of each kind that hypothesis makes, and that a short run makes; a minute for all kinds.
SHRUNK, TEXTS = 200, 4 * BATCH
#: ``FUZZ_SEED=7 pytest tests/fuzz`` tries others.
SEED = int(os.environ.get("FUZZ_SEED", "0"))


@pytest.fixture
def cell() -> Iterator[Cell]:
    made = Cell()
    yield made
    made.close()


def faults(kind: str, cell: Cell) -> dict[str, str]:
    """The smallest text of the same grammar with a fault that hypothesis finds, and the fault."""
    found: dict[str, str] = {}

    @seed(SEED)
    @settings(
        max_examples=SHRUNK,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.randoms(use_true_random=False))
    def one(random: Random) -> None:
        text = GRAMMARS[kind](random)
        said = cell.verdict(kind, text)
        if said:
            found.clear()
            found[text] = said
            raise AssertionError(said)

    with suppress(AssertionError):
        one()
    return found


@pytest.mark.parametrize("kind", sorted(GRAMMARS))
def test_no_text_escapes(kind: str, cell: Cell) -> None:
    assert faults(kind, cell) == {}
    accepted, found = fuzzer.run(kind, SEED, TEXTS, cell)
    assert found == {}
    # Texts that are all refused would reach little.
    least = {"expression": 0.4, "spec": 0.2, "settings": 0.2, "frame": 0.05}[kind]
    assert accepted / TEXTS > least


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


def _sleeps(text: str) -> str:
    time.sleep(60)
    return ""


@pytest.mark.parametrize(
    ("attempt", "said"),
    [
        (_opens, "audit events: open"),
        (_grows, "grows by 1"),
        (_exits, "ended with exit code 7"),
        (_dies, "ended by SIGKILL"),
        (_raises, "KeyError: '/dev/null'"),
        (_loops, "takes more than 5 s"),
        (_sleeps, "waits for more than 2 s"),
    ],
)
def test_planted_attempts_are_seen(
    attempt: object, said: str, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(cells.ATTEMPTS, "planted", attempt)
    monkeypatch.setattr(cells, "SECONDS", 1)
    monkeypatch.setattr(cells, "MEGABYTES", 64)
    if attempt is _sleeps:  # where others use the processor, looping takes longer than sleeping
        monkeypatch.setattr(cells, "WAITS", 2)
    assert cell.verdict("planted", "/dev/null").startswith(said)
    # The next one finds a living process.
    assert cell.verdict("expression", "x + 1") == ""


def test_what_takes_long_once_is_no_fault(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = mmap.mmap(-1, 1)

    def planted(text: str) -> str | None:
        if text == "slow":
            tried[0] += 1
            while tried[0] == 1:
                pass
        return None if text == "refused" else ""

    monkeypatch.setitem(cells.ATTEMPTS, "planted", planted)
    monkeypatch.setattr(cells, "SECONDS", 1)
    assert cell.verdicts("planted", ["right", "slow", "refused"]) == ["", "", None]
    assert tried[0] == 2


def test_an_input_that_changed_is_seen(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    # batch_norm writes to its statistics without a trace in their version counters.
    monkeypatch.setattr("gradlint.expressions._bounds.check_statistics", lambda *_: None)
    said = cell.verdict("expression", "batch_norm(x, y, parts[0][0], training=True)")
    assert said == "`y` was written to"


@pytest.mark.parametrize("attempt", [_opens, _grows, _exits, _dies, _raises])
def test_the_fault_of_a_batch_is_that_of_its_text(
    attempt: object, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def planted(text: str) -> str | None:
        if text == "wrong":
            return attempt("/dev/null")  # type: ignore[operator,no-any-return]
        return None if text == "refused" else ""

    monkeypatch.setitem(cells.ATTEMPTS, "planted", planted)
    monkeypatch.setattr(cells, "MEGABYTES", 64)
    texts = [*["right"] * (BATCH - 2), "refused", "wrong", "refused", "wrong", "right"]
    said = cell.verdicts("planted", texts)
    expected = [{"right": "", "refused": None}.get(text, "fault") for text in texts]
    assert [answer and "fault" for answer in said] == expected


def test_a_fault_is_found_and_its_text_cut_down(
    cell: Cell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(
        cells.ATTEMPTS, "spec", lambda text: f"has {text.count('N')} N" * ("N" in text)
    )
    assert fuzzer.run("spec", 1, 30, cell) == (3, {"N": "has 6 N"})
    assert (
        "spec: has 6 N\n    'N'\nspec, seed 1: 30 tried, 10.0% accepted, 27 faults"
        in capsys.readouterr().out
    )


def test_a_seed_names_its_texts() -> None:
    for kind in GRAMMARS:
        assert fuzzer.batch(kind, 1, 5) == fuzzer.batch(kind, 1, 5)
        assert fuzzer.batch(kind, 1, 5) != fuzzer.batch(kind, 1, 6) != fuzzer.batch(kind, 2, 5)
