"""Building: what the cache holds, when it is built anew, and what is said when it can't be."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gradlint.native import _build, _builder, _tools
from gradlint.native._build import build
from gradlint.native._files import why_not_trusted
from gradlint.native.errors import BuildError
from gradlint.native.progress import Progress
from gradlint.native.recipe import Recipe


def answer(library: Path) -> int:
    # In a process of its own: a library of the same name is loaded only once in one.
    code = f"import ctypes; print(ctypes.CDLL({str(library)!r}).answer())"
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)


def alive(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object) -> None:
        raise AssertionError("something was built")

    monkeypatch.setattr(_builder, "run", run)


def test_built_once_and_anew_when_a_header_changes(
    small: Recipe, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Progress] = []
    first = build(small, progress=seen.append)
    assert answer(first) == 42
    assert cache in first.parents
    assert seen[-1].name == "building small"
    assert {item.total for item in seen} <= {0, 2}

    with monkeypatch.context() as patched:
        patched.setattr(_builder, "run", lambda *_: pytest.fail("something was built"))
        assert build(small) == first

    header = Path(small.sources[0]).with_name("answer.h")
    header.write_text("#define ANSWER 7\n", encoding="utf-8")
    # As when a file is restored: older than what was made of it.
    os.utime(header, (1, 1))
    second = build(small)
    assert second != first
    assert answer(second) == 7

    # Both states stay in the cache, and a broken library is no library.
    second.write_bytes(second.read_bytes()[:100])
    assert answer(build(small)) == 7


def test_a_tree_shares_its_build_with_a_copy_elsewhere(
    small: Recipe, tmp_path: Path, never: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Path(small.sources[0])
    recipe = Recipe("small", ("small.cpp",), tree=source.parent)
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in source.parent.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    assert recipe.folder() == replace(recipe, tree=copy).folder()
    folder = recipe.folder()
    assert _build._state(recipe, folder) == _build._state(replace(recipe, tree=copy), folder)
    (copy / "answer.h").write_text("#define ANSWER 1\n", encoding="utf-8")
    assert _build._state(recipe, folder) != _build._state(replace(recipe, tree=copy), folder)


def test_flags_and_compiler_are_part_of_the_key(
    small: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {small.folder(), replace(small, cflags=("-O1",)).folder()}
    monkeypatch.setattr(_tools, "compiler", lambda: _tools.Tool("/usr/bin/c++", "another"))
    keys.add(small.folder())
    assert len(keys) == 3


def test_errors_are_shown_as_the_compiler_gave_them(small: Recipe) -> None:
    source = Path(small.sources[0])
    source.write_text("int f() {\n  return nothing;\n}\n", encoding="utf-8")
    with pytest.raises(BuildError) as caught:
        build(small)
    (failure,) = caught.value.failures
    assert failure.source == str(source)
    assert f"{source}:2:10: error: " in failure.text
    assert failure.text in caught.value.message
    assert caught.value.message.startswith("small can't be built: compiling small.cpp failed\n")
    assert caught.value.hint == "fix the first error that the compiler reports"


def test_a_library_that_does_not_load_is_told_from_one_that_does_not_compile(
    small: Recipe,
) -> None:
    Path(small.sources[0]).write_text(
        'extern "C" int missing();\nextern "C" int answer() { return missing(); }\n',
        encoding="utf-8",
    )
    with pytest.raises(BuildError, match=r"small was built but can't be loaded: .*missing") as it:
        build(small)
    assert it.value.hint.startswith("a function is declared but not defined")


def test_a_compiler_that_hangs_is_given_up(
    small: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "pid"
    slow = tmp_path / "slow"
    slow.write_text(
        '#!/bin/sh\ncase " $* " in *" -c "*) '
        f'echo $$ > {mark}; exec sleep 600;; esac\nexec c++ "$@"\n',
        encoding="utf-8",
    )
    slow.chmod(0o755)
    monkeypatch.setenv("CXX", str(slow))

    def until_it_hangs(progress: Progress) -> None:
        # Importing torch, before, may take longer than the patience of this test.
        if mark.exists() and mark.read_text().strip():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(small, progress=until_it_hangs)
    with pytest.raises(BuildError, match=r"was stopped: no step finished in 0 s"):
        build(small, patience=0.0)
    pid = int(mark.read_text())
    for _ in range(100):
        if not alive(pid):
            break
        time.sleep(0.1)
    assert not alive(pid)


@pytest.mark.usefixtures("never")
def test_what_is_missing_is_named_with_the_fix(
    small: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(BuildError, match=r"\$CXX names `no-such-compiler`") as caught:
        build(small)
    assert "set CXX" in caught.value.hint
    monkeypatch.setenv("CXX", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match=r"no C\+\+ compiler: none of c\+\+, g\+\+, clang"):
        build(small)
    monkeypatch.setattr(_tools, "_beside_python", lambda: "")
    with pytest.raises(BuildError, match="ninja, which builds extensions, is not installed") as it:
        _tools.ninja()
    assert it.value.hint.endswith("-m pip install ninja")


def test_a_cache_that_can_not_be_written(
    small: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(file))
    with pytest.raises(BuildError, match="the cache of builds can't be written") as caught:
        build(small)
    assert caught.value.hint.startswith("set TORCH_EXTENSIONS_DIR")


def test_processes_that_build_at_once_build_once(small: Recipe, tmp_path: Path) -> None:
    counted = tmp_path / "counted"
    wrapper = tmp_path / "compiler"
    wrapper.write_text(
        f'#!/bin/sh\ncase " $* " in *" -c "*) echo x >> {counted};; esac\nexec c++ "$@"\n',
        encoding="utf-8",
    )
    wrapper.chmod(0o755)
    code = (
        "from gradlint.native._build import build; from gradlint.native.recipe import Recipe\n"
        f"print(build(Recipe('small', ({small.sources[0]!r},))))"
    )
    environment = {**os.environ, "CXX": str(wrapper)}
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(2)
    ]
    first, second = (run.communicate()[0].strip() for run in runs)
    assert first == second
    assert ctypes.CDLL(first).answer() == 42
    assert counted.read_text().count("x") == 1


# -- what others wrote, or may have written -------------------------------------------------------

#: Compiles in no time, as it includes nothing.
_TINY = 'extern "C" int tiny() { return TINY_VALUE; }\n'


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "cache"))
    source = tmp_path / "tiny;x.cpp"
    source.write_text(_TINY)
    (tmp_path / "in $x; dir").mkdir()
    return Recipe(
        "tiny",
        (str(source),),
        cflags=(f"-DTINY_VALUE='1 + 1' -DOTHER=$HOME;touch${{IFS}}{tmp_path}/made", "-g0"),
        include_dirs=(str(tmp_path / "in $x; dir"),),
    )


def test_flags_are_words_that_no_shell_obeys(tiny: Recipe, tmp_path: Path) -> None:
    library = build(tiny)
    assert ctypes.CDLL(str(library)).tiny() == 2
    assert not (tmp_path / "made").exists()

    # Damage of the cache, one after another: the stamp of a library that is gone …
    library.unlink()
    (library.parent / "stamp.json").write_text("{}")
    assert build(tiny) == library
    assert library.is_file()
    # … and what ninja was told by an earlier build.
    workplace = library.parent.parent / "build"
    (workplace / "build.ninja").unlink()
    (workplace / "build.ninja").mkdir()
    shutil.rmtree(library.parent)
    assert build(tiny).is_file()


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("-O2", ["-O2"]),
        ("-DA=1 -DB='x y'", ["-DA=1", "'-DB=x y'"]),
        ("-Wl,-rpath,$ORIGIN", ["'-Wl,-rpath,$$ORIGIN'"]),
        ("-DA=1;rm -rf x", ["'-DA=1;rm'", "-rf", "x"]),
        ("-DA=`id`\n  command = id", ["'-DA=`id`'", "command", "=", "id"]),
        ("", []),
    ],
)
def test_words_of_flags(flag: str, expected: list[str]) -> None:
    assert _builder.words([flag]) == expected


@pytest.mark.parametrize("flag", ["-DA='x", "-DA='\n'"])
def test_flags_that_can_not_be_written_are_refused(flag: str) -> None:
    with pytest.raises(BuildError, match=r"has a (quote|line end)"):
        _builder.words([flag])


def test_a_cache_of_others_is_not_trusted(
    tiny: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "cache" / "gradlint"
    root.mkdir(parents=True, mode=0o700)
    root.chmod(0o777)
    with pytest.raises(BuildError, match=f"can't be trusted: {root} can be written to by others"):
        build(tiny)
    root.chmod(0o700)
    assert why_not_trusted(root) == ""
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    if user != 0:
        with pytest.raises(BuildError, match=f"belongs to another user .{user}.*TORCH_EXTENSIONS"):
            build(tiny)
        return
    os.chown(root, 12345, 12345)  # what root owns, others trust
    assert why_not_trusted(root) == "belongs to another user (12345)"
