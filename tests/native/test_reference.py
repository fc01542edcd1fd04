"""What the library of reference operators is made of, and where CUDA's part can't be built."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gradlint.native import _tools
from gradlint.native import reference as _reference
from gradlint.native.errors import BuildError
from gradlint.native.reference import (
    check_cuda,
    recipe,
    usable_devices,
    why_no_cuda,
)
from gradlint.native.roots import kernels_root


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch for CUDA 12.4 with a GPU and its toolkit, as far as anyone asks."""
    monkeypatch.setattr(torch.version, "cuda", "12.4")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(_tools, "nvcc", lambda: _tools.Tool("/cuda/bin/nvcc", "12.6.20"))


def test_sources_are_every_kernel_and_every_binding() -> None:
    root = kernels_root()
    made = recipe(("cpu",))
    assert made.host_sources == tuple(path.name for path in sorted(root.glob("*.cu")))
    assert set(made.sources) == {f"bind/{path.name}" for path in root.glob("bind/*.cpp")}
    assert (made.with_cuda, "-DGRADLINT_CUDA" in made.cflags) == (False, False)


@pytest.mark.usefixtures("cuda")
def test_with_cuda_kernels_are_compiled_for_both() -> None:
    assert usable_devices() == ("cpu", "cuda")
    made = recipe()
    assert made.with_cuda
    assert "-DGRADLINT_CUDA" in made.cflags
    assert set(made.host_sources) < set(made.sources)
    assert not recipe(("cpu",)).with_cuda


@pytest.mark.usefixtures("cuda")
def test_minor_versions_of_cuda_may_differ_major_ones_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert why_no_cuda() is None
    monkeypatch.setattr(_tools, "nvcc", lambda: _tools.Tool("/cuda/bin/nvcc", "13.0.88"))
    with pytest.raises(BuildError) as caught:
        check_cuda()
    assert caught.value.message == (
        "nvcc belongs to CUDA 13.0.88 (/cuda/bin/nvcc), torch is built for CUDA 12.4"
    )
    assert caught.value.hint.startswith("install the toolkit of CUDA 12.4 and set CUDA_HOME")
    # Not asked for, it is left out: the CPU's operators can be built all the same.
    assert not recipe().with_cuda
    with pytest.raises(BuildError, match=r"nvcc belongs to CUDA 13\.0\.88"):
        recipe(("cuda",))


@pytest.mark.usefixtures("cuda")
def test_without_nvcc_or_without_a_torch_for_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tools, "nvcc", lambda: None)
    with pytest.raises(BuildError, match="nvcc, CUDA's compiler, is not found"):
        recipe(("cpu", "cuda"))
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(BuildError, match="is built without CUDA") as caught:
        recipe(("cpu", "cuda"))
    assert "or leave out the device cuda" in caught.value.hint


@pytest.mark.usefixtures("cuda")
def test_without_a_gpu_an_architecture_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(_tools, "nvcc", lambda: _tools.Tool("/cuda/bin/nvcc", "12.4.131"))
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST", raising=False)
    with pytest.raises(BuildError, match="torch finds no GPU here") as caught:
        check_cuda()
    assert "TORCH_CUDA_ARCH_LIST=9.0" in caught.value.hint
    assert not recipe().with_cuda
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0")
    check_cuda()
    assert recipe(("cuda",)).with_cuda


def test_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    library = Path("/cache/gradlint_reference.so")
    monkeypatch.setattr(_reference, "_loaded", {})
    monkeypatch.setattr(_reference, "build_reference", lambda *_, **__: library)
    monkeypatch.setattr(torch.ops, "load_library", loaded.append)
    assert _reference.load_reference() == library
    assert _reference.load_reference() == library
    assert loaded == [str(library)]


def test_a_library_for_another_torch_is_built_again(monkeypatch: pytest.MonkeyPatch) -> None:
    forced: list[bool] = []

    def build(*_: object, force: bool = False) -> Path:
        forced.append(force)
        return Path("/cache/gradlint_reference.so")

    def load(path: str) -> None:
        if len(forced) < 3:
            raise OSError("Could not load") from OSError(f"{path}: undefined symbol: _ZN3c10")

    monkeypatch.setattr(_reference, "_loaded", {})
    monkeypatch.setattr(_reference, "build_reference", build)
    monkeypatch.setattr(torch.ops, "load_library", load)
    with pytest.raises(BuildError, match=r"was built but can't be loaded: .*undefined symbol"):
        _reference.load_reference()
    assert forced == [False, True]
    _reference.load_reference()
