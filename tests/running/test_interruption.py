"""Signals take effect where gradlint waits, once, and in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from gradlint.running import interruption

NUMBERS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def raised_in(body: str) -> subprocess.CompletedProcess[str]:
    """What a program does that runs ``body`` under the handlers."""
    code = (
        "import signal\n"
        "from gradlint.running.interruption import guarded, interruptible\n"
        f"with guarded() as signals:\n{body}"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_is_held_back_until_something_waits(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    reached = []
    with interruption.guarded() as signals:
        signal.raise_signal(number)
        reached.append("after the signal")
        with pytest.raises(KeyboardInterrupt), interruption.interruptible():
            reached.append("never")
        with interruption.interruptible():
            reached.append("while things stop")
        signal.raise_signal(number)
        with interruption.interruptible():
            reached.append("after the second signal")
    assert reached == ["after the signal", "while things stop", "after the second signal"]
    assert signals.exit_code == (130 if number == signal.SIGINT else 143)
    assert signal.getsignal(number) == before


def test_a_signal_ends_what_waits_at_once() -> None:
    reached = []

    def wait() -> None:
        with interruption.interruptible(), interruption.interruptible():
            signal.raise_signal(signal.SIGTERM)
            reached.append("never")

    with interruption.guarded(), pytest.raises(KeyboardInterrupt):
        wait()
    assert reached == []


def test_without_handlers_nothing_is_held_back() -> None:
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    with interruption.interruptible():
        pass


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_the_third_signal_ends_the_process(name: str, code: int) -> None:
    raised = f"    signal.raise_signal(signal.{name}); print('on', flush=True)\n"
    done = raised_in(raised * 3)
    assert (done.returncode, done.stdout, done.stderr) == (code, "on\non\n", "")


def test_what_is_ignored_stays_ignored() -> None:
    body = "    signal.raise_signal(signal.SIGHUP)\n    print(signals.first)\n"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
            "from gradlint.running.interruption import guarded\n"
            f"with guarded() as signals:\n{body}",
        ],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "None\n")


@pytest.mark.skipif(os.name == "nt", reason="signals can't be blocked there")
def test_blocked_signals_do_not_change_the_exit_code() -> None:
    code = (
        "import os, signal, sys\n"
        "from gradlint.running.interruption import block\n"
        "block()\n"
        "for number in (signal.SIGINT, signal.SIGTERM): os.kill(os.getpid(), number)\n"
        "sys.exit(7)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (7, "")
