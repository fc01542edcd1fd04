"""What a user types, resolved without executing it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gradlint.base.errors import TargetError
from gradlint.model.op import OpRef
from gradlint.model.settings import Settings
from gradlint.targets.resolve import EVERY, left_out, resolve
from gradlint.targets.source_file import shown_path

SQUARE = """
    import torch

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return 2 * x * grad_output

    def helper(x):
        return x
"""
BOOM = "raise RuntimeError('executed')\n"


def names(target: str) -> list[str]:
    return [ref.target for ref in resolve(target, Settings())]


def one(target: str) -> OpRef:
    refs = resolve(target, Settings())
    assert len(refs) == 1
    return refs[0]


@pytest.mark.parametrize("colons", [":", "::"])
def test_name_in_a_file(write, colons):
    write("ops/square.py", SQUARE)
    ref = one(f"ops/square.py{colons}Square")
    assert (ref.target, ref.source, ref.path, ref.attribute, ref.kind, ref.explicit) == (
        "ops/square.py:Square",
        "file",
        "ops/square.py",
        "Square",
        "function",
        True,
    )
    assert (ref.location.line, ref.location.column, ref.location.end_column) == (4, 1, 13)


def test_nested_names_as_pytest_writes_them(write):
    write("a.py", "class Outer:\n    class Inner:\n        pass\n")
    assert one("a.py::Outer::Inner").attribute == "Outer.Inner"


@pytest.mark.parametrize("text", ["pkg.square:Square", "pkg.square.Square"])
def test_name_in_a_module(write, text):
    write("pkg/__init__.py", BOOM)
    write("pkg/square.py", SQUARE)
    ref = one(text)
    assert (ref.target, ref.source, ref.path, ref.attribute, ref.kind) == (
        "pkg.square:Square",
        "module",
        "pkg.square",
        "Square",
        "function",
    )


def test_callable_has_its_kind(write):
    write("square.py", SQUARE)
    assert one("square:helper").kind == "callable"


def test_absolute_path_outside_becomes_relative(write, tmp_path, monkeypatch):
    file = write("square.py", SQUARE)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert one(f"{file}:Square").target == "../square.py:Square"
    monkeypatch.chdir(tmp_path)
    assert one(f"{file}:Square").target == "square.py:Square"


def test_a_path_that_shares_nothing_but_the_root_stays_absolute(monkeypatch):
    monkeypatch.chdir("/usr")
    assert shown_path("/etc/hosts") == "/etc/hosts"
    assert shown_path("/usr/bin/env") == "bin/env"


def test_module_file_and_package_list_their_operators(write):
    write("pkg/__init__.py", "from .square import Square\n")
    write("pkg/square.py", SQUARE)
    write("pkg/deep/cube.py", SQUARE.replace("Square", "Cube"))
    write("pkg/notes.txt", "")
    assert names("pkg.square") == ["pkg.square:Square"]
    assert names("pkg/square.py") == ["pkg/square.py:Square"]
    assert names("pkg") == ["pkg/square.py:Square", "pkg/deep/cube.py:Cube"]


def test_package_by_dotted_name(write, tmp_path, monkeypatch):
    write("pkg/__init__.py", "")
    write("pkg/square.py", SQUARE)
    write("pkg/deep/__init__.py", "")
    write("pkg/deep/cube.py", SQUARE.replace("Square", "Cube"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert names("pkg") == ["pkg.square:Square", "pkg.deep.cube:Cube"]
    assert not any(ref.explicit for ref in resolve("pkg", Settings()))


def test_what_a_package_without_operators_holds_is_said(write, tmp_path, monkeypatch):
    text = """
import torch
class Solver:
    def __init__(self):
        class Solve(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x
"""
    write("pkg/__init__.py", "")
    write("pkg/deep/solve.py", text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path.parent)
    (ref,) = found = resolve("pkg", Settings())
    assert ref.attribute == EVERY
    assert left_out(found) == {
        "pkg": "pkg.deep.solve:Solver.__init__.Solve: defined when a function is called"
    }


def test_folder_skips_what_is_not_the_users(write):
    for folder in ("ops", ".hidden", "__pycache__", "build", ".venv", "some_env/lib"):
        write(f"{folder}/square.py", SQUARE)
    write("some_env/pyvenv.cfg", "")
    write("plain.py", "x = 1\n" + BOOM)
    assert names(".") == ["ops/square.py:Square"]


def test_folder_named_build_itself_is_searched(write):
    write("build/square.py", SQUARE)
    assert names("build") == ["build/square.py:Square"]


def test_folder_of_specs_and_files(write):
    write("all/square.py", SQUARE)
    write("all/linear.yaml", "op: pkg.mod:Linear\n")
    write("all/soft.yml", "# yaml-language-server: $schema=gradlint.schema.json\ndims: {N: 1}\n")
    write("all/mkdocs.yaml", "site_name: mine\nnav: []\n")
    refs = resolve("all", Settings())
    assert [(ref.source, ref.path, ref.attribute) for ref in refs] == [
        ("spec", "all/linear.yaml", ""),
        ("spec", "all/soft.yml", ""),
        ("file", "all/square.py", "Square"),
    ]


def test_spec_file_is_not_parsed(write):
    write("broken.yaml", ": : :\n\t{")
    assert one("broken.yaml") == OpRef("broken.yaml", "spec", "broken.yaml")


def test_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert resolve(".", Settings()) == []


@pytest.mark.parametrize("target", ["plain.py", "plain"])
def test_single_file_or_module_without_operators_is_left_to_a_worker(write, target):
    write("plain.py", "x = 1\n")
    assert one(target).attribute == EVERY


def test_broken_file(write):
    write("broken.py", "import torch\nclass A(torch.autograd.Function:\n")
    write("also_broken.py", "print 'python 2'\n")
    assert one("broken.py").attribute == EVERY
    assert [ref.target for ref in resolve(".", Settings())] == ["broken.py"]


@pytest.mark.parametrize("text", ["torch.ops.mylib.scale", "torch.ops.mylib.scale.out"])
def test_registered_op(text):
    assert one(text) == OpRef(text, "library", text, "", "library")


def test_namespace_of_registered_ops():
    assert one("torch.ops.mylib").attribute == EVERY


def test_path_goes_before_a_module(write):
    write("json/square.py", SQUARE)
    assert names("json") == ["json/square.py:Square"]


def test_namespace_package(write):
    write("space/inner/square.py", SQUARE)
    assert one("space.inner.square:Square").path == "space.inner.square"


def test_re_exported_name(write):
    write("pkg/__init__.py", "from .square import *\n")
    write("pkg/square.py", SQUARE)
    assert one("pkg:Square").attribute == "Square"


@pytest.mark.parametrize(
    ("target", "message", "offered"),
    [
        ("ops/sqare.py:Square", "no file `ops/sqare.py`", "`ops/square.py:Square`"),
        ("ops/square:Square", "no file or folder `ops/square`", "`ops/square.py:Square`"),
        ("opps/square.py", "no file `opps/square.py`", "`ops/square.py`"),
        ("oops", "no module or file `oops`", "`ops`"),
        ("ops.sqare:Square", "no module or file `ops.sqare`", "`ops.square:Square`"),
        ("ops.sqare", "no module or file `ops.sqare`", "`ops.square`"),
        ("ops/square.py:Sqare", "no `Sqare` in `ops/square.py`", "`ops/square.py:Square`"),
        ("ops.square:square", "no `square` in `ops.square`", "`ops.square:Square`"),
        ("ops.square.Squar", "no `Squar` in `ops.square`", "`ops.square:Square`"),
        ("ops:Square", "is a folder", "`ops/square.py:Square`"),
        ("mylib::scale", "no module or file `mylib`", "`torch.ops.mylib.scale`"),
        ("ops/square.py:", "is not a valid name", "pkg.mod:Name"),
        ("ops/square.py:1x", "is not a valid name", "pkg.mod:Name"),
        ("", "the target is empty", "pkg.mod:Name"),
        ("ops/notes.txt", "neither a .py file nor a YAML spec", "pkg.mod:Name"),
        ("ops/notes.txt:x", "is not a .py file", "pkg.mod:Name"),
        ("ops/spec.yaml:x", "defines one operator", "`ops/spec.yaml` alone"),
        ("torch.ops.a.b.c.d", "is not the name of a registered op", "torch.ops.ns.name"),
    ],
)
def test_what_does_not_exist(write, target, message, offered):
    write("ops/square.py", SQUARE)
    write("ops/notes.txt", "")
    write("ops/spec.yaml", "op: a:b\n")
    with pytest.raises(TargetError) as raised:
        resolve(target, Settings())
    assert message in raised.value.message
    assert offered in raised.value.hint
    assert "\n" not in raised.value.message


def test_unknown_module_offers_installed_ones():
    with pytest.raises(TargetError) as raised:
        resolve("torhc.nn:Linear", Settings())
    assert "`torch.nn:Linear`" in raised.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "globals()['Late'] = 1\n",
        "from os.path import *\n",
        "def __getattr__(name): return 1\n",
        "import sys\nsys.modules[__name__].Late = 1\n",
    ],
)
def test_dynamic_modules_are_left_to_a_worker(write, text):
    write("dynamic.py", text)
    assert one("dynamic.py:Late").attribute == "Late"


def test_resolving_imports_neither_torch_nor_the_target(write):
    write("pkg/__init__.py", BOOM)
    write("pkg/square.py", SQUARE + "    " + BOOM)
    write("spec.yaml", "op: a:b\n")
    script = (
        "import sys\n"
        "from gradlint.model.settings import Settings\n"
        "from gradlint.targets.resolve import resolve\n"
        "for text in ('pkg', 'pkg.square', 'pkg.square:Square', 'pkg/square.py', '.',\n"
        "             'spec.yaml', 'torch.ops.aten.relu', 'torch.nn:Linear',\n"
        "             'torch.testing._internal.autograd_function_db'):\n"
        "    assert resolve(text, Settings()), text\n"
        "for text in ('pkg.sqare', 'torhc.nn', 'pkg.square:Sqare'):\n"
        "    try: resolve(text, Settings())\n"
        "    except Exception as error: assert 'Did you mean' in error.hint, text\n"
        "    else: raise AssertionError(text)\n"
        "print(sorted({'torch', 'numpy', 'pkg', 'pkg.square'} & set(sys.modules)))\n"
    )
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r})\n{script}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout == "[]\n"
