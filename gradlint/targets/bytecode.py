"""The bytecode of a file that many processes import, compiled once.

Python keeps bytecode beside a file. It does not where it must not write, and under another name
(``running/confirming.py``) there is none: then every process compiles the file anew, which for a
file of many operators takes much longer than running it.

And the bytecode that Python keeps beside a file, which it takes for that of the file as long as the
size and the second in which it was saved are the same: who saves twice within a second may be told
of what was there before (:func:`distrust_bytecode`).
"""

from __future__ import annotations

import marshal
import os
import sysconfig
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from types import CodeType
from typing import Any

from gradlint.base.files import read_regular
from gradlint.targets.source_file import MAX_BYTES

#: Of a cache file: it is valid for a source with the hash that it names (PEP 552).
_BY_HASH = (0b11).to_bytes(4, "little")


#: Bytes of a cache file that say what it is, and what one looks like whose source has changed.
_HEAD_BYTES = len(MAGIC_NUMBER) + len(_BY_HASH)
_OF_ANOTHER = MAGIC_NUMBER + _BY_HASH + bytes(8)

#: Seconds that bytecode must be younger than its source to be believed: Python compares whole
#: seconds, so that one of a file that was saved again in the same second is younger by less.
_SETTLED_S = 2.0

#: Folders whose files nobody edits: what is installed there is often compiled in the same second.
_INSTALLED = tuple(
    os.path.realpath(path) + os.sep
    for path in {sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib")}
    if path
)


@dataclass(frozen=True)
class _Compiled:
    """What a file held, and the bytecode of that as ``marshal`` writes it."""

    source: bytes
    code: bytes


_compiled: dict[str, _Compiled] = {}


def read_ahead(path: str) -> None:
    """Compile the file at ``path`` for later imports, unless that raises or warns: this is for the
    one who imports it to see."""
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("error")
        source = read_regular(path, MAX_BYTES)
        code = compile(source, path, "exec", dont_inherit=True)
        _compiled[path] = _Compiled(source, marshal.dumps(code))


@contextmanager
def compiled_ahead() -> Iterator[None]:
    """In the body, imports of files that were read ahead, and have not changed, need not compile.

    All else of importing is as ever: Python asks its loader for the bytecode of a source where it
    finds none, and that is what is answered here.
    """
    if not _compiled or "source_to_code" in vars(SourceFileLoader):
        yield
        return
    compiles = SourceFileLoader.source_to_code

    def source_to_code(self: SourceFileLoader, data: Any, path: Any, **options: Any) -> CodeType:
        known = _compiled.get(path) if isinstance(path, str) and not options else None
        if known is not None and data == known.source:
            code: CodeType = marshal.loads(known.code)
            return code
        return compiles(self, data, path, **options)

    SourceFileLoader.source_to_code = source_to_code  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        # An import hook of the user's may have taken its place.
        if vars(SourceFileLoader).get("source_to_code") is source_to_code:
            del SourceFileLoader.source_to_code


def put_beside(path: str, link: str) -> None:
    """Where the file at ``path`` was read ahead, put its bytecode where Python looks for that of
    ``link``, a link to it in a folder of gradlint's own. Python itself sees to it that it is not
    used for a file that has changed, and names the link in it.

    Args:
        path: absolute.
        link: absolute; its folder is removed later, by whoever made it.
    """
    known = _compiled.get(path)
    cache = cache_from_source(link)
    folder = os.path.dirname(cache)
    if known is None or os.path.dirname(folder) != os.path.dirname(link):
        return  # $PYTHONPYCACHEPREFIX names another place
    with suppress(OSError):
        os.mkdir(folder)
        with open(cache, "wb") as file:
            file.write(MAGIC_NUMBER + _BY_HASH + source_hash(known.source) + known.code)


def distrust_bytecode() -> None:
    """From now on, this process imports a file of the user's from its source where the bytecode
    beside it may be that of an earlier text. For a worker that ends with its job: nothing undoes
    it.

    Python is told that such bytecode goes by the hash of the source, and of another one. So it
    compiles the source and keeps the bytecode with its hash, which is right in every process.
    """
    read = SourceFileLoader.get_data

    def get_data(self: SourceFileLoader, path: str) -> bytes:
        if path.endswith(".pyc") and path != self.path and _may_be_stale(self.path, path):
            return _OF_ANOTHER
        return read(self, path)

    SourceFileLoader.get_data = get_data  # type: ignore[assignment, method-assign]


def _may_be_stale(source: str, bytecode: str) -> bool:
    """Whether ``bytecode``, which goes by the time of its source, was made just after that was
    saved, or none is there yet and it would be."""
    if os.path.realpath(source).startswith(_INSTALLED):
        return False
    try:
        saved = os.stat(source).st_mtime
        with open(bytecode, "rb") as file:
            if file.read(_HEAD_BYTES)[len(MAGIC_NUMBER) :] == _BY_HASH:
                return False
            return os.fstat(file.fileno()).st_mtime - saved < _SETTLED_S
    except FileNotFoundError:
        return time.time() - saved < _SETTLED_S
    except OSError:
        return False
