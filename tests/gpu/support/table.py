"""The table that ends the GPU suite."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One line.

    Args:
        part: of the suite.
        item: what was looked at.
        result: in words.
        ok: whether that is as it must be.
        seconds: that it took; None where it is part of another line.
    """

    part: str
    item: str
    result: str
    ok: bool = True
    seconds: float | None = None


def environment() -> str:
    """Date, GPUs and versions, in one line."""
    import torch

    names = [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())]
    gpus = ", ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names))
    return (
        f"{time.strftime('%Y-%m-%d')}, {gpus}, PyTorch {torch.__version__}, "
        f"CUDA {torch.version.cuda}"
    )


def rendered(rows: list[Row], seconds: float, heading: str | None = None) -> str:
    """The table in Markdown, and a last line that says whether all is well."""
    lines = [heading or environment(), "", "| part | item | result | s |", "|---|---|---|--:|"]
    for row in rows:
        mark = "" if row.ok else "**not as it must be:** "
        took = "" if row.seconds is None else f"{row.seconds:.0f}"
        lines.append(f"| {row.part} | {row.item} | {mark}{row.result} | {took} |")
    bad = sum(1 for row in rows if not row.ok)
    verdict = "all green" if not bad else f"{bad} of {len(rows)} lines are not as they must be"
    return "\n".join([*lines, "", f"{verdict}, {seconds:.0f} s"])
