"""The language server, asked by a client that knows nothing of it but the protocol."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
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


#: Before the faulty expression stand a letter of two bytes, two of three and one of four, which
#: has two units of UTF-16.
BEFORE = "; 'é中文😀'; "
STRANGE = WRONG.replace("        return grad_output", f"        pass{BEFORE}return grad_output")


@pytest.mark.parametrize(
    ("encodings", "column"),
    [(None, 30), (["utf-16"], 30), (["utf-32", "utf-16"], 29), (["utf-8", "utf-16"], 37)],
)
def test_columns_are_counted_as_the_client_does(
    tmp_path: Path, encodings: list[str] | None, column: int
) -> None:
    path = tmp_path / "squares.py"
    path.write_text(STRANGE, encoding="utf-8")
    line = STRANGE.splitlines()[12]
    assert line.index("grad_output * x") == 29
    client = Client(tmp_path, "--select", "GL4", "--seed", "1")
    capabilities = {"general": {"positionEncodings": encodings}} if encodings else {}
    try:
        root = {"processId": os.getpid(), "rootUri": tmp_path.as_uri()}
        told = client.ask("initialize", {**root, "capabilities": capabilities})
        chosen = told["capabilities"]["positionEncoding"]
        assert chosen == (encodings[0] if encodings else "utf-16")
        client.tell("initialized", {})
        client.tell("textDocument/didOpen", {"textDocument": document(path)})
        (one,) = client.told("textDocument/publishDiagnostics")["diagnostics"]
        assert one["range"]["start"] == {"line": 12, "character": column}
        assert one["range"]["end"] == {"line": 12, "character": column + len("grad_output * x")}
        at = {"textDocument": {"uri": path.as_uri()}, "position": one["range"]["start"]}
        assert "GL401" in client.ask("textDocument/hover", at)["contents"]["value"]
        beyond = column + line.index("GL302") - 29 + len("GL302")
        at["position"] = {"line": 12, "character": beyond}
        assert "GL302" in client.ask("textDocument/hover", at)["contents"]["value"]
        assert client.end() == 0
    finally:
        client.kill()


def change(path: Path, version: int, text: str) -> dict[str, Any]:
    return {
        "textDocument": {"uri": path.as_uri(), "version": version},
        "contentChanges": [{"text": text}],
    }


def test_what_is_typed_is_not_judged(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "squares.py"
    path.write_text(WRONG)
    client.tell("textDocument/didOpen", {"textDocument": document(path)})
    (one,) = client.told("textDocument/publishDiagnostics")["diagnostics"]
    at = {"textDocument": {"uri": path.as_uri()}, "position": one["range"]["start"]}
    asked = {**at, "range": one["range"], "context": {"diagnostics": [one]}}
    client.tell("textDocument/didChange", change(path, 2, WRONG.replace("* x  #", "* 2 * x  #")))
    said = client.told("window/logMessage")["message"]
    while "has changed since it was saved" not in said:  # a verified change may be told before
        said = client.told("window/logMessage")["message"]
    hover = client.ask("textDocument/hover", at)["contents"]["value"]
    assert hover.startswith("*the text has changed since it was saved")
    assert client.ask("textDocument/codeAction", asked) == []
    client.tell("textDocument/didChange", change(path, 3, WRONG))
    assert client.ask("textDocument/hover", at)["contents"]["value"].startswith("**GL401")
    assert client.end() == 0


def test_files_that_are_not_there_are_let_be(client: Client, tmp_path: Path) -> None:
    for uri in ("untitled:Untitled-1", (tmp_path / "gone.py").as_uri(), "http://a.example/b.py"):
        item = {"uri": uri, "languageId": "python", "version": 1, "text": "# GL401\n"}
        client.tell("textDocument/didOpen", {"textDocument": item})
        client.tell("textDocument/didSave", {"textDocument": {"uri": uri}})
        at = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 3}}
        assert "GL401" in client.ask("textDocument/hover", at)["contents"]["value"]
        at["position"] = {"line": 9, "character": 0}
        assert client.ask("textDocument/hover", at) is None
        asked = {
            "textDocument": {"uri": uri},
            "range": {"start": at["position"], "end": at["position"]},
            "context": {"diagnostics": []},
        }
        assert client.ask("textDocument/codeAction", asked) == []
    assert client.end() == 0


def test_a_syntax_error_is_shown_at_its_line(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "squares.py"
    path.write_text(WRONG.replace("return x * x", "return x *"))
    client.tell("textDocument/didOpen", {"textDocument": document(path)})
    (one,) = client.told("textDocument/publishDiagnostics")["diagnostics"]
    assert (one["code"], one["range"]["start"]["line"]) == ("GL001", 7)
    path.write_text(WRONG)
    client.tell("textDocument/didSave", {"textDocument": {"uri": path.as_uri()}})
    codes = [d["code"] for d in client.told("textDocument/publishDiagnostics")["diagnostics"]]
    assert codes == ["GL401"]
    assert client.end() == 0


def test_two_files_at_once(client: Client, tmp_path: Path) -> None:
    paths = [tmp_path / "squares.py", tmp_path / "others.py"]
    for path, text in zip(paths, (WRONG, WRONG.replace("Square", "Other")), strict=True):
        path.write_text(text)
        client.tell("textDocument/didOpen", {"textDocument": document(path)})
    shown = [client.told("textDocument/publishDiagnostics") for _ in paths]
    assert {one["uri"] for one in shown} == {path.as_uri() for path in paths}
    assert [[d["code"] for d in one["diagnostics"]] for one in shown] == [["GL401"], ["GL401"]]
    assert client.end() == 0


def test_the_end_leaves_no_process(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "slow.py"
    told = tmp_path / "pid"
    path.write_text(
        f"import os, pathlib, time\npathlib.Path({str(told)!r}).write_text(str(os.getpid()))\n"
        f"time.sleep({PATIENCE})\n{WRONG}"
    )
    client.tell("textDocument/didOpen", {"textDocument": document(path)})
    while not told.exists() or not told.read_text():
        time.sleep(0.05)
    worker = Path("/proc", told.read_text())
    assert worker.exists()
    assert client.end() == 0
    limit = time.monotonic() + PATIENCE / 2
    while worker.exists() and time.monotonic() < limit:
        time.sleep(0.05)
    assert not worker.exists()


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        (Location("a.py", 3, 5, 3, 9), (2, 4, 2, 8)),
        (Location("a.py", 3, 5), (2, 4, 3, 0)),
        (Location("a.py", 3, 5, 4, None), (2, 4, 4, 0)),
        (Location("a.py", 2, 2, 2, 4), (1, 2, 1, 4)),
        (Location("a.py", 2, 9, 7, 2), (1, 9, 6, 1)),
    ],
)
def test_places_count_from_zero(location: Location, expected: tuple[int, ...]) -> None:
    found = span(location, ["", "😀ab"], utf16)
    ends = (found.start.line, found.start.character, found.end.line, found.end.character)
    assert ends == expected
