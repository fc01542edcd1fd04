"""The bytecode of a file that many processes import, compiled once.

Python keeps bytecode beside a file. It does not where it must not write, and under another name
(``running/confirming.py``) there is none: then every process compiles the file anew, which for a
file of many operators takes much longer than running it.
"""

from __future__ import annotations

import marshal
import os
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
