"""Operators as test items: specs, marked operators of test modules, and listed targets."""

from __future__ import annotations

import inspect
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from gradlint.base.errors import GradlintError
from gradlint.model.op import OpRef
from gradlint.model.settings import Settings
from gradlint.running import server as _server
from gradlint.targets.locate import is_spec
from gradlint.targets.resolve import EVERY, resolve
from gradlint.testing.items import CheckItem, ObjectItem, TargetItem
from gradlint.testing.options import require_usable

#: Name of the variable of a test module that lists operators, and of the setting that lists
#: targets.
TARGETS = "gradlint_targets"

#: Name of the marker.
MARK = "gradlint"

_SPECS = (".yaml", ".yml")
_PATH = re.compile(r"^(?P<path>.+?\.(?:py|ya?ml))(?P<rest>:.*)?$", re.DOTALL)


class SpecFile(pytest.File):
    """A YAML spec, which describes one operator."""

    def collect(self) -> Iterable[pytest.Item]:
        """Its operator."""
        yield TargetItem.from_parent(self, name="gradlint", target=str(self.path))


class TargetFile(pytest.File):
    """A file with operators that ``gradlint_targets`` names."""

    def __init__(self, refs: Sequence[OpRef], **more: Any) -> None:
        """``refs`` are those of its operators that are named."""
        super().__init__(**more)
        self.refs = refs

    def collect(self) -> Iterable[pytest.Item]:
        """One item for each operator."""
        for ref in self.refs:
            name = "gradlint" if ref.attribute in ("", EVERY) else ref.attribute
            yield TargetItem.from_parent(self, name=name, target=ref.target, line=_line(ref))


class Elsewhere(pytest.Collector):
    """Operators that ``gradlint_targets`` names, and whose file is not known before loading."""

    def __init__(self, refs: Sequence[OpRef], **more: Any) -> None:
        """``refs`` names them."""
        super().__init__(**more)
        self.refs = refs

    def collect(self) -> Iterable[pytest.Item]:
        """One item for each operator."""
        for ref in self.refs:
            yield TargetItem.from_parent(self, name=ref.target, target=ref.target)


class Collecting:
    """The plugin of a run with ``--gradlint``."""

    def __init__(self, config: pytest.Config) -> None:
        """``config`` is that of the run."""
        self.config = config
        self._targets: dict[Path | None, list[OpRef]] | None = None

    # -- what is collected ----------------------------------------------------------------------

    def pytest_sessionstart(self) -> None:
        """Say what is wrong with options and targets before anything is collected."""
        require_usable(self.config)
        self.targets()

    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        """A spec, or a file of which ``gradlint_targets`` names operators."""
        if file_path in self.targets():
            return self._target_file(file_path, parent)
        if file_path.suffix in _SPECS and is_spec(str(file_path)):
            return SpecFile.from_parent(parent, path=file_path)
        return None

    def pytest_pycollect_makeitem(
        self, collector: pytest.Collector, name: str, obj: object
    ) -> list[pytest.Item] | None:
        """The operators that a test module marks, or lists in ``gradlint_targets``."""
        if not isinstance(collector, pytest.Module):
            return None
        if name == TARGETS:
            return [*_listed(collector, obj)]
        marks = vars(obj).get("pytestmark", ()) if hasattr(obj, "__dict__") else ()
        of_this_module = getattr(obj, "__module__", None) == collector.obj.__name__
        if not of_this_module or not any(mark.name == MARK for mark in marks):
            return None
        if inspect.isfunction(obj) and getattr(collector, "funcnamefilter", str.strip)(name):
            return None  # a test that carries the marker to be selected by it
        return [ObjectItem.from_parent(collector, name=name, op=obj, inputs=None, marks=marks)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Where no path is named, add what ``gradlint_targets`` names outside of the tests."""
        if config.args_source is pytest.Config.ArgsSource.ARGS:
            return
        collected = {item.path for item in items if isinstance(item.parent, TargetFile)}
        for path, refs in self.targets().items():
            if path is None:
                elsewhere = Elsewhere.from_parent(session, name=TARGETS, nodeid=TARGETS, refs=refs)
                items += session.genitems(elsewhere)
            elif path not in collected:
                items += session.genitems(self._target_file(path, session))

    def targets(self) -> dict[Path | None, list[OpRef]]:
        """What ``gradlint_targets`` names, by file; under None what no file is known of."""
        if self._targets is None:
            self._targets = {}
            for ref in self._refs():
                where = ref.path if ref.source == "spec" else ref.location and ref.location.file
                path = Path(os.path.abspath(where)) if where else None
                self._targets.setdefault(path, []).append(ref)
        return self._targets

    def _refs(self) -> Iterator[OpRef]:
        seen = set()
        for text in self.config.getini(TARGETS):
            try:
                refs = resolve(_anchored(text, self.config.rootpath), Settings())
            except GradlintError as error:
                raise pytest.UsageError(f"{TARGETS}: {error}") from None
            for ref in refs:
                if ref.target not in seen:
                    seen.add(ref.target)
                    yield ref

    def _target_file(self, path: Path, parent: pytest.Collector) -> TargetFile:
        return TargetFile.from_parent(parent, path=path, refs=self.targets()[path])

    # -- what is said at the end -----------------------------------------------------------------

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """How many operators were checked, and with what verdicts."""
        verdicts = Counter(
            value
            for reports in terminalreporter.stats.values()
            for report in reports
            if getattr(report, "when", None) == "call"
            for name, value in report.user_properties
            if name == "gradlint_verdict"
        )
        if verdicts:
            count = sum(verdicts.values())
            told = ", ".join(f"{number} {verdict}" for verdict, number in sorted(verdicts.items()))
            operators = "operator" if count == 1 else "operators"
            terminalreporter.write_line(f"gradlint: {count} {operators} checked: {told}")

    def pytest_unconfigure(self) -> None:
        """End the process from which workers come."""
        _server.stop()


def _listed(collector: pytest.Module, entries: object) -> Iterator[CheckItem]:
    """The items of the list ``gradlint_targets`` of a test module."""
    if not isinstance(entries, (list, tuple)):
        raise pytest.Collector.CollectError(
            f"{TARGETS} must be a list of operators or of the texts of targets"
        )
    names: Counter[str] = Counter()
    for entry in entries:
        plain = pytest.param(entry)
        values, marks, id = entry if isinstance(entry, type(plain)) else plain
        op, inputs = (*values, None)[:2]
        name = str(id) if id else op if isinstance(op, str) else _name(op)
        names[name] += 1
        shown = f"{TARGETS}[{name}]" if names[name] == 1 else f"{TARGETS}[{name}-{names[name]}]"
        if isinstance(op, str):
            target = _anchored(op, collector.path.parent)
            yield TargetItem.from_parent(
                collector, name=shown, target=target, inputs=inputs, marks=_marks(marks)
            )
        else:
            yield ObjectItem.from_parent(
                collector, name=shown, op=op, inputs=inputs, marks=_marks(marks)
            )


def _marks(marks: Iterable[Any]) -> list[pytest.Mark]:
    return [getattr(mark, "mark", mark) for mark in marks]


def _name(op: object) -> str:
    return str(getattr(op, "__name__", type(op).__name__))


def _line(ref: OpRef) -> int | None:
    return ref.location.line if ref.location is not None else None


def _anchored(target: str, folder: Path) -> str:
    """``target``, with a path that exists in ``folder`` made absolute."""
    match = _PATH.match(target)
    path, rest = (match["path"], match["rest"] or "") if match else (target, "")
    inside = folder / path
    return f"{inside}{rest}" if inside.exists() else target
