#!/usr/bin/env python
"""The GPU suite: all that only a GPU can show, in ten minutes, and one table last.

    python -m tests.gpu.run [--keep FOLDER]

Runs every test marked ``cuda``, ``gradlint check specs --device cuda --require-device``, the faulty
twins, the agreement of CUDA with the CPU for every operator and dtype, and ``gradlint kernels
bench``. Exits with 0 if all is well, 1 if anything is not or ran out of time, and 5, with the
reason, where there is no GPU: then nothing was checked.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.gpu.support import parts, table

ROOT = Path(__file__).resolve().parents[2]

NOTHING_CHECKED = 5


def main() -> int:
    """Run all parts, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keep", metavar="FOLDER", help="where the logs are written")
    folder = Path(parser.parse_args().keep or tempfile.mkdtemp(prefix="gradlint-gpu-"))
    folder.mkdir(parents=True, exist_ok=True)
    reason = why_not()
    if reason:
        print(f"GPU suite skipped, nothing was checked: {reason}")
        return NOTHING_CHECKED
    os.chdir(ROOT)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    )
    started = time.monotonic()
    rows = parts.run_all(folder, started)
    print(table.rendered(rows, time.monotonic() - started))
    print(f"logs: {folder}")
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
