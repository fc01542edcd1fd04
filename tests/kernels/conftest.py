"""The reference kernels, built for the CPU once and kept in the build cache."""

from __future__ import annotations

import pytest

from gradlint import native


@pytest.fixture(scope="session", autouse=True)
def kernels() -> None:
    """Registers ``torch.ops.gradlint``."""
    native.load_reference()
