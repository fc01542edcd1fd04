"""Signals at random moments of ``check``: nothing is left, lost or broken, and nobody is blamed.

Run it with ``python -m tests.running.signals [--number 200] [--seed N]`` (Linux). Each run checks
three files with ``-j 1`` or ``-j 2``, and gets one of these at random moments:

- SIGINT, SIGTERM or SIGKILL for gradlint itself, sometimes followed by a second one;
- SIGKILL for gradlint and its server at once, after which the next start finds what is left;
- eight signals for the processes below it: the server, the workers and their keepers.

What must hold is in :func:`faults_of`. The command ends with 1 if it did not.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Seconds after which nothing of a run may be left.
GRACE = 5.0

#: Seconds after which a run is given up: far more than it ever takes.
PATIENCE = 300.0

#: Signals for the processes below gradlint in one run.
BELOW = 8

#: Who gets signals in the runs of one round.
KINDS = ("gradlint", "together", "below", "below")

FILE = """
import torch


class Right{n}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output

    @staticmethod
    def sample_inputs():
        return (torch.linspace(0.5, 2.0, 3, dtype=torch.float64, requires_grad=True),)


class Wrong{n}(Right{n}):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 3 * x * grad_output
"""

#: What gradlint does first of all where it needs workers.
NEXT_START = "from gradlint.base.scratch import scratch_folder; scratch_folder()"

WORDS = ("a.py", "b.py", "c.py", "--select", "GL401", "--seed", "1")

#: Codes that a signal to the worker explains: it crashed, was out of memory, or was interrupted
#: while it imported the file of the op.
OF_THE_HIT = {"GL001", "GL005", "GL007"}

#: Op → verdict where nothing happens.
VERDICTS = {
    f"{name}.py:{kind}{name}": verdict
    for name in "abc"
    for kind, verdict in (("Right", "pass"), ("Wrong", "fail"))
}


@dataclass
class Sent:
    """One signal: who got it ("gradlint", "server", "worker", "keeper"), and which."""

    who: str
    name: str


@dataclass
class Ran:
    """What became of a run.

    Args:
        jobs: ``-j``.
        sent: the signals, in order; those for which nobody was there any more are left out.
        code: the exit code of gradlint, negative for a signal.
        out, err: what it printed.
        report: text of its report, if there is one.
        seconds: from its start to its end.
        orphans: what was left 5 seconds later, in words: processes, or files in its own TMPDIR.
        held: whether something kept its output open for longer than that.
    """

    jobs: int
    sent: list[Sent]
    code: int
    out: str
    err: str
    report: str | None
    seconds: float
    orphans: list[str] = field(default_factory=list)
    held: bool = False


def faults_of(ran: Ran) -> list[str]:
    """What did not hold of a run."""
    faults = [f"left after {GRACE:g} s: {text}" for text in ran.orphans]
    if ran.held:
        faults.append(f"standard output was held for more than {GRACE:g} s")
    if "Traceback" in ran.out + ran.err:
        faults.append(f"a traceback: {ran.err[-500:]}")
    to_itself = [sent.name for sent in ran.sent if sent.who == "gradlint"]
    ended_by = {"SIGINT": 130, "SIGTERM": 143, "SIGKILL": -9}
    # The last ones may have come when all was done.
    allowed = {1, *(ended_by[name] for name in to_itself)} if to_itself else {1}
    if ran.code not in allowed:
        faults.append(f"exit code {ran.code}, expected one of {sorted(allowed)}: {ran.err[-500:]}")
    if ran.report is None:
        if ran.code != -9:
            faults.append("no report")
        return faults
    try:
        report = json.loads(ran.report)
    except ValueError as error:
        return [*faults, f"a broken report: {error}"]
    if report["interrupted"] != (ran.code in (130, 143)):
        faults.append(f"exit code {ran.code}, and interrupted: {report['interrupted']}")
    return faults + wrong_verdicts(ran, report)


def wrong_verdicts(ran: Ran, report: dict[str, Any]) -> list[str]:
    """Verdicts that differ from those of a quiet run, for no reason that the signals give."""
    hit = sum(sent.who in ("worker", "keeper") for sent in ran.sent)
    found: list[str] = []
    blamed: list[str] = []
    for target in report["targets"]:
        expected, verdict = VERDICTS.get(target["target"]), target["verdict"]
        if verdict == expected:
            continue
        if report["interrupted"] and "interrupted" in target["notes"]:
            continue
        codes = {finding["code"] for finding in target["findings"]}
        what = f"{target['target']} is {verdict} ({', '.join(sorted(codes))})"
        (blamed if codes & OF_THE_HIT else found).append(what)
    if not report["interrupted"]:
        missing = VERDICTS.keys() - {target["target"] for target in report["targets"]}
        found += [f"nothing is said of {target}" for target in sorted(missing)]
    return found + blamed[hit:]


# -- One run -------------------------------------------------------------------------------------
class Processes:
    """The processes of one run, as /proc shows them."""

    def __init__(self, parent: int, mark: str) -> None:
        self.parent = parent
        self._mark = mark.encode()

    def server(self) -> list[int]:
        """The fork server."""
        return [pid for pid in below(self.parent) if b"forkserver" in read(pid, "cmdline")]

    def keepers(self) -> list[int]:
        """Of the workers."""
        return [pid for server in self.server() for pid in below(server)]

    def workers(self) -> list[int]:
        """The workers."""
        return [pid for keeper in self.keepers() for pid in below(keeper)]

    def left(self) -> list[str]:
        """Every process that was started with the mark, in words."""
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid() and self._mark in read(name, "environ"):
                words = read(name, "cmdline").replace(b"\0", b" ").decode(errors="replace")
                found.append(f"process {name}: {words[:100]}")
        return found


def read(pid: int | str, name: str) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_bytes()
    return b""


def below(parent: int) -> list[int]:
    """The children of a process."""
    found = []
    for name in os.listdir("/proc"):
        fields = read(name, "stat").rpartition(b")")[2].split() if name.isdigit() else []
        if len(fields) > 1 and int(fields[1]) == parent:
            found.append(int(name))
    return found


def handles(pid: int, number: signal.Signals) -> bool:
    """Whether process ``pid`` has a handler for a signal."""
    for line in read(pid, "status").splitlines():
        if line.startswith(b"SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def eventually(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def one_run(folder: Path, chance: random.Random, usual_s: float, kind: str, jobs: int) -> Ran:
    """Check the files in ``folder`` while signals are sent.

    Args:
        folder: empty.
        chance: chooses signals and moments.
        usual_s: seconds that a quiet run takes.
        kind: "gradlint", "together", "below" or "quiet": who gets signals.
        jobs: ``-j``.
    """
    for name in "abc":
        (folder / f"{name}.py").write_text(FILE.format(n=name))
    temporary = folder / "tmp"
    temporary.mkdir()
    mark = uuid.uuid4().hex
    report = folder / "report.json"
    words = [*WORDS, "-j", str(jobs), "--output-format", "json", "-o", str(report)]
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "gradlint", "check", *words],
        cwd=folder,
        env={
            **os.environ,
            "TEST_MARK": mark,
            "TMPDIR": str(temporary),
            # torch keeps its cache, which is meant to stay, in TMPDIR otherwise.
            "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # In the background of a shell the signal is ignored, and that would be inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    processes = Processes(process.pid, mark)
    # Before that no line of gradlint has run.
    eventually(lambda: handles(process.pid, signal.SIGTERM) or process.poll() is not None, PATIENCE)
    send = {
        "gradlint": send_to_itself,
        "together": send_to_both,
        "below": send_below,
        "quiet": send_nothing,
    }[kind]
    sent = send(process, processes, chance, usual_s)
    held = False
    process.wait(PATIENCE)
    seconds = time.monotonic() - started
    try:
        out, err = process.communicate(timeout=GRACE)
    except subprocess.TimeoutExpired:
        held = True
        out, err = "", ""
    if kind == "together":
        environment = {**os.environ, "TMPDIR": str(temporary)}
        subprocess.run([sys.executable, "-c", NEXT_START], env=environment, check=True)
    rest = max(0.0, GRACE - (time.monotonic() - started - seconds))
    eventually(lambda: not processes.left() and not os.listdir(temporary), rest)
    orphans = [*processes.left(), *(f"folder {name}" for name in os.listdir(temporary))]
    text = report.read_text() if report.exists() else None
    return Ran(jobs, sent, process.returncode, out, err, text, seconds, orphans, held)


def send_nothing(*_: object) -> list[Sent]:
    return []


def send_to_itself(
    process: subprocess.Popen[str], _: Processes, chance: random.Random, usual_s: float
) -> list[Sent]:
    """One signal for gradlint, a third of the time followed by another."""
    time.sleep(chance.uniform(0.0, usual_s))
    sent = []
    for _ in range(chance.choice((1, 1, 2))):
        name = chance.choice(("SIGINT", "SIGTERM", "SIGKILL") if not sent else ("SIGINT",))
        if process.poll() is not None:
            break
        process.send_signal(getattr(signal, name))
        sent.append(Sent("gradlint", name))
        time.sleep(chance.uniform(0.0, 0.5))
    return sent


def send_to_both(
    process: subprocess.Popen[str], processes: Processes, chance: random.Random, usual_s: float
) -> list[Sent]:
    """SIGKILL for gradlint and its server, before either can tell that the other has ended."""
    time.sleep(chance.uniform(0.0, usual_s))
    if process.poll() is not None:
        return []
    process.send_signal(signal.SIGSTOP)
    sent = []
    for server in processes.server():
        os.kill(server, signal.SIGKILL)
        sent.append(Sent("server", "SIGKILL"))
    process.kill()
    return [*sent, Sent("gradlint", "SIGKILL")]


def send_below(
    process: subprocess.Popen[str], processes: Processes, chance: random.Random, usual_s: float
) -> list[Sent]:
    """Some signals for the server, at most one of which ends it, the workers and the keepers."""
    sent: list[Sent] = []
    started = time.monotonic()
    for moment in sorted(chance.uniform(0.0, usual_s) for _ in range(BELOW)):
        time.sleep(max(0.0, moment - (time.monotonic() - started)))
        ended = any(item.who == "server" and item.name != "SIGINT" for item in sent)
        who = chance.choice(("worker", "keeper") if ended else ("server", "worker", "keeper"))
        find = {
            "server": processes.server,
            "worker": processes.workers,
            "keeper": processes.keepers,
        }[who]
        name = chance.choice(("SIGINT", "SIGTERM", "SIGKILL"))
        eventually(lambda find=find: bool(find()) or process.poll() is not None, usual_s)
        found = find()
        if process.poll() is not None or not found:
            continue
        with suppress(ProcessLookupError):
            os.kill(chance.choice(found), getattr(signal, name))
            sent.append(Sent(who, name))
    return sent


# -- Many runs -----------------------------------------------------------------------------------
def campaign(number: int, seed: int, tell: Callable[[str], None]) -> tuple[list[Ran], list[str]]:
    """Rounds of runs of all kinds until ``number`` signals were sent.

    Returns:
        The runs, and every fault with its run.
    """
    chance = random.Random(seed)
    kinds: list[str] = []
    quiet = {jobs: quiet_run(jobs) for jobs in (1, 2)}
    faults = [f"quiet, -j {jobs}: {text}" for jobs, ran in quiet.items() for text in faults_of(ran)]
    tell("without signals: " + ", ".join(f"-j {n} {r.seconds:.1f} s" for n, r in quiet.items()))
    runs: list[Ran] = []
    while (done := sum(len(ran.sent) for ran in runs)) < number or kinds:
        jobs = chance.choice((1, 2))
        # In rounds, so that few signals are of all kinds too.
        kinds = kinds or chance.sample(KINDS, len(KINDS))
        kind = kinds.pop()
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            ran = one_run(Path(folder), chance, quiet[jobs].seconds, kind, jobs)
        runs.append(ran)
        what = ", ".join(f"{sent.name} to {sent.who}" for sent in ran.sent) or "no signal"
        found = faults_of(ran)
        tell(f"{done + len(ran.sent):4} -j {jobs} {what}: exit {ran.code} {'; '.join(found)}")
        faults += [f"-j {jobs}, {what}: {text}" for text in found]
    return runs, faults


def quiet_run(jobs: int) -> Ran:
    """A run that nobody disturbs."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        return one_run(Path(folder), random.Random(0), 0.0, "quiet", jobs)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="signals at random moments of check")
    parser.add_argument("--number", type=int, default=200, help="of signals")
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))
    chosen = parser.parse_args(arguments)
    runs, faults = campaign(chosen.number, chosen.seed, lambda text: print(text, flush=True))
    counts = Counter((sent.who, sent.name) for ran in runs for sent in ran.sent)
    print(f"\nseed {chosen.seed}: {sum(counts.values())} signals in {len(runs)} runs")
    for (who, name), count in sorted(counts.items()):
        print(f"  {name} to {who}: {count}")
    print(f"exit codes: {dict(sorted(Counter(ran.code for ran in runs).items()))}")
    print(f"{len(faults)} faults")
    for text in faults:
        print(f"  {text}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
