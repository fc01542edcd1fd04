"""``--gradlint-gradcheck``: an existing suite runs on gradlint's gradcheck instead of torch's.

``torch.autograd.gradcheck`` and ``gradgradcheck`` are replaced wherever they are bound, and put
back at the end. Each call is judged by both, torch's first; the test sees gradlint's verdict, and
the end of the run says where the two differ. Nothing here imports torch: if a test does, the
functions are replaced as soon as their module has been executed.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Generator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pytest

#: The module that defines torch's functions, their names, and the package that also has them.
_HOME = "torch.autograd.gradcheck"
_NAMES = ("gradcheck", "gradgradcheck")

#: Name of the attribute of a test's report that holds what was compared during one phase.
_ATTRIBUTE = "gradlint_compared"

#: Differences that are shown; heuristic: more are a mistake that the first ones show.
_MOST_SHOWN = 100

#: What one call said: how it ended, and the first line of the message.
Verdict = tuple[str, str]


class Swap:
    """The replacement of torch's two functions in this process."""

    def __init__(self, compare: Callable[..., Any]) -> None:
        """``compare(name, original, args, kwargs)`` stands in for a call."""
        self._compare = compare
        #: The stand-in of each function → the function. Neither hashes nor compares its own way.
        self._originals: list[tuple[Any, Any]] = []
        self._finder = _AfterImport(self._replace_in)

    def begin(self) -> None:
        """Replace the functions now, or when torch is imported."""
        if _HOME in sys.modules:
            self._replace_in(sys.modules[_HOME])
            self.rebind()
        else:
            sys.meta_path.insert(0, self._finder)

    def rebind(self) -> None:
        """Replace the functions wherever a module has bound their names."""
        self._exchange(self._originals)

    def end(self) -> None:
        """Put the functions back wherever they were replaced or bound since."""
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        self._exchange([(original, stand_in) for stand_in, original in self._originals])

    def _replace_in(self, home: ModuleType) -> None:
        for name in _NAMES:
            original = vars(home)[name]
            stand_in = self._stand_in(name, original)
            self._originals.append((stand_in, original))
            setattr(home, name, stand_in)

    def _stand_in(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def called(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            # gradlint asks torch's own functions, and torch's gradgradcheck calls its gradcheck.
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if caller == _HOME or caller.partition(".")[0] == "gradlint":
                return original(*args, **kwargs)
            return self._compare(name, original, args, kwargs)

        return called

    @staticmethod
    def _exchange(pairs: Sequence[tuple[Any, Any]]) -> None:
        """Bind the first of each pair wherever a module binds the second."""
        for name, module in list(sys.modules.items()):
            if not isinstance(module, ModuleType) or name.partition(".")[0] == "gradlint":
                continue
            for bound, value in list(vars(module).items()):
                for new, old in pairs:
                    if value is old:
                        setattr(module, bound, new)


class _AfterImport(MetaPathFinder):
    """Calls a function with the module that defines gradcheck, once that has been executed."""

    def __init__(self, act: Callable[[ModuleType], None]) -> None:
        self._act = act

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the other finders give, with a loader that calls the function too."""
        if fullname != _HOME:
            return None
        specs = (
            finder.find_spec(fullname, path, target)
            for finder in sys.meta_path
            if finder is not self and hasattr(finder, "find_spec")
        )
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def executed(module: ModuleType) -> None:
                execute(module)
                self._act(module)

            spec.loader.exec_module = executed  # type: ignore[method-assign]
        return spec


class Swapping:
    """The plugin of a run with ``--gradlint-gradcheck``."""

    def __init__(self) -> None:
        """Begins at once."""
        self.swap = Swap(self._judged)
        #: Calls by name in this phase of the test, and those on which the verdicts differ.
        self._calls: list[str] = []
        self._differences: list[dict[str, Any]] = []
        #: Those of all tests, with the ids of the tests.
        self.calls: list[str] = []
        self.tests: set[str] = set()
        self.differences: list[tuple[str, dict[str, Any]]] = []
        self.swap.begin()

    def pytest_collection_finish(self) -> None:
        """Replace what was bound before the swap began, if something had imported torch already."""
        self.swap.rebind()

    def pytest_unconfigure(self) -> None:
        """Put torch's functions back."""
        self.swap.end()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach what was compared; pytest-xdist sends plain attributes of reports on."""
        report = yield
        if self._calls:
            setattr(report, _ATTRIBUTE, {"calls": self._calls, "differ": self._differences})
            self._calls, self._differences = [], []
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what was compared, also in another process."""
        compared = getattr(report, _ATTRIBUTE, None)
        if compared is not None:
            self.calls += compared["calls"]
            self.tests.add(report.nodeid)
            self.differences += [(report.nodeid, one) for one in compared["differ"]]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say where gradlint's verdict differs from torch's own."""
        write = terminalreporter.write_line
        terminalreporter.section("gradlint in the place of torch's gradcheck")
        if not self.calls:
            write("No test called gradcheck or gradgradcheck.")
            return
        counts = [_counted(self.calls.count(name), name) for name in _NAMES if name in self.calls]
        tests = "1 test" if len(self.tests) == 1 else f"{len(self.tests)} tests"
        write(f"{' and '.join(counts)} in {tests}. {_agreement(self.differences, self.calls)}")
        for test, one in self.differences[:_MOST_SHOWN]:
            write(f"{test}  (call {one['call']}: {one['name']})")
            for who in ("gradlint", "torch"):
                ended, message = one[who]
                write(f"  {who:<9}{ended}{': ' if message else ''}{message}")
        if len(self.differences) > _MOST_SHOWN:
            write(f"and {len(self.differences) - _MOST_SHOWN} more")

    def _judged(
        self, name: str, original: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        """gradlint's verdict on a call, after torch's."""
        __tracebackhide__ = True
        judges = importlib.import_module("gradlint.testing.comparing")
        torchs: Verdict = judges.torchs_verdict(original, args, kwargs)
        ours: Verdict = ("is interrupted", "")
        try:
            result = judges.DROP_INS[name](*args, **kwargs)
            ours = ("passes" if result else "fails", "")
            return result
        except Exception as error:
            ours = judges.verdict_of(error)
            raise
        finally:
            self._calls.append(name)
            if ours[0] != torchs[0]:
                self._differences.append(
                    {"name": name, "call": len(self._calls), "gradlint": ours, "torch": torchs}
                )


def _counted(count: int, name: str) -> str:
    return f"{count} {'call' if count == 1 else 'calls'} of {name}"


def _agreement(differences: Sequence[Any], calls: Sequence[Any]) -> str:
    if not differences:
        return "gradlint and torch agree on all of them."
    return f"gradlint and torch differ on {len(differences)} of {len(calls)}:"
