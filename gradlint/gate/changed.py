"""``--changed-since REV``: operators for which nothing changed that they are made of."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from functools import cached_property

from gradlint.base.errors import GradlintError
from gradlint.cache.parts import NATIVE, Parts, files_of
from gradlint.model.op import OpRef
from gradlint.model.settings import Settings

_OPTION = "--changed-since"


class Changes:
    """What changed in a git repository since a revision: in commits, in the working tree, and files
    that git does not know yet.

    Args:
        revision: a commit, branch or tag.

    Raises:
        GradlintError: git is not there, this is no repository, or there is no such revision.
    """

    def __init__(self, revision: str) -> None:
        self.revision = revision
        self.root = os.path.realpath(_repository())
        commit = self._commit(revision)
        diff = ("diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", commit, "--")
        others = ("ls-files", "--others", "--exclude-standard", "-z")
        self.files = {*self._paths(*diff), *self._paths(*others)}
        self._parts = self._made_of()

    def concern(self, files: Iterable[str]) -> bool:
        """Whether one of ``files`` changed, or something that it imports, includes or builds,
        directly or not."""
        return any(self._changed(file) for file in self._parts.closure(files))

    def _made_of(self) -> Parts:
        return Parts(
            self.root,
            lambda: self._native,
            exists=lambda file: file in self.files or os.path.isfile(file),
        )

    # -- git ------------------------------------------------------------------------------------

    def _commit(self, revision: str) -> str:
        if revision and not revision.startswith("-"):
            found = _git(self.root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
            if found.returncode == 0:
                return found.stdout.decode().strip()
        raise GradlintError(
            f"{revision!r} is no revision of the repository in {self.root}",
            place=_OPTION,
            hint="name a commit, a branch or a tag; in CI, fetch the whole history first "
            "(`fetch-depth: 0`), or `git fetch origin main`",
        )

    def _paths(self, *words: str) -> set[str]:
        done = _git(self.root, *words)
        if done.returncode != 0:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            raise GradlintError(
                f"git {words[0]}: {lines[-1] if lines else 'failed'}", place=_OPTION
            )
        names = filter(None, done.stdout.split(b"\0"))
        return {os.path.join(self.root, os.fsdecode(name)) for name in names}

    @cached_property
    def _native(self) -> dict[str, set[str]]:
        """The native sources of the repository, by their names without folders."""
        return _by_name({*self._paths("ls-files", "-z"), *self.files})

    def _changed(self, file: str) -> bool:
        """Whether ``file`` changed, or a submodule that it lies in."""
        while len(file) > len(self.root):
            if file in self.files:
                return True
            file = os.path.dirname(file)
        return False


class Saved(Changes):
    """Files that were just saved, for which no git is asked.

    Args:
        files: their paths; root: the folder below which files are looked at.
    """

    def __init__(self, files: Iterable[str], root: str) -> None:
        self.revision = "the last look"
        self.root = os.path.realpath(root)
        self.files = {os.path.realpath(file) for file in files}
        self._parts = self._made_of()

    @cached_property
    def _native(self) -> dict[str, set[str]]:
        """The native sources that were saved; what includes them is not known without git."""
        return _by_name(self.files)


def _by_name(paths: Iterable[str]) -> dict[str, set[str]]:
    """The native sources among ``paths``, by their names without folders."""
    found: dict[str, set[str]] = {}
    for path in paths:
        if path.endswith(NATIVE):
            found.setdefault(os.path.basename(path), set()).add(path)
    return found


def unchanged(changes: Changes, settings: Settings, ref: OpRef) -> str:
    """Why ``ref`` is left out of a run on what changed; "" if it is not."""
    files = files_of(ref, settings)
    if not files or changes.concern(files):
        return ""
    return f"unchanged since {changes.revision}"


def _repository() -> str:
    done = _git(".", "rev-parse", "--show-toplevel")
    if done.returncode != 0:
        raise GradlintError(
            "this is not a git repository",
            place=_OPTION,
            hint=f"run gradlint inside of the checkout, or leave {_OPTION} out",
        )
    return os.fsdecode(done.stdout.removesuffix(b"\n"))


def _git(folder: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["git", *words], cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, check=False
        )
    except OSError as error:
        raise GradlintError(
            f"git can't be run: {error.strerror or error}",
            place=_OPTION,
            hint=f"install git, or leave {_OPTION} out",
        ) from None
