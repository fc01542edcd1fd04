#!/usr/bin/env python
"""The GPU suite: all that only a GPU can show, in three stages of at most eight minutes each.

    python -m tests.gpu.run [--stage A|B|C] [--keep FOLDER] [--rehearse]

A: versions, whether workers can be forked, both builds, the benchmark in every dtype, the agreement
of CUDA with the CPU. B: all specs on CUDA, the tests marked ``cuda``, GL806 alone. C: the faulty
twins, each where it shows, and the Triton kernels, where triton is installed. Rows are printed as
they come. What FOLDER has results of is not run again; it ends as one archive beside itself.
``--rehearse`` goes the same way on the CPU, with few and small inputs, and proves nothing about a
GPU.

Exits with 0 if all is well, 1 if anything is not or ran out of time, and 5, with the reason, where
there is no GPU: then nothing was checked.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.gpu.support import parts, table

ROOT = Path(__file__).resolve().parents[2]

NOTHING_CHECKED = 5


def main() -> int:
    """Run the stages, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--stage", choices=tuple(parts.STAGES), help="default: one after the other")
    parser.add_argument("--keep", metavar="FOLDER", help="where logs and results are written")
    parser.add_argument("--rehearse", action="store_true", help="on the CPU, with small inputs")
    options = parser.parse_args()
    folder = Path(options.keep or tempfile.mkdtemp(prefix="gradlint-gpu-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    reason = "" if options.rehearse else why_not()
    if reason:
        print(f"GPU suite skipped, nothing was checked: {reason}")
        return NOTHING_CHECKED
    os.chdir(ROOT)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    )
    heading = "rehearsal on the CPU: proves nothing about a GPU" if options.rehearse else None
    stages = [options.stage] if options.stage else list(parts.STAGES)
    rows: list[table.Row] = []
    seconds = 0.0
    for stage in stages:
        found, took = parts.run_stage(stage, folder, rehearse=options.rehearse)
        rows += found
        seconds += took
    text = table.rendered(rows, seconds, heading)
    (folder / f"table-{''.join(stages)}.md").write_text(text + "\n", encoding="utf-8")
    print(text)
    print(f"results: {parts.archive(folder)}")
    return 0 if all(row.ok for row in rows) else 1


def why_not() -> str:
    """Why the suite can't run here, in words; else ""."""
    try:
        import torch
    except ImportError as error:
        return f"torch can't be imported: {error}"
    if torch.version.cuda is None:
        return f"this torch ({torch.__version__}) is built without CUDA"
    if not torch.cuda.is_available():
        return "torch finds no CUDA device"
    from gradlint.native.reference import why_no_cuda

    found = why_no_cuda()
    return "" if found is None else f"{found[0]}; {found[1]}"


if __name__ == "__main__":
    sys.exit(main())
