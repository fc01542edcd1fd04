"""Messages to and from an op's process: what is sent arrives, and nothing else gets through."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from gradlint.ops import bare

TENSORS = [
    torch.linspace(-1.0, 1.0, 6, dtype=torch.float64).reshape(2, 3).mT,
    torch.tensor([1 + 2j, 3 - 4j]).conj(),
    torch.tensor([[True], [False]]),
    torch.tensor(7),
    torch.empty(0, 3, dtype=torch.bfloat16),
]


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for fd in (reader, writer):
        os.close(fd)


def test_what_is_sent_arrives(pipe: tuple[int, int]) -> None:
    bare.send(pipe[1], {"ask": "é"}, TENSORS)
    header, found = bare.receive(pipe[0])
    assert header["ask"] == "é"
    assert [tensor.dtype for tensor in found] == [tensor.dtype for tensor in TENSORS]
    assert all(map(torch.equal, found, TENSORS))


def test_only_dense_tensors_are_sent(pipe: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="sparse_coo"):
        bare.send(pipe[1], {}, [torch.eye(2).to_sparse()])


@pytest.mark.parametrize(
    ("header", "body", "words"),
    [
        ([], b"", "without arrays"),
        ({}, b"", "without arrays"),
        ({"arrays": [["float64"]]}, b"", "without dtype"),
        ({"arrays": [["object", [1]]]}, b"", "without dtype"),
        ({"arrays": [["float64", [-1]]]}, b"", "shape"),
        ({"arrays": [["float64", [True]]]}, bytes(8), "shape"),
        ({"arrays": [["float64", [1 << 62]]]}, bytes(8), "longer"),
        ({"arrays": [["float64", [0, 1 << 62]]]}, b"", "longer"),
        ({"arrays": [["float64", [2]]]}, bytes(8), "longer"),
        ({"arrays": [["float64", [1]]]}, bytes(9), "more came"),
    ],
)
def test_what_does_not_fit_is_refused(header: Any, body: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        bare.unpacked(header, body)


@pytest.mark.parametrize(
    ("stream", "error"),
    [
        (struct.pack(">IQ", bare.MOST_HEADER + 1, 0), ValueError),
        (struct.pack(">IQ", 2, bare.MOST_ARRAYS + 1), ValueError),
        (struct.pack(">IQ", 3, 0) + b"{]}", ValueError),
        (struct.pack(">IQ", 200_000, 0) + b"[" * 200_000, ValueError),
        (struct.pack(">IQ", 9, 0) + b"{}", EOFError),
        (b"", EOFError),
    ],
)
def test_streams_that_are_no_message(tmp_path: Any, stream: bytes, error: type) -> None:
    path = tmp_path / "stream"
    path.write_bytes(stream)
    with path.open("rb") as file, pytest.raises(error):
        bare.receive(file.fileno())


def test_as_a_program_of_its_own(tmp_path: Any) -> None:
    """As where there is no fork server: it needs nothing of gradlint."""
    (tmp_path / "triple.py").write_text(
        "import sys\nassert not any('gradlint' == m.partition('.')[0] for m in sys.modules)\n"
        "def op(x, n, *, names):\n    return {'a': x ** n, 'b': names}\n"
    )
    request = {
        "folder": str(tmp_path),
        "environment": dict(os.environ),
        "sys_path": [str(tmp_path), *sys.path],
        "imports": [],
        "file": "",
        "name": "triple",
        "attribute": ["op"],
        "args": ["tuple", [["tensor", 0], ["plain", 3]]],
        "kwargs": ["dict", [["names", ["list", [["dtype", "int64"]]]]]],
        "inputs": [0],
        "state": {},
        "constructor": ["dict", []],
        "module": False,
        "stateful": False,
        "in_place": False,
        "seed": 1,
        "memory_mb": None,
    }
    x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    text = Path(bare.__file__).read_text(encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, "-c", f"{text}\nmain()\n"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        reader, writer = program.stdout.fileno(), program.stdin.fileno()
        bare.send(writer, request, [x])
        assert bare.receive(reader) == ({"held": False, "arrays": []}, [])
        bare.send(writer, {"ask": "outputs"}, [x])
        header, (output,) = bare.receive(reader)
        assert (header["differentiable"], output.tolist()) == ([True], [1.0, 8.0])
        bare.send(writer, {"ask": "gradients", "count": 1}, [x, torch.ones_like(x)])
        header, (gradient,) = bare.receive(reader)
        assert (header["given"], gradient.tolist()) == ([True], [3.0, 12.0])
        bare.send(writer, {"ask": "outputs"}, [x, x])
        header, _ = bare.receive(reader)
        assert "ValueError" in header["error"]
        # Another call of the module, which is not imported again.
        squared = {**request, "args": ["tuple", [["tensor", 0], ["plain", 2]]], "ask": "load"}
        bare.send(writer, squared, [x])
        assert bare.receive(reader) == ({"held": True, "arrays": []}, [])
        bare.send(writer, {"ask": "outputs"}, [x])
        assert bare.receive(reader)[1][0].tolist() == [1.0, 4.0]
        bare.send(writer, {**squared, "attribute": ["absent"]}, [x])
        assert "AttributeError" in bare.receive(reader)[0]["error"]
        assert program.wait(60) == 0
