"""Specs that were built to take long: each is refused, or checked in a moment."""

from __future__ import annotations

import cProfile
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gradlint.base.errors import SpecError
from gradlint.base.text import nearest
from gradlint.spec._yaml import MAX_PROBLEMS
from gradlint.spec.load import loads
from gradlint.spec.plan import sample_labels

ONE = "inputs: {x: {shape: [3]}}\n"


def entries(count: int, text: str) -> str:
    return "".join(f"  {text.format(i)}\n" for i in range(count))


INPUTS = "inputs:\n" + entries(255, f"x{{0:03}}{'b' * 40}: {{{{shape: [N, 2*N]}}}}")
SUM = "+".join(["N"] * 90)
CASES = "- {}\n" * 500
PAIRS = "x+x, " * 500
LIST = "([0]*60000" + "*1" * 90 + ")"

#: name → (the spec, part of the message that refuses it; nothing where it is right).
COSTLY = {
    "literal lists": (f'forward: "x"\n{ONE}reference: "({", ".join([LIST] * 20)})"\n', ""),
    "lets": (f'forward: "x"\n{ONE}let:\n  a: &a "{"x+" * 90}x"\n' + entries(9_000, "a{}: *a"),
             "`let` has 9,001 entries; at most 256"),
    "long lets": (f'forward: "x"\n{ONE}let:\n  a: &a "({PAIRS})"\n' + entries(99, "a{}: *a"),
                  "all expressions together have over 100,000 characters"),
    "inputs": ('forward: "x"\ninputs:\n' + entries(2_600, "near{}: 1"),
               "`inputs` has 2,600 entries; at most 256"),
    "near misses": (f'forward: "x"\ndims: {{N: [1, 2]}}\n{INPUTS}backward:\n'
                    + entries(255, f"y{{0:03}}{'b' * 40}: '1'"),
                    f"these are the first {MAX_PROBLEMS} mistakes; the rest was not looked at"),
    "mistakes": ("op: a:b\nx: [" + "!!x 1," * 9_000 + "]\n",
                 f"these are the first {MAX_PROBLEMS} mistakes; the rest was not looked at"),
    "keys": ("op: a:b\n" + "x: 1\n" * 9_000,
             f"these are the first {MAX_PROBLEMS} mistakes; the rest was not looked at"),
    "dims": ("op: a:b\ndims:\n" + entries(3_000, "N{}: [1, 2]") + ONE,
             "`dims` has 3,000 entries; at most 100"),
    "cases": ("op: a:b\n" + ONE + "cases:\n" + "- {}\n" * 4_500,
              "`cases` has 4,500 entries; at most 500"),
    "cases and inputs": (f"op: a:b\ndims: {{N: [1, 2]}}\n{INPUTS}cases:\n" + "- {}\n" * 500,
                         "all samples together have too many arguments and sizes"),
    "sizes": ("op: a:b\ndims: {N: [1, 2, 3, 4, 5]}\ninputs:\n"
              + entries(200, f"x{{0}}: {{{{shape: ['{SUM}', '{SUM}']}}}}"), ""),
    "names": ("op: a:b\ndims:\n" + entries(99, f"{'N' * 900}{{}}: 1")
              + "inputs: {x: 1}\ncases:\n" + CASES,
              ""),
    "integer": ("op: a:b\nseed: 0x" + "f" * 5_000 + "\n", "an integer of more than 128 bits"),
}  # fmt: skip

#: Calls that a spec may cost: the dearest below takes 14 million, about a second when the machine
#: is quiet, and all others less than a third of that.
MOST_CALLS = 20_000_000


#: Seconds between two counts.
LOOK_SECONDS = 1.0


class TooMuchWork(Exception):
    """More calls were made than allowed."""


@contextmanager
def at_most(calls: int) -> Iterator[None]:
    """What is run inside makes at most ``calls`` calls, in Python or C.

    The same on every machine, however busy, which no clock is: one only tells when to count, so
    that what goes on for ever is ended with :class:`TooMuchWork` too.
    """
    counter = cProfile.Profile()

    def count(*_: object) -> None:
        made = sum(entry.callcount for entry in counter.getstats())
        if made > calls:
            raise TooMuchWork(f"more than {calls:,} calls")

    before = signal.signal(signal.SIGALRM, count)
    signal.setitimer(signal.ITIMER_REAL, LOOK_SECONDS, LOOK_SECONDS)
    try:
        with counter:
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    count()


def call(times: int) -> None:
    for _ in range(times):
        abs(1)


def test_calls_are_counted_meanwhile_and_at_the_end() -> None:
    with at_most(10_000):
        call(9_000)
    for times in (10_001, 10**15):
        with pytest.raises(TooMuchWork), at_most(10_000):
            call(times)


@pytest.mark.parametrize("name", COSTLY)
def test_costly_spec(name: str) -> None:
    text, message = COSTLY[name]
    with at_most(MOST_CALLS):
        if message:
            with pytest.raises(SpecError) as raised:
                loads(text)
            assert message in [problem.message for problem in raised.value.problems]
            assert len(raised.value.problems) <= MAX_PROBLEMS + 1
        else:
            labels = sample_labels(loads(text))
            assert max(map(len, labels)) <= 1_004


def test_large_specs_that_are_right_load() -> None:
    many = entries(200, "x{0}: {{shape: [N, K], optional: true}}")
    spec = loads(f"op: a:b\ndims: {{N: [1, 2, 3], K: 4}}\ninputs:\n{many}")
    assert len(sample_labels(spec)) == 12
    spec = loads("op: a:b\ninputs: {x: {shape: [N]}}\ndims: {N: 1}\ncases:\n" + "- {}\n" * 400)
    assert len(set(sample_labels(spec))) == 400


def test_the_nearest_of_many_names_is_found() -> None:
    names = [f"{'near' * 10}{i:04}" for i in range(5_000)]
    with at_most(1_000_000):
        assert nearest("weigth", [*names, "weight"]) == ["weight"]
        assert nearest("near" * 10 + "0007", names) == [names[7]]
