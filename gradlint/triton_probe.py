"""Does Triton's interpreter work here? Run in a process of its own, by ``python -m``."""

from __future__ import annotations

import importlib
import os
from typing import Any


def main() -> None:
    """Double a tensor on the CPU with a Triton kernel; raises if that does not work."""
    os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported
    torch = importlib.import_module("torch")
    triton = importlib.import_module("triton")
    globals()["tl"] = triton.language  # kernels look up names among globals alone
    values = torch.arange(4.0)
    doubled = torch.empty_like(values)
    triton.jit(_double)[(1,)](values, doubled, SIZE=4)
    if doubled.tolist() != [0.0, 2.0, 4.0, 6.0]:
        raise RuntimeError(
            f"a kernel that doubles turned {values.tolist()} into {doubled.tolist()}"
        )


def _double(source: Any, target: Any, SIZE: tl.constexpr) -> None:  # type: ignore[name-defined] # noqa: F821
    at = tl.arange(0, SIZE)  # type: ignore[name-defined]  # noqa: F821
    tl.store(target + at, 2.0 * tl.load(source + at))  # type: ignore[name-defined]  # noqa: F821


if __name__ == "__main__":
    main()
