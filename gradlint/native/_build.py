"""From a recipe to a shared library, taken from the cache or built."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

from gradlint.native import _builder
from gradlint.native._files import (
    digest_of,
    digest_of_file,
    locked,
    read_json,
    why_not_trusted,
    write_whole,
)
from gradlint.native.errors import BuilderFailed, BuildError
from gradlint.native.progress import Progress, Sink, progress_sink
from gradlint.native.recipe import Recipe, cache_root

#: Libraries kept for different states of the sources (heuristic: switching between a few branches
#: does not build again).
_KEPT = 4

_SUFFIX = ".pyd" if os.name == "nt" else ".so"


def build(
    recipe: Recipe,
    *,
    force: bool = False,
    progress: Sink | None = None,
    patience: float = _builder.PATIENCE,
) -> Path:
    """The shared library of ``recipe``, built unless the cache holds it.

    Args:
        recipe: what to build.
        force: build all of it again.
        progress: called at every step; default: see :func:`progress_sink`.
        patience: seconds that one step may take.

    Raises:
        BuildError: what is needed is missing, the cache can't be written, or the sources do not
            compile or load.
    """
    folder = recipe.folder()
    _refuse_foreign(folder)
    found = None if force else cached(recipe, folder)
    if found is not None:
        return found
    started = time.monotonic()
    with progress_sink(progress) as sink:

        def waiting() -> None:
            doing = f"building {recipe.name}"
            sink(Progress(doing, 0, 0, "waiting for another process", time.monotonic() - started))

        try:
            _make_private(folder)
            with locked(folder / "lock", waiting):
                found = None if force else cached(recipe, folder)
                return found or _made(recipe, folder, force, sink, patience)
        except OSError as error:
            raise _unwritable(error) from None


def cached(recipe: Recipe, folder: Path) -> Path | None:
    """The undamaged library that was built from the files as they are now; else None."""
    digest = _state(recipe, folder)
    library = folder / digest / f"{recipe.name}{_SUFFIX}"
    made = digest_of_file(library)
    if made is None or read_json(folder / digest / "stamp.json").get("library") != made:
        return None
    return library


def _made(recipe: Recipe, folder: Path, force: bool, sink: Sink, patience: float) -> Path:
    workplace = folder / "build"
    if force:
        shutil.rmtree(workplace, ignore_errors=True)
    known = (workplace / "build.ninja").exists()
    workplace.mkdir(exist_ok=True)
    sources = _placed(recipe, workplace)
    _forget_outdated(recipe, workplace)
    # A build that was killed leaves the lock of torch's builder; the next would wait forever.
    (workplace / "lock").unlink(missing_ok=True)
    try:
        _builder.run(recipe, sources, workplace, sink, patience)
    except BuilderFailed:
        if not known:
            raise
        # What an earlier build left may be damaged, such as its build.ninja.
        shutil.rmtree(workplace)
        workplace.mkdir()
        _builder.run(recipe, _placed(recipe, workplace), workplace, sink, patience)
    inputs = [*recipe.files(), *_builder.headers(recipe, workplace)]
    write_whole(
        workplace / "inputs.json",
        _json({str(path): digest_of_file(path) for path in dict.fromkeys(inputs)}),
    )
    return _published(recipe, folder, workplace / f"{recipe.name}{_SUFFIX}")


def _make_private(folder: Path) -> None:
    """Make ``folder`` and those above it, those of the cache for this user alone."""
    root = cache_root()
    root.parent.mkdir(parents=True, exist_ok=True)
    for path in (root, folder):
        path.mkdir(mode=0o700, exist_ok=True)


def _refuse_foreign(folder: Path) -> None:
    """Raise if others could have put libraries into the cache, which are loaded from there.

    Raises:
        BuildError: a folder of it belongs to another user, or others may write to it.
    """
    for path in (cache_root(), folder):
        why = why_not_trusted(path)
        if why:
            raise BuildError(
                f"the cache of builds can't be trusted: {path} {why}",
                hint=f"make it yours alone (chown, chmod go-w {path}), or set "
                "TORCH_EXTENSIONS_DIR to a folder of your own",
            )


def _placed(recipe: Recipe, workplace: Path) -> list[Path]:
    """The files to compile: the sources, copied if they are a tree, and a C++ file for each .cu
    that the C++ compiler compiles."""
    base = recipe.tree
    if base is not None:
        base = workplace / "tree"
        _mirror(recipe, base)

    def place(source: str) -> Path:
        return base / source if base is not None else Path(source)

    sources = [place(source) for source in recipe.sources]
    for source in recipe.host_sources:
        wrapper = workplace / f"{Path(source).stem}_host.cpp"
        _write_changed(wrapper, f'#include "{place(source)}"\n'.encode())
        sources.append(wrapper)
    return sources


def _mirror(recipe: Recipe, copy: Path) -> None:
    assert recipe.tree is not None
    wanted = {copy / path.relative_to(recipe.tree): path for path in recipe.files()}
    for target, source in wanted.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        _write_changed(target, source.read_bytes())
    for path in copy.rglob("*"):
        if path.is_file() and path not in wanted:
            path.unlink()


def _write_changed(path: Path, content: bytes) -> None:
    """Write ``content`` unless the file holds it: ninja compares times of modification."""
    if not path.is_file() or path.read_bytes() != content:
        path.write_bytes(content)


def _forget_outdated(recipe: Recipe, workplace: Path) -> None:
    """Remove objects that ninja would wrongly keep: those of a file replaced by an older one."""
    record = workplace / "inputs.json"
    if recipe.tree is not None or not record.is_file():
        return
    written = record.stat().st_mtime
    for name, digest in read_json(record).items():
        path = Path(name)
        if path.is_file() and path.stat().st_mtime <= written and digest_of_file(path) != digest:
            for made in workplace.glob("*.o"):
                made.unlink()
            return


def _state(recipe: Recipe, folder: Path) -> str:
    """A digest of all files that the library is made of, as they are now."""
    if recipe.tree is not None:
        files = {str(path.relative_to(recipe.tree)): path for path in recipe.files()}
    else:
        known = read_json(folder / "build" / "inputs.json")
        files = {str(path): path for path in [*recipe.files(), *map(Path, known)]}
    return digest_of({name: digest_of_file(path) for name, path in files.items()})


def _published(recipe: Recipe, folder: Path, library: Path) -> Path:
    home = folder / _state(recipe, folder)
    home.mkdir(exist_ok=True)
    partial = home / f"{library.name}.{os.getpid()}"
    shutil.copyfile(library, partial)
    os.replace(partial, home / library.name)
    write_whole(home / "stamp.json", _json({"library": digest_of_file(home / library.name)}))
    others = [path.parent for path in folder.glob("*/stamp.json") if path.parent != home]
    others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for old in others[_KEPT - 1 :]:
        shutil.rmtree(old, ignore_errors=True)
    return home / library.name


def _json(value: dict[str, str | None]) -> str:
    return json.dumps(value, indent=1) + "\n"


def _unwritable(error: OSError) -> BuildError:
    place = getattr(error, "filename", None) or cache_root()
    return BuildError(
        f"the cache of builds can't be written: {error.strerror or error}: {place}",
        hint="set TORCH_EXTENSIONS_DIR to a folder that can be written and has room",
    )
