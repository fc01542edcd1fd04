"""A server for editors and agents (LSP): findings at their lines, what a rule says, and fixes.

Checks run one after the other in a thread of their own: those of a file when it is opened or
saved. The text of the file counts, not what is typed and not saved yet.
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
from gradlint.model.report import Finding, Location, Report, Severity
from gradlint.model.settings import Settings
from gradlint.repair.mend import fixes
from gradlint.report.wording import rule_title
from gradlint.rules.catalogue import CATALOGUE
from gradlint.running.run import Run, execute
from gradlint.targets.resolve import holds_operators

_LEVELS: dict[Severity, types.DiagnosticSeverity] = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}

#: A code of a rule in a text.
_CODE = re.compile(r"GL\d{3}")

_SOURCE = "gradlint"


@dataclass
class Seen:
    """What is known of one file.

    Args:
        stamp: of its text when it was checked.
        findings: those of the operators that it defines.
    """

    stamp: str = ""
    findings: list[Finding] = field(default_factory=list)


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

    def _saved(self, params: types.DidSaveTextDocumentParams) -> None:
        self._ask(params.text_document.uri)

    def _closed(self, params: types.DidCloseTextDocumentParams) -> None:
        path = to_fs_path(params.text_document.uri)
        if path:
            self._publish(path, [])

    def _ask(self, uri: str) -> None:
        path = to_fs_path(uri)
        if path and path.endswith((".py", ".yaml", ".yml")) and os.path.isfile(path):
            self._waiting.put(path)

    def _hover(self, params: types.HoverParams) -> types.Hover | None:
        position = params.position
        for finding in self._findings_of(params.text_document.uri):
            if finding.location is not None and _holds(span(finding.location), position):
                return _explained(finding.code, span(finding.location))
        document = self._language.workspace.get_text_document(params.text_document.uri)
        with suppress(IndexError):
            for found in _CODE.finditer(document.lines[position.line]):
                if found.start() <= position.character <= found.end():
                    return _explained(found[0], None)
        return None

    def _actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """The verified changes for findings in the range that was asked for, as long as the text
        is the one that was checked."""
        path = to_fs_path(params.text_document.uri) or ""
        seen = self._seen.get(path)
        document = self._language.workspace.get_text_document(params.text_document.uri)
        if seen is None or seen.stamp != stamp(document.source.encode()):
            return []
        found = []
        for finding in seen.findings:
            where = span(finding.location) if finding.location is not None else None
            if finding.fix is None or where is None or not _meet(where, params.range):
                continue
            changes: dict[str, list[types.TextEdit]] = {}
            for one in finding.fix.replacements:
                uri = from_fs_path(os.path.abspath(one.location.file)) or ""
                changes.setdefault(uri, []).append(types.TextEdit(span(one.location), one.text))
            title = "; ".join(finding.fix.titles)
            found.append(
                types.CodeAction(
                    f"{title} (verified: {finding.fix.checks} checks pass with this change)",
                    kind=types.CodeActionKind.QuickFix,
                    diagnostics=[diagnostic(finding)],
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
        self._seen[path] = Seen(read, _here(run, path))
        self._publish(path, run.report.findings)
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

    def _findings_of(self, uri: str) -> list[Finding]:
        seen = self._seen.get(to_fs_path(uri) or "")
        return seen.findings if seen is not None else []

    def _publish(self, path: str, findings: Sequence[Finding]) -> None:
        """Show ``findings`` at their lines, in ``path`` and in the other files where they are, and
        take away what an earlier check of ``path`` showed."""
        by_file: dict[str, list[types.Diagnostic]] = {path: []}
        for finding in findings:
            file = os.path.abspath(finding.location.file) if finding.location is not None else path
            by_file.setdefault(file, []).append(diagnostic(finding))
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


def span(location: Location) -> types.Range:
    """``location``, which counts from 1, as LSP counts. Columns are those of characters: LSP's are
    of UTF-16, which differ on lines with characters beyond the first 65,536."""
    first = types.Position(max(location.line - 1, 0), max(location.column - 1, 0))
    line = (location.end_line or location.line) - 1
    if location.end_column is None:
        return types.Range(first, types.Position(max(line, first.line) + 1, 0))
    return types.Range(first, types.Position(max(line, 0), max(location.end_column - 1, 0)))


def diagnostic(finding: Finding) -> types.Diagnostic:
    """A finding as an editor shows it."""
    lines = [finding.message, finding.cause_text, finding.help and f"help: {finding.help}"]
    nowhere = types.Range(types.Position(0, 0), types.Position(0, 1))
    return types.Diagnostic(
        span(finding.location) if finding.location is not None else nowhere,
        "\n".join(line for line in lines if line),
        severity=_LEVELS[finding.severity],
        code=finding.code,
        source=_SOURCE,
    )


def _here(run: Run, path: str) -> list[Finding]:
    report: Report = run.report
    return [
        finding
        for finding in report.findings
        if finding.location is None or os.path.abspath(finding.location.file) == path
    ]


def _explained(code: str, where: types.Range | None) -> types.Hover | None:
    rule = next((rule for rule in CATALOGUE if rule.code == code), None)
    if rule is None:
        return None
    text = f"**{rule_title(rule.code, rule.name)}**\n\n{rule.text.strip()}"
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), where)


def _holds(where: types.Range, position: types.Position) -> bool:
    return where.start <= position <= where.end


def _meet(one: types.Range, other: types.Range) -> bool:
    return one.start <= other.end and other.start <= one.end
