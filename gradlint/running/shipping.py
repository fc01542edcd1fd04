"""The sources of a run, for machines that do not see the folder that they lie in.

What is sent is the whole checkout and not only what imports name: what an operator reads besides
(data, modules found by a name that is put together) would be missing, and its absence taken for a
fault of the operator.
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gradlint.base.errors import GradlintError
from gradlint.base.scratch import scratch_folder
from gradlint.targets.locate import skipped_folder

#: Bytes of sources that are sent (heuristic: checkouts of libraries have 20 MB; what is larger
#: holds data, which belongs on a disk that all machines see).
MOST_BYTES = 64 * 2**20

#: Files by which it is found out whether another machine sees the same folder.
MOST_PROBES = 50

_PLACE = "--cluster"


@dataclass(frozen=True)
class Bundle:
    """The files of a folder.

    Args:
        data: as a zip archive.
        name: hash of the archive.
        inside: the working directory, as seen from the folder.
    """

    data: bytes
    name: str
    inside: str


def bundle(folder: str, needed: Iterable[str]) -> Bundle:
    """The checkout around ``folder``.

    Args:
        folder: the working directory.
        needed: files that must be among them.

    Raises:
        GradlintError: it is too large, or does not hold all that is needed.
    """
    root = _root(folder)
    outside = [path for path in needed if not _below(os.path.realpath(path), root)]
    if outside:
        raise GradlintError(
            f"{outside[0]} can't be sent to the cluster: it lies outside of {root}",
            place=_PLACE,
            hint="run where all files are below one folder, or start the workers where they see "
            "the same files under the same paths",
        )
    archive = io.BytesIO()
    size = 0
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        for path in sorted(_files(root)):
            size += os.path.getsize(path)
            if size > MOST_BYTES:
                raise GradlintError(
                    f"{root} can't be sent to the cluster: it holds more than "
                    f"{MOST_BYTES // 2**20} MiB",
                    place=_PLACE,
                    hint="start the workers where they see the same files under the same paths, "
                    "or run in a smaller checkout",
                )
            # Without the time, so that the same files have the same name.
            with open(path, "rb") as file:
                made.writestr(zipfile.ZipInfo(os.path.relpath(path, root)), file.read())
    data = archive.getvalue()
    name = hashlib.sha256(data).hexdigest()[:16]
    return Bundle(data, name, os.path.relpath(os.path.realpath(folder), root))


def unpacked(data: bytes, name: str, inside: str) -> str:
    """The working directory in a copy of the bundle, which is made once in this process.

    Raises:
        OSError: there is no room for it.
    """
    top = os.path.join(scratch_folder(), f"sources-{name}")
    if not os.path.isdir(top):
        partial = f"{top}.{os.getpid()}"
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            archive.extractall(partial)
        try:
            os.rename(partial, top)
        except OSError:
            if not os.path.isdir(top):  # another thread was first
                raise
    folder = os.path.normpath(os.path.join(top, inside))
    os.makedirs(folder, exist_ok=True)
    return folder


def digests(paths: Iterable[str]) -> dict[str, str]:
    """The hashes of files; "" for one that is not there, or can't be read."""
    found = {}
    for path in paths:
        try:
            with open(path, "rb") as file:
                found[path] = hashlib.sha256(file.read()).hexdigest()
        except OSError:
            found[path] = ""
    return found


def _root(folder: str) -> str:
    """The checkout that ``folder`` is in; itself where it is in none."""
    above = os.path.realpath(folder)
    while not os.path.exists(os.path.join(above, ".git")):
        parent = os.path.dirname(above)
        if parent == above:
            return os.path.realpath(folder)
        above = parent
    return above


def _files(root: str) -> Iterator[str]:
    words = ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        listed = done.returncode == 0 and os.path.exists(os.path.join(root, ".git"))
    except OSError:
        listed = False
    if listed:
        for raw in filter(None, done.stdout.split(b"\0")):
            path = os.path.join(root, os.fsdecode(raw))
            if os.path.isfile(path):
                yield path
        return
    for parent, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not skipped_folder(os.path.join(parent, name))]
        for name in names:
            path = os.path.join(parent, name)
            if os.path.isfile(path) and not name.startswith("."):
                yield path


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
