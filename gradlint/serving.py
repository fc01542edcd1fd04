"""A server for editors and agents (LSP): findings at their lines, what a rule says, and fixes.

Checks run one after the other in a thread of their own: those of a file when it is opened or
saved. The text of the file counts, not what is typed and not saved yet; where the two differ, this
is said. Columns are counted as the client asks for: in code units of UTF-16 unless it prefers
others (LSP 3.17, ``positionEncodings``).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import queue
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

import gradlint
from gradlint.base.text import error_line
from gradlint.model.report import Finding, Location, Severity
from gradlint.model.settings import Settings
from gradlint.repair.mend import fixes
from gradlint.report.wording import rule_title
from gradlint.rules.catalogue import CATALOGUE
from gradlint.running.run import Run, execute
from gradlint.targets.resolve import holds_operators
from gradlint.targets.source_file import read_shown_source

_LEVELS: dict[Severity, types.DiagnosticSeverity] = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}

#: A code of a rule in a text.
_CODE = re.compile(r"GL\d{3}")

_SOURCE = "gradlint"

_NOT_SAVED = (
    "the text has changed since it was saved: what is shown was found in the saved file, and what "
    "is typed is checked once it is saved"
)

#: How many units of the client's a text has.
Units = Callable[[str], int]


@dataclass(frozen=True)
class Placed:
    """A finding, and where the editor shows it; nowhere if it has no place in a file."""

    finding: Finding
    where: types.Range | None


@dataclass
class Seen:
    """What is known of one file.

    Args:
        stamp: of its text when it was checked.
        placed: the findings of the operators that it defines.
    """

    stamp: str = ""
    placed: list[Placed] = field(default_factory=list)


class Server:
    """The language server, and what it knows.

    Args:
        settings: of every check.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._language = LanguageServer(_SOURCE, gradlint.__version__)
        self._waiting: queue.Queue[str | None] = queue.Queue()
        self._seen: dict[str, Seen] = {}
        self._shown: dict[str, set[str]] = {}
        self._unsaved: set[str] = set()
        self._register()

    def run(self, stdin: BinaryIO, stdout: BinaryIO) -> None:
        """Serve until the client ends."""
        worker = threading.Thread(target=self._work, daemon=True)
        worker.start()
        try:
            self._language.start_io(stdin, stdout)
        finally:
            self._waiting.put(None)

    # -- what the client asks ------------------------------------------------------------------

    def _register(self) -> None:
        self._on(types.TEXT_DOCUMENT_DID_OPEN, self._opened)
        self._on(types.TEXT_DOCUMENT_DID_CHANGE, self._changed)
        self._on(types.TEXT_DOCUMENT_DID_SAVE, self._saved)
        self._on(types.TEXT_DOCUMENT_DID_CLOSE, self._closed)
        self._on(types.TEXT_DOCUMENT_HOVER, self._hover)
        kinds = types.CodeActionOptions([types.CodeActionKind.QuickFix])
        self._on(types.TEXT_DOCUMENT_CODE_ACTION, self._actions, kinds)

    def _on(self, name: str, method: Callable[[Any], Any], options: Any = None) -> None:
        def answer(params: Any) -> Any:
            return method(params)

        # pygls notes things on what it is given, which a method does not allow.
        self._language.feature(name, options)(answer)

    def _opened(self, params: types.DidOpenTextDocumentParams) -> None:
        self._ask(params.text_document.uri)

    def _changed(self, params: types.DidChangeTextDocumentParams) -> None:
        """Say once, until it is saved, that what is typed is not what was checked."""
        uri = params.text_document.uri
        path = to_fs_path(uri) or ""
        if path in self._seen and path not in self._unsaved and not self._as_checked(uri):
            self._unsaved.add(path)
            self._say(f"{path}: {_NOT_SAVED}", types.MessageType.Info)

    def _saved(self, params: types.DidSaveTextDocumentParams) -> None:
        self._unsaved.discard(to_fs_path(params.text_document.uri) or "")
        self._ask(params.text_document.uri)

    def _closed(self, params: types.DidCloseTextDocumentParams) -> None:
        path = to_fs_path(params.text_document.uri)
        if path:
            self._unsaved.discard(path)
            self._publish(path, [])

    def _as_checked(self, uri: str) -> bool:
        """Whether the editor holds the text that was checked."""
        seen = self._seen.get(to_fs_path(uri) or "")
        return seen is not None and seen.stamp == stamp(self._text(uri).encode())

    def _text(self, uri: str) -> str:
        return str(self._language.workspace.get_text_document(uri).source)

    def _units(self, text: str) -> int:
        return int(self._language.workspace.position_codec.client_num_units(text))

    def _ask(self, uri: str) -> None:
        path = to_fs_path(uri)
        if path and path.endswith((".py", ".yaml", ".yml")) and os.path.isfile(path):
            self._waiting.put(path)

    def _hover(self, params: types.HoverParams) -> types.Hover | None:
        position, uri = params.position, params.text_document.uri
        if self._known(uri):
            for one in self._seen[to_fs_path(uri) or ""].placed:
                if one.where is not None and _holds(one.where, position):
                    note = "" if self._as_checked(uri) else f"*{_NOT_SAVED}*\n\n"
                    return _explained(one.finding.code, one.where, note)
        with suppress(IndexError, OSError):
            line = lines_of(self._text(uri))[position.line]
            for found in _CODE.finditer(line):
                first, last = (self._units(line[:end]) for end in found.span())
                if first <= position.character <= last:
                    return _explained(found[0], None)
        return None

    def _known(self, uri: str) -> bool:
        return (to_fs_path(uri) or "") in self._seen

    def _actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """The verified changes for findings in the range that was asked for, as long as the text
        is the one that was checked."""
        uri = params.text_document.uri
        if not self._known(uri) or not self._as_checked(uri):
            return []
        found = []
        for one in self._seen[to_fs_path(uri) or ""].placed:
            fix = one.finding.fix
            if fix is None or one.where is None or not _meet(one.where, params.range):
                continue
            changes: dict[str, list[types.TextEdit]] = {}
            for part in fix.replacements:
                file = from_fs_path(os.path.abspath(part.location.file)) or ""
                where = span(part.location, _lines_at(part.location.file), self._units)
                changes.setdefault(file, []).append(types.TextEdit(where, part.text))
            title = "; ".join(fix.titles)
            found.append(
                types.CodeAction(
                    f"{title} (verified: {fix.checks} checks pass with this change)",
                    kind=types.CodeActionKind.QuickFix,
                    diagnostics=[diagnostic(one)],
                    edit=types.WorkspaceEdit(changes=changes),
                )
            )
        return found

    # -- checks ------------------------------------------------------------------------------------

    def _work(self) -> None:
        while (path := self._waiting.get()) is not None:
            if path in list(self._waiting.queue):
                continue  # it was saved again
            try:
                self._check(path)
            except Exception as error:  # the next save is checked all the same
                self._say(f"{path}: gradlint failed: {error_line(error)}")

    def _check(self, path: str) -> None:
        with open(path, "rb") as file:
            read = stamp(file.read())
        if not holds_operators(path):
            self._seen[path] = Seen(read)
            self._publish(path, [])
            return
        run = execute([path], self._settings)
        for error in run.usage:
            self._say(str(error))
        placed = [self._placed(finding) for finding in run.report.findings]
        self._seen[path] = Seen(read, [one for one in placed if _is_in(one.finding, path)])
        self._publish(path, placed)
        if self._can_fix(run) and self._waiting.empty():
            found = [one for one in fixes(run.report, self._settings) if one.fix is not None]
            if found:
                self._say(
                    f"{path}: verified changes for {', '.join(one.target for one in found)}",
                    types.MessageType.Info,
                )

    @staticmethod
    def _can_fix(run: Run) -> bool:
        installed = importlib.util.find_spec("libcst") is not None
        return installed and any(finding.severity != "info" for finding in run.report.findings)

    def _placed(self, finding: Finding) -> Placed:
        place = finding.location
        if place is None:
            return Placed(finding, None)
        return Placed(finding, span(place, _lines_at(place.file), self._units))

    def _publish(self, path: str, placed: Sequence[Placed]) -> None:
        """Show findings at their lines, in ``path`` and in the other files where they are, and
        take away what an earlier check of ``path`` showed."""
        by_file: dict[str, list[types.Diagnostic]] = {path: []}
        for one in placed:
            place = one.finding.location
            file = os.path.abspath(place.file) if place is not None else path
            by_file.setdefault(file, []).append(diagnostic(one))
        for file in self._shown.get(path, set()):
            by_file.setdefault(file, [])
        self._shown[path] = {file for file, items in by_file.items() if items}
        for file, items in by_file.items():
            self._language.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(from_fs_path(file) or "", items)
            )

    def _say(self, text: str, level: types.MessageType = types.MessageType.Warning) -> None:
        self._language.window_log_message(types.LogMessageParams(level, text))


def stamp(text: bytes) -> str:
    """By what one text of a file is told from another."""
    return hashlib.sha256(text.replace(b"\r\n", b"\n")).hexdigest()


def span(location: Location, lines: Sequence[str], units: Units) -> types.Range:
    """``location``, which counts characters from 1, as LSP counts.

    Args:
        lines: of the file.
        units: how many of the units in which the client counts a text has.
    """

    def at(line: int, column: int) -> types.Position:
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        beyond = max(column - 1 - len(text), 0)
        return types.Position(max(line - 1, 0), units(text[: max(column - 1, 0)]) + beyond)

    first = at(location.line, location.column)
    line = location.end_line or location.line
    if location.end_column is None:
        return types.Range(first, types.Position(max(line - 1, first.line) + 1, 0))
    return types.Range(first, at(line, location.end_column))


def lines_of(text: str) -> list[str]:
    """The lines of ``text`` as LSP counts them: other characters that end one elsewhere do not."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _lines_at(path: str) -> list[str]:
    source = read_shown_source(path)
    return source.lines if source is not None else []


def diagnostic(one: Placed) -> types.Diagnostic:
    """A finding as an editor shows it."""
    finding = one.finding
    lines = [finding.message, finding.cause_text, finding.help and f"help: {finding.help}"]
    nowhere = types.Range(types.Position(0, 0), types.Position(0, 1))
    return types.Diagnostic(
        one.where if one.where is not None else nowhere,
        "\n".join(line for line in lines if line),
        severity=_LEVELS[finding.severity],
        code=finding.code,
        source=_SOURCE,
    )


def _is_in(finding: Finding, path: str) -> bool:
    return finding.location is None or os.path.abspath(finding.location.file) == path


def _explained(code: str, where: types.Range | None, note: str = "") -> types.Hover | None:
    rule = next((rule for rule in CATALOGUE if rule.code == code), None)
    if rule is None:
        return None
    text = f"{note}**{rule_title(rule.code, rule.name)}**\n\n{rule.text.strip()}"
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), where)


def _holds(where: types.Range, position: types.Position) -> bool:
    return where.start <= position <= where.end


def _meet(one: types.Range, other: types.Range) -> bool:
    return one.start <= other.end and other.start <= one.end
