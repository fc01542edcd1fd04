"""What the commands write, and where: reports, errors, files."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from gradlint.base.errors import GradlintError
from gradlint.base.text import error_line


def safe_streams() -> None:
    """Make sure that no unencodable text and no closed stream ends the program."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def write(text: str, stream: TextIO | None = None) -> None:
    """Write ``text`` as it is. It is not an error if the reader is gone (``| head``)."""
    target = stream or sys.stdout
    try:
        target.write(text)
        target.flush()
    except BrokenPipeError:
        close_quietly()
    except OSError as error:
        raise unwritten(error) from None


def write_json(value: Any) -> None:
    """Write ``value`` as indented JSON."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def write_page(add: Callable[[Any, bool], None]) -> None:
    """Write the :class:`Page` that ``add`` fills, as the standard output can show it; ``add`` is
    told whether in colour."""
    from gradlint.report.text import Page

    options = stream_options(sys.stdout, "auto")
    page = Page(options["width"], ascii=options["ascii"])
    add(page, options["color"])
    sys.stdout.write(page.text(color=options["color"]))


@contextmanager
def worker(*, debug: bool) -> Iterator[None]:
    """The body waits for a worker; its traceback is shown under ``--debug`` if it fails."""
    from gradlint.running import server
    from gradlint.running.call import WorkerFailed

    try:
        yield
    except WorkerFailed as failed:
        if debug and failed.internal:
            write(failed.internal + "\n", sys.stderr)
        raise
    finally:
        server.stop()


def write_file(path: str, text: str) -> None:
    """Write ``text`` to ``path`` as UTF-8; ``-`` is the standard output."""
    if path == "-":
        write(text)
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise GradlintError(f"can't be written: {error.strerror or error}", place=path) from None


def check_writable(path: str, option: str) -> None:
    """Raise, before anything is run, if a report could not be written to ``path``."""
    if path == "-":
        return
    folder = Path(path).resolve().parent
    if Path(path).is_dir():
        raise GradlintError(f"{path} is a folder", place=option, hint="name a file in it")
    if not folder.is_dir():
        raise GradlintError(f"there is no folder {folder}", place=option, hint="create it first")


def print_error(error: GradlintError) -> None:
    """Show what the user did wrong: what, where, next step."""
    lines = str(error).splitlines() or [type(error).__name__]
    write("error: " + "\n  ".join(lines) + "\n", sys.stderr)


def print_internal_error(error: Exception, *, debug: bool) -> None:
    """Show an internal error in one line; with its traceback under ``--debug``."""
    if debug:
        write("".join(traceback.format_exception(error)), sys.stderr)
    print_internal(error_line(error), debug=debug)


def print_internal(what: str, *, debug: bool) -> None:
    """The line for an internal error."""
    how = "" if debug else ", with the output of --debug"
    write(
        f"internal error: {what}\n  This is a bug in gradlint; please report it{how}.\n",
        sys.stderr,
    )


def flush() -> None:
    """Flush the standard output now, where a broken pipe can still be caught."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise unwritten(error) from None


def unwritten(error: OSError) -> GradlintError:
    """The error for output that could not be written; the rest of it goes nowhere."""
    close_quietly()
    return GradlintError(f"can't be written: {error.strerror or error}", place="standard output")


def close_quietly() -> None:
    """Discard what is still buffered for a reader that is gone."""
    null = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(null, sys.stdout.fileno())


def stream_options(stream: TextIO, color: str) -> dict[str, Any]:
    """What ``render`` needs to know of ``stream``; ``color`` is auto, always or never."""
    from gradlint.report.render import stream_options as look

    options = look(stream)
    if color != "auto":
        options["color"] = color == "always"
    return options
