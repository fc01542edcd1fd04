"""The reference kernels, built for the CPU once and kept in the build cache."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from gradlint.native.reference import load_reference


@pytest.fixture(scope="session", autouse=True)
def kernels() -> None:
    """Registers ``torch.ops.gradlint``."""
    load_reference()


@pytest.fixture(scope="module", autouse=True)
def threads() -> Iterator[None]:
    """Two threads, however many other tests have: kernels share their work between them."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)
