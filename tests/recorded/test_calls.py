"""Which calls stand for all, and files of a recording that are none."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import torch

from gradlint.recorded.calls import Call, as_sample, clusters, representative
from gradlint.recorded.read import read_recording
from gradlint.recorded.written import block_of


def call(number: int, *args: Any, grad: bool = True) -> Call:
    """A call; a list of sizes is a tensor, anything else itself."""
    given, tensors, values = [], [], []
    for value in args:
        if isinstance(value, torch.Tensor):
            given.append(["tensor", len(tensors)])
            entry = {"shape": list(value.shape), "dtype": str(value.dtype)[6:]}
            tensors.append(
                {**entry, "requires_grad": grad and value.is_floating_point(), "layout": "strided"}
            )
            values.append(value)
        else:
            given.append(["plain", value])
    return Call(number, given, {}, tensors, values, {"grad": grad})


def test_sizes_and_many_numbers_make_no_kinds() -> None:
    calls = [call(n, torch.ones(n, 3), n) for n in range(2, 9)]
    (cluster,) = clusters(calls)
    assert len(cluster.calls) == 7


def test_options_ranks_and_left_out_arguments_do() -> None:
    x = torch.ones(4, 3)
    calls = [
        *(call(1, x, "mean"), call(2, x, "sum"), call(3, x, "sum")),
        *(call(4, x[0], "sum"), call(5, x), call(6, x, None), call(7, x[:, :1], "sum")),
    ]
    found = clusters(calls)
    assert [item.number for item in found[0].calls] == [2, 3]
    shown = {cluster.calls[0].number for cluster in representative(found)}
    assert shown == {1, 2, 4, 5, 6, 7}


def test_what_was_differentiated_comes_first() -> None:
    x = torch.ones(4, 3)
    found = clusters([call(1, x, grad=False), call(2, x, grad=False), call(3, x[0])])
    assert representative(found)[0].calls[0].number == 3


def test_a_tensor_that_requires_grad_once_requires_it() -> None:
    x = torch.ones(4, 3)
    (cluster,) = clusters([call(1, x, grad=False), call(2, x)])
    made = as_sample(cluster.calls[0], cluster, 0)
    assert made.args[0].requires_grad


@pytest.mark.parametrize(
    ("shape", "kept"),
    [
        ([], []),
        ([3, 4], [3, 4]),
        ([2_500_000_000], [16384]),
        ([50_000, 8192], [2, 8192]),  # rows whole, where two of them fit
        ([50_000, 60_000], [2, 8192]),
        ([1, 60_000], [1, 16384]),
        ([40, 50, 60, 70], [2, 2, 58, 70]),
        ([0, 60_000], [0, 16384]),
    ],
)
def test_no_axis_of_a_large_tensor_shrinks_to_one(shape: list[int], kept: list[int]) -> None:
    assert block_of(shape) == kept


def test_integers_point_into_what_was_kept() -> None:
    table = torch.arange(8.0).reshape(4, 2)
    one = call(1, table, torch.tensor([0, 97, 6]))
    one.tensors[0] |= {"shape": [100, 2], "block": [4, 2]}
    (cluster,) = clusters([one])
    made = as_sample(one, cluster, 0)
    assert made.args[0].shape == (4, 2)
    assert made.args[1].tolist() == [0, 97 % 4, 6 % 4]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 40,
        struct.pack(">IQ", 2, 0) + b"[]",
        struct.pack(">IQ", 4, 0) + b"null",
        struct.pack(">IQ", 2, 0) + b"{}",
        struct.pack(">IQ", 200_000, 0) + b"[" * 200_000,
    ],
)
def test_a_file_that_is_no_call_is_counted(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "1-1-000001.call").write_bytes(content)
    (tmp_path / "1-1-000002.call.part").write_bytes(b"not finished")
    text = json.dumps({"process": "1-1", "ops": []}).encode()
    (tmp_path / "1-1-000003.end").write_bytes(struct.pack(">IQ", len(text), 0) + text)
    found = read_recording(str(tmp_path))
    assert (found.operators, found.unreadable) == ([], 1)
