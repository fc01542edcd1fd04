"""One hostile text through every place where a user's text comes from, in a pipe and in a terminal.

Nothing of it is obeyed: no control character, escape sequence, invisible or bidirectional character
leaves any command, and markup stays text.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import unicodedata
from pathlib import Path

import pytest

from gradlint.base.terminal import escape
from gradlint.cli.console import print_warning
from gradlint.cli.entry import main
from gradlint.report.render import FORMATS
from tests.conftest import OF_THE_TERMINAL, Command, Done

if sys.platform == "win32":
    pytest.skip("pseudo-terminals are those of Unix", allow_module_level=True)

#: A title, concealed text, the same in C1, right to left, no width, no ink, and rich's markup.
H = "[bold]\x1b]0;title\x07\x1b[8m\x9b2J\u202e\u200b\u3164\u2066[link=x]"
#: Not UTF-8, as the words of a command line and the names of files can be.
RAW = H + "\udcff"

#: What gradlint itself has a terminal obey: colours, and the line and bar of progress.
_OWN = re.compile(r"\x1b\[(?:0|(?:[12];)*(?:[12]|3\d|9\d))?m|\x1b\[(?:K|2K|1A|\?25[lh])|\r")

#: Ends what a terminal is given in a test.
_END = b"<end of the test>"

_OPERATOR = """
import torch
from gradlint import __version__

class Op(torch.autograd.Function):
    {doc}
    @staticmethod
    def forward(ctx, x):
        {forward}
        return x * 2

    @staticmethod
    def backward(ctx, g):
        {backward}
        return g * {factor}

    @staticmethod
    def sample_inputs():
        return {{{label}: (torch.tensor([0.5, 0.7], dtype=torch.float64, requires_grad=True),)}}
"""


def _operator(
    doc: str = "''", forward: str = "pass", backward: str = "pass", factor: int = 2,
    label: str = "'usual'",
) -> str:  # fmt: skip
    return _OPERATOR.format(doc=doc, forward=forward, backward=backward, factor=factor, label=label)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files with the hostile text in their names and everywhere in them."""
    here = tmp_path_factory.mktemp("hostile")
    raises = f"raise type('E' + {H!r}, (Exception,), {{}})({H!r} + '\\nsecond ' + {H!r})"
    printed = f"print({H!r}); import sys; print({H!r}, file=sys.stderr)"
    (here / f"a{H}.py").write_text(_operator(doc=repr(H), factor=3, label=repr(H)))
    (here / "forward.py").write_text(_operator(forward=raises))
    (here / "backward.py").write_text(_operator(backward=raises))
    (here / "printing.py").write_text(_operator(forward=printed, factor=3))
    (here / "loading.py").write_text(f"import torch\n{raises}\n" + _operator())
    (here / "broken.py").write_text(f"class Op(torch.autograd.Function):\n  x = '{H}\n")
    quoted = '"[bold]\\e]0;title\\a\\e[8m\\x9b2J\\u202e\\u200b\\u3164\\u2066[link=x]"'
    specs = {
        "key": f"{quoted}: 1\nop: a:b\n",
        "value": f"op: a:b\norder: {quoted}\ndtypes: [{quoted}]\n",
        "names": f'forward: "x"\ninputs: {{{quoted}: {{shape: [N], dtype: {quoted}}}}}\n',
        "dims": f'forward: "x"\ndims: {{{quoted}: 3}}\ninputs: {{x: {{shape: [{quoted}]}}}}\n',
        "formula": f"forward: {quoted}\ninputs: {{x: {{shape: [3], domain: {quoted}}}}}\n",
        "op": f"op: {quoted}\ninputs: {{x: {{shape: [3]}}}}\n",
        "label": f'forward: "x * x"\nbackward: {{x: "grad_output"}}\nname: {quoted}\n'
        f"inputs: {{x: {{shape: [2]}}}}\ncases: [{{label: {quoted}}}]\n",
        "tag": f"op: !x{H[:6]} 1\n",
        "raw": f"op: a:b\nx: '{H}'\n",
        "sources": f"op: a:b\nextension: {{sources: [{quoted}], include_dirs: [{quoted}]}}\n",
    }
    for name, text in specs.items():
        (here / f"{name}.yaml").write_text(text)
    (here / f"b{H}.yaml").write_text('forward: "x"\ninputs: {x: {shape: [2]}}\n')
    (here / f"c{H}\nd.yaml: ok, 1 sample.yaml").write_text("op: 1\n")
    settings = here / "settings"
    settings.mkdir()
    escaped = "".join(c if c.isascii() and c.isprintable() else f"\\u{ord(c):04x}" for c in H)
    (settings / "pyproject.toml").write_text(f'[tool.gradlint]\n"{escaped}" = 1\n')
    value = here / "value"
    value.mkdir()
    (value / "pyproject.toml").write_text(f'[tool.gradlint]\nselect = ["{escaped}"]\n')
    broken = here / "toml"
    broken.mkdir()
    (broken / "pyproject.toml").write_text(f'[tool.gradlint]\n{H} = "\n')
    return here


def _piped(gradlint: Command, folder: Path, *words: str, **variables: str) -> Done:
    return gradlint(folder, *words, **variables)


def _in_terminal(
    monkeypatch: pytest.MonkeyPatch, folder: Path, *words: str, **variables: str
) -> Done:
    """Run the command as in a terminal: both streams are one pseudo-terminal each."""
    ours, theirs = zip(*(os.openpty() for _ in range(2)), strict=True)
    got: list[bytes] = [b"", b""]

    def read(position: int) -> None:
        while not got[position].endswith(_END):  # a worker may hold the other end open
            got[position] += os.read(ours[position], 2**16)

    readers = [
        threading.Thread(target=read, args=(position,), daemon=True) for position in range(2)
    ]
    for reader in readers:
        reader.start()
    streams = [open(handle, "w", encoding="utf-8") for handle in theirs]  # noqa: SIM115
    with monkeypatch.context() as patch:
        patch.chdir(folder)
        for name in OF_THE_TERMINAL:
            patch.delenv(name, raising=False)
        for name, value in {"TERM": "xterm", **variables}.items():
            patch.setenv(name, value)
        patch.setattr(sys, "stdout", streams[0])
        patch.setattr(sys, "stderr", streams[1])
        code = main(words)
    for stream in streams:
        stream.write(_END.decode())
        stream.close()
    for reader in readers:
        reader.join(20)
    for handle in ours:
        os.close(handle)
    texts = [part.removesuffix(_END).decode().replace("\r\n", "\n") for part in got]
    return Done(code, *texts)


def _obeyed(text: str, *, terminal: bool) -> set[str]:
    """Characters of ``text`` that a terminal would obey, but for line ends and our own."""
    rest = _OWN.sub("", text) if terminal else text
    return {char for char in rest if char != "\n" and escape(char) != char}


#: Words of the command → the exit code; ``{}`` stands for a file with the hostile name.
_FLAGS = [
    *("--device", "--dtype", "--select", "--ignore", "--order", "--seed", "--timeout", "--jobs"),
    *("--memory", "--max-calls", "--sanitizer", "--fail-on", "--output-format", "--report"),
    *("--color", "--inputs", "--import", "--config"),
]
WRONG = [
    *(("check", "printing.py", flag, RAW) for flag in _FLAGS),
    *(("sweep", "printing.py", flag, RAW) for flag in ("--steps", "--plot", "--sample", "--dtype")),
    ("check", "printing.py", f"--{RAW}"),
    ("check", "printing.py", "-o", f"{RAW}/x"),
    ("check", "printing.py", "--report", f"json={RAW}/x"),
    ("check", RAW),
    ("check", f"{RAW}.py:Op"),
    ("check", f"printing.py:{RAW}"),
    ("check", f"torch.ops.{RAW}.x"),
    (RAW,),
    ("explain", RAW),
    ("report", RAW),
    ("report", "printing.py"),
    ("report", "printing.py", "--fail-on", RAW),
    ("schema", RAW),
    ("schema", "spec", "-o", f"{RAW}/x"),
    ("rules", RAW),
    ("env", "--output-format", RAW),
    ("validate", RAW),
    ("validate", "."),
    ("validate", "label.yaml", f"b{H}.yaml"),
    ("init", RAW),
    ("init", f"{RAW}.yaml"),
    ("init", "printing.py", "-o", f"{RAW}/x"),
    ("overrides", RAW),
    ("kernels", RAW),
    ("kernels", "bench", "--elements", RAW),
    ("kernels", "bench", "--device", RAW),
    ("kernels", "check", "--select", RAW),
    ("kernels", "compile", "--arch", RAW),
    *(("validate", f"{name}.yaml") for name in ("key", "value", "names", "dims", "formula")),
    *(("validate", f"{name}.yaml") for name in ("op", "tag", "raw", "sources")),
]
_WORDS = pytest.mark.parametrize("words", WRONG, ids=lambda words: escape(" ".join(words))[:60])


@_WORDS
def test_words_are_shown_not_obeyed(
    words: tuple[str, ...], folder: Path, gradlint: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for terminal in (False, True):
        if terminal:
            done = _in_terminal(monkeypatch, folder, *words)
        else:
            done = _piped(gradlint, folder, *words)
        shown = done.stdout + done.stderr
        assert done.returncode in (0, 1, 2, 5)
        assert _obeyed(shown, terminal=terminal) == set()
        assert "\x1b[8m" not in shown
        assert "Traceback" not in shown


#: What runs the operator, or reads it; and where the text comes from.
RUNS = [
    ("check", f"a{H}.py"),
    ("check", f"a{H}.py", "--output-format", "concise"),
    ("check", f"a{H}.py", "--output-format", "json"),
    ("check", "forward.py", "backward.py", "loading.py", "broken.py", "-v"),
    ("check", "printing.py", "label.yaml", "op.yaml", "sources.yaml"),
    ("sweep", f"a{H}.py:Op", "--steps", "5"),
    ("init", f"a{H}.py:Op", "-o", "-"),
    ("overrides", f"a{H}.py:Op"),
]


@pytest.mark.parametrize("words", RUNS, ids=lambda words: escape(" ".join(words))[:60])
@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_operators_are_shown_not_obeyed(
    words: tuple[str, ...],
    terminal: bool,
    folder: Path,
    gradlint: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    more = ("--seed", "0", "--select", "GL401") if words[0] == "check" else ()
    if terminal:
        done = _in_terminal(monkeypatch, folder, *words, *more)
    else:
        done = _piped(gradlint, folder, *words, *more)
    shown = done.stdout + done.stderr
    assert done.returncode in (0, 1, 2)
    assert "internal error" not in shown
    assert "Traceback (most" not in shown.splitlines()
    assert _obeyed(shown, terminal=terminal) == set()
    assert "\x1b[8m" not in shown
    assert "[bold]" in shown


@pytest.fixture(scope="module")
def read_back(folder: Path) -> Path:
    """A report of the operator with the hostile name, which holds the text everywhere."""
    wrong = ("check", f"a{H}.py", "--seed", "0", "--select", "GL401")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main([*wrong, "-q", "--report", f"json={H}.json", "-o", "all.txt"]) == 1
    return folder


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_reports_are_shown_not_obeyed(
    format: str,
    terminal: bool,
    read_back: Path,
    gradlint: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = ("report", f"{H}.json", "--output-format", format)
    if terminal:
        done = _in_terminal(monkeypatch, read_back, *words)
    else:
        done = _piped(gradlint, read_back, *words)
    assert done.returncode == 1
    assert done.stderr == ""
    assert _obeyed(done.stdout, terminal=terminal) == set()
    assert "\x1b[8m" not in done.stdout
    assert "bold" in done.stdout


@pytest.mark.parametrize("name", ["settings", "value", "toml"])
def test_settings_are_shown_not_obeyed(name: str, folder: Path, gradlint: Command) -> None:
    done = gradlint(folder / name, "check", "../printing.py")
    assert done.returncode == 2
    assert _obeyed(done.stdout + done.stderr, terminal=False) == set()
    assert done.stderr.startswith("error: pyproject.toml")


def test_the_environment_is_shown_not_obeyed(folder: Path, gradlint: Command) -> None:
    variables = {f"GRADLINT_A{RAW[:-8]}": "1", "GRADLINT_TIMEOUT": RAW, "COLUMNS": RAW, "CXX": RAW}
    done = gradlint(folder, "check", "printing.py", **variables)
    assert done.returncode == 2
    assert _obeyed(done.stdout + done.stderr, terminal=False) == set()
    assert "warning: environment variable GRADLINT_A[bold]\\x1b]0;title" in done.stderr
    done = gradlint(folder, "env", CXX=RAW, COLUMNS=RAW, TORCH_EXTENSIONS_DIR=RAW)
    assert _obeyed(done.stdout + done.stderr, terminal=False) == set()


def test_a_name_can_not_forge_a_line(folder: Path, gradlint: Command) -> None:
    done = gradlint(folder, "validate", f"c{H}\nd.yaml: ok, 1 sample.yaml", "key.yaml")
    lines = done.stdout.splitlines()
    assert not any(line.startswith("d.yaml") for line in lines)
    assert done.stdout.endswith("2 of 2 specs wrong, 2 mistakes.\n")


def test_endless_lines_are_cut(tmp_path: Path, gradlint: Command) -> None:
    for words in (("check", "x" * 50_000), ("explain", "x" * 50_000), ("check", "--" + "x" * 9999)):
        done = gradlint(tmp_path, *words)
        assert done.returncode == 2
        assert max(map(len, done.stderr.splitlines())) < 2100


def test_width_counts_what_is_shown(tmp_path: Path, gradlint: Command) -> None:
    # Wide characters take two columns, escapes as many as they have letters. What an exception
    # said, and the line that raised it, stand as they are.
    raises = f"raise ValueError('你好 ' * 60 + {H!r})"
    (tmp_path / "op.py").write_text(_operator(forward=raises))
    done = gradlint(tmp_path, "check", "op.py", "--seed", "0", COLUMNS="60")
    whole = ("original", "traceback")
    wide = [
        sum(1 + (unicodedata.east_asian_width(char) in "WF") for char in line)
        for line in done.stdout.splitlines()
        if "你" in line and not line.strip().startswith(whole)
    ]
    assert wide
    assert max(wide) <= 60


def test_an_error_is_no_command_of_a_ci_system(capsys: pytest.CaptureFixture[str]) -> None:
    print_warning("first\n::error::second\n ##[group]third")
    assert capsys.readouterr().err == (
        "warning: first\n  \\x3a:error::second\n   \\x23#[group]third\n"
    )
