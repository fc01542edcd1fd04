"""The next step for what a compiler, a linker or the loader wrote."""

from __future__ import annotations

import pytest

from gradlint.native.failures import advice


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("cc1plus: out of memory allocating 65536 bytes", "set MAX_JOBS=1"),
        ("fatal error: error writing to x.s: No space left on device", "free some space"),
        ("fatal error: Python.h: No such file or directory", "python3-dev"),
        ("CUDAContextLight.h:10:10: fatal error: cusparse.h: No such file", "toolkit lacks"),
        ("fatal error: cublas_v2.h: No such file or directory", "c10/cuda/CUDAStream.h"),
        ("fatal error: cuts/mine.h: No such file or directory", "`include_dirs`"),
        ("op.so: undefined symbol: _ZN3c10", "name the source that defines it"),
        ("error: expected ';' before '}' token", "fix the first error"),
    ],
)
def test_advice(text: str, step: str) -> None:
    assert step in advice(text)
