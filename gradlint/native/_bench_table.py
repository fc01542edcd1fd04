"""The table of ``gradlint kernels bench``, and the sizes that it is asked for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gradlint._errors import GradlintError

if TYPE_CHECKING:
    from gradlint.report._text import Page

#: Elements beyond which no machine has memory; a slip of the finger.
_MOST = 2**40


def parse_size(text: str) -> int:
    """The number in ``text``: ``65536``, ``2^16`` or ``2**16``.

    Raises:
        GradlintError: it is none, or out of reach.
    """
    found = re.fullmatch(r"\s*(\d{1,13})(?:(?:\^|\*\*)(\d{1,2}))?\s*", text)
    size = int(found[1]) ** int(found[2] or 1) if found else 0
    if not 0 < size <= _MOST:
        raise GradlintError(
            f"{text!r} is no number of elements", place="--elements", hint="write 2^20, for example"
        )
    return size


def add_table(page: Page, found: dict[str, Any]) -> None:
    """Add what :func:`gradlint.native._bench.bench` returned to ``page``."""
    from gradlint.report._table import table

    rows = [
        [
            row["operator"],
            row["pass"],
            row["size"],
            _milliseconds(row["seconds"]),
            _milliseconds(row["eager_seconds"]),
            _ratio(row["eager_seconds"], row["seconds"]),
            f"{row['of_floor']:.0%}",
            "copy" if row["floor"] == "memory" else "matmul",
        ]
        for row in found["rows"]
    ]
    headers = ["operator", "pass", "size", "ms", "eager ms", "speedup", "floor", "of"]
    table(page, headers, rows, right=["ms", "eager ms", "speedup", "floor"])
    versions = [f"{name} {value}" for name, value in found["versions"].items() if value]
    threads = f", {found['threads']} threads" if found["threads"] else ""
    page.paragraph("")
    page.paragraph(f"{found['device']}{threads}, {found['dtype']}, {', '.join(versions)}")
    page.paragraph(
        f"copy {found['copy_bytes_per_s'] / 1e9:.1f} GB/s, matmul "
        f"{found['matmul_flops_per_s'] / 1e12:.2f} TFLOP/s, medians of {found['date']}"
    )
    page.paragraph(
        "floor: the share of the time that a copy of as many bytes, or a matrix product of as many "
        "operations, takes here; speedup: eager PyTorch's time by the operator's."
    )


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.3f}"


def _ratio(eager: float | None, own: float) -> str:
    return "" if eager is None else f"{eager / own:.2f}"
