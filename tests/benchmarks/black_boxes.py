"""Every rule on PyTorch's own operators as black boxes: what is found there that should not be.

Run it with ``python -m tests.benchmarks.black_boxes [--dtype float32] [--part NAME]``. The first
sample of every differentiable operator of ``op_db`` goes through all rules (but GL903 and GL905,
which take a compiler's time: ``--all`` has them too), each in a process of its own.

Goal: no finding of severity error but those listed here, each with its reason.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import warnings
from collections import Counter
from dataclasses import dataclass, field

import torch

from gradlint.checking.examine import examine
from gradlint.model.events import CheckDone, Event, Found
from gradlint.model.op import Op
from gradlint.model.settings import Settings
from tests.benchmarks.support.known import known
from tests.benchmarks.support.measure import heading, table
from tests.benchmarks.support.operators import Case, cases

SEED = 3

#: Seconds that one operator may take.
LONGEST_S = 120.0

#: Left out unless asked for: they compile.
COMPILING = ("GL903", "GL905")

#: What operators are by contract: (beginning of the name, code) → reason.
PROPERTIES = {
    ("as_strided", "GL703"): "addresses the storage of its input by contract",
    ("as_strided", "GL704"): "addresses the storage of its input by contract",
    ("as_strided", "GL901"): "addresses the storage of its input by contract",
    ("to_sparse", "GL402"): "drops zeros, and gives them no gradient",
    ("nextafter", "GL402"): "a step of one rounding has no derivative that could be measured",
}

#: What is wrong in PyTorch 2.13 itself: (name, code) → what.
FAULTS = {
    ("nn_functional_rrelu", "GL609"): "another gradient when recomputed under checkpointing",
    ("nn_functional_group_norm", "GL705"): "the weight's gradient is not written for empty inputs",
    ("native_group_norm", "GL405"): "wrong where only the mean gets a gradient",
    ("nn_functional_max_unpool2d", "GL703"): "backward fails for indices that are not contiguous",
    ("nn_functional_max_unpool3d", "GL703"): "backward fails for indices that are not contiguous",
    ("nn_functional_max_unpool2d_grad", "GL703"): "the same",
    ("nn_functional_max_unpool3d_grad", "GL703"): "the same",
    ("grid_sampler_3d", "GL901"): "other values under vmap when the batch axis is not in front",
    ("select_scatter", "GL901"): "the gradient of `src` is wrong under vmap",
    ("nn_functional_linear_cross_entropy_chunked", "GL901"): "its batched graph drops the input",
    ("nn_functional_binary_cross_entropy", "GL302"): "infinite for targets where forward clamps",
    ("nn_functional_poisson_nll_loss", "GL302"): "NaN for targets of zero, which forward masks",
    ("nn_functional_softshrink", "GL402"): "zero at zero for lambda 0, where it is the identity",
    ("scatter_reduce_amin", "GL402"): "counts the tensor written to as a tie though it has no part",
    ("scatter_reduce_amax", "GL402"): "counts the tensor written to as a tie though it has no part",
}


@dataclass
class Told:
    """What was found on one operator: (code, severity, message) each; ``died`` as which signal."""

    case: str
    findings: list[tuple[str, str, str]] = field(default_factory=list)
    verdicts: Counter[str] = field(default_factory=Counter)
    died: str = ""


def examined(case: Case, ignore: tuple[str, ...] = COMPILING) -> Told:
    """All rules on ``case``, in this process."""
    events: list[Event] = []
    op = Op(case.name, case.name, "callable", case.call)
    settings = Settings(seed=SEED, ignore=ignore)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        examine(op, [case.sample], settings, events.append)
    findings = [
        (event.finding.code, event.finding.severity, event.finding.message)
        for event in events
        if isinstance(event, Found)
    ]
    verdicts = Counter(event.check.verdict for event in events if isinstance(event, CheckDone))
    return Told(case.name, findings, verdicts)


def apart(case: Case, ignore: tuple[str, ...]) -> Told:
    """The same in a fork: an operator may take its process with it. Only from a process without
    threads of OpenMP's: a fork has none of them and waits for them."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=lambda: sender.send(examined(case, ignore)))
    process.start()
    sender.close()
    try:
        found = receiver.recv() if receiver.poll(LONGEST_S) else Told(case.name, died="hung")
    except EOFError:
        process.join()
        found = Told(case.name, died=f"ended with {process.exitcode}")
    process.kill()
    process.join()
    return found


def reason(case: Case, code: str) -> str:
    """Why a finding of severity error stands; "" where it must not."""
    if code in ("GL401", "GL402") and known(case.name, case.number, case.dtype):
        return "see `support/known.py`"
    if (case.name, code) in FAULTS:
        return f"wrong in PyTorch: {FAULTS[case.name, code]}"
    for (name, wanted), text in PROPERTIES.items():
        if case.name.startswith(name) and wanted == code:
            return text
    return ""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="all rules on PyTorch's operators")
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--part", default="", help="operators with this in their name")
    parser.add_argument("--all", action="store_true", help="the rules that compile too")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    ignore = () if chosen.all else COMPILING
    counts: Counter[str] = Counter()
    alarms = 0
    for case in cases(getattr(torch, chosen.dtype), chosen.part, None):
        if case.number:
            continue
        told = apart(case, ignore)
        counts["operators"] += 1
        counts.update({f"checks: {verdict}": n for verdict, n in told.verdicts.items()})
        if told.died:
            counts["died"] += 1
            print(f"DIED   {case.name}: {told.died}")
        for code, severity, message in told.findings:
            why = reason(case, code) if severity == "error" else ""
            counts[f"{severity}: {'explained' if why else 'found'}"] += 1
            if severity == "error" and not why:
                alarms += 1
                print(f"ALARM  {case.name} {code} {message}")
            elif severity != "info":
                print(f"{severity:<7}{case.name} {code} {message}{f' ({why})' if why else ''}")
    print(heading(f"All rules on the operator database's first samples, {chosen.dtype}"))
    rows = [("what", "count"), *((name, str(n)) for name, n in sorted(counts.items()))]
    print(table([*rows, ("errors without a reason", str(alarms))]))
    return int(alarms > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
