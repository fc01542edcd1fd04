"""The language server, asked by a client that knows nothing of it but the protocol."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradlint.model.report import Location
from gradlint.serving import span

#: Seconds in which an answer must have come: as long as a run of the tests may be slowed down.
PATIENCE = 300

WRONG = """\
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x  # GL302 is not meant
"""


class Client:
    """Speaks JSON-RPC over pipes."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gradlint", "serve", *words],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._number = 0
        self._notes: list[dict[str, Any]] = []
        self._limit = threading.Timer(PATIENCE, self._process.kill)
        self._limit.start()

    def ask(self, method: str, params: Any) -> Any:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while (message := self._read()).get("id") != self._number or "method" in message:
            self._notes.append(message)
        assert "error" not in message, message
        return message["result"]

    def tell(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def told(self, method: str) -> Any:
        """What the next notification of this kind says."""
        for place, message in enumerate(self._notes):
            if message.get("method") == method:
                return self._notes.pop(place)["params"]
        while (message := self._read()).get("method") != method:
            self._notes.append(message)
        return message["params"]

    def end(self) -> int:
        self.ask("shutdown", None)
        self.tell("exit", None)
        code = self._process.wait()
        self.kill()
        return code

    def kill(self) -> None:
        self._limit.cancel()
        self._process.kill()

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        stream = self._process.stdout
        assert stream is not None
        size = 0
        while line := stream.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                size = int(value)
        assert size, "the server ended"
        found: dict[str, Any] = json.loads(stream.read(size))
        return found


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    made = Client(tmp_path, "--select", "GL4", "--seed", "1")
    try:
        made.ask(
            "initialize",
            {"processId": os.getpid(), "rootUri": tmp_path.as_uri(), "capabilities": {}},
        )
        made.tell("initialized", {})
        yield made
    finally:
        made.kill()


def document(path: Path) -> dict[str, Any]:
    return {"uri": path.as_uri(), "languageId": "python", "version": 1, "text": path.read_text()}


def test_findings_come_and_go(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "squares.py"
    path.write_text(WRONG)
    client.tell("textDocument/didOpen", {"textDocument": document(path)})
    shown = client.told("textDocument/publishDiagnostics")
    assert shown["uri"] == path.as_uri()
    (one,) = shown["diagnostics"]
    assert (one["code"], one["severity"], one["source"]) == ("GL401", 1, "gradlint")
    assert one["message"].startswith("wrong gradient for `x`")
    assert one["range"] == {
        "start": {"line": 12, "character": 15},
        "end": {"line": 12, "character": 30},
    }

    at = {"textDocument": {"uri": path.as_uri()}, "position": {"line": 12, "character": 20}}
    hover = client.ask("textDocument/hover", at)
    assert hover["contents"]["value"].startswith("**GL401 wrong gradient")
    at["position"] = {"line": 12, "character": 36}
    assert "GL302" in client.ask("textDocument/hover", at)["contents"]["value"]
    at["position"] = {"line": 0, "character": 0}
    assert client.ask("textDocument/hover", at) is None

    path.write_text(WRONG.replace("* x  #", "* 2 * x  #"))
    client.tell("textDocument/didSave", {"textDocument": {"uri": path.as_uri()}})
    assert client.told("textDocument/publishDiagnostics")["diagnostics"] == []
    assert client.end() == 0


def test_a_verified_change_is_offered(client: Client, tmp_path: Path) -> None:
    pytest.importorskip("libcst")
    path = tmp_path / "squares.py"
    path.write_text(WRONG.replace("grad_output * x", "-2 * grad_output * x"))
    client.tell("textDocument/didOpen", {"textDocument": document(path)})
    (one,) = client.told("textDocument/publishDiagnostics")["diagnostics"]
    asked = {
        "textDocument": {"uri": path.as_uri()},
        "range": one["range"],
        "context": {"diagnostics": [one]},
    }
    # The change is searched for after the findings are shown; the message says when it is there.
    client.told("window/logMessage")
    (action,) = client.ask("textDocument/codeAction", asked)
    assert "verified:" in action["title"]
    (edits,) = action["edit"]["changes"].values()
    lines = path.read_text().splitlines(keepends=True)
    for edit in reversed(edits):
        start, end = edit["range"]["start"], edit["range"]["end"]
        assert start["line"] == end["line"]
        line = lines[start["line"]]
        lines[start["line"]] = (
            line[: start["character"]] + edit["newText"] + line[end["character"] :]
        )
    exec("".join(lines), space := {"__name__": "mended"})
    torch = space["torch"]
    x = torch.tensor([3.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(space["Square"].apply, (x,))


def test_files_without_operators_and_broken_ones(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "plain.py"
    path.write_text("x = 1\n")
    client.tell("textDocument/didOpen", {"textDocument": document(path)})
    assert client.told("textDocument/publishDiagnostics")["diagnostics"] == []
    path.write_text("import nothing_of_this_name\n" + WRONG)
    client.tell("textDocument/didSave", {"textDocument": {"uri": path.as_uri()}})
    codes = [d["code"] for d in client.told("textDocument/publishDiagnostics")["diagnostics"]]
    assert codes == ["GL001"]
    assert client.end() == 0


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        (Location("a.py", 3, 5, 3, 9), (2, 4, 2, 8)),
        (Location("a.py", 3, 5), (2, 4, 3, 0)),
        (Location("a.py", 3, 5, 4, None), (2, 4, 4, 0)),
    ],
)
def test_places_count_from_zero(location: Location, expected: tuple[int, ...]) -> None:
    found = span(location)
    ends = (found.start.line, found.start.character, found.end.line, found.end.character)
    assert ends == expected
