"""``gradlint sweep`` and ``gradlint.sweep``, end to end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gradlint import api, sweeping
from gradlint.base.errors import GradlintError
from gradlint.cli.entry import main

OPS = """
import os
import torch


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.saved_tensors[0]

    @staticmethod
    def sample_inputs():
        make = torch.Generator().manual_seed(0)
        return {
            "small": (torch.randn(3, 2, generator=make, dtype=torch.float64),),
            "large": (torch.randn(9, 5, generator=make, dtype=torch.float64),),
        }


class Wrong(Exp):
    @staticmethod
    def backward(ctx, grad_output):
        return 1.25 * grad_output * ctx.saved_tensors[0]


class Straight(Exp):
    surrogate = {"x": "grad_output"}

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class Raises(Exp):
    @staticmethod
    def forward(ctx, x):
        raise ValueError("[5] is bad")


class Dies(Exp):
    @staticmethod
    def forward(ctx, x):
        os.abort()


class Hangs(Exp):
    @staticmethod
    def forward(ctx, x):
        while True:
            pass


def rounding(x):
    return x.round().int()
"""


@pytest.fixture
def ops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with ``ops.py`` in it, where the command runs."""
    (tmp_path / "ops.py").write_text(OPS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def swept(*words: str) -> tuple[int, dict]:
    """Exit code and JSON of ``gradlint sweep``."""
    path = Path("swept.json")
    path.unlink(missing_ok=True)
    code = main(["sweep", *words, "--seed", "3", "--output-format", "json", "-o", str(path)])
    return code, json.loads(path.read_text())


def test_a_right_gradient(ops, capsys):
    code = main(["sweep", "ops.py:Exp", "--seed", "3"])
    text = capsys.readouterr().out
    assert code == 0
    assert text.startswith("pass")
    assert "x  agrees: the error falls to" in text
    assert "ops.py:Exp  x float64[3, 2] (from sample_inputs)" in text
    assert text.count("chosen") >= 1
    assert "--sample takes large too" in " ".join(text.split())
    assert "Seed 3." in text


def test_all_measurements_agree_on_a_right_gradient_in_every_dtype(ops):
    code, report = swept("ops.py:Exp", "--dtype", "float64,float32")
    assert code == 0
    double, single = (target["inputs"][0] for target in report["targets"])
    for entry, sharp in ((double, 1e-10), (single, 1e-4)):
        methods = [one["method"] for one in entry["measurements"]]
        assert methods == ["extrapolation", "window fit", "path integral", "path integral"]
        assert all(one["agrees"] for one in entry["measurements"])
        assert min(one["resolution"] for one in entry["measurements"]) < sharp
        assert 0.1 < entry["noise_roundings"] < 5.0
        assert entry["truncation_from"] < entry["truncation_to"] == 0.5
        assert entry["elements_seen"] == entry["elements"] == 6


def test_float32_inside_is_seen_as_such(ops):
    (ops / "single.py").write_text(
        "import torch\n\n\ndef op(x):\n    return x.float().exp().double()\n"
    )
    code, report = swept("single.py:op", "--inputs", "randn(5, 4)")
    (entry,) = report["targets"][0]["inputs"]
    assert code == 0
    assert entry["dtype"] == "float64"
    assert 2.0**26 < entry["noise_factor"] < 2.0**32
    assert any("as large as float32's" in note for note in entry["notes"])


def test_a_slow_op_is_not_measured_in_every_way(monkeypatch):
    from gradlint.numerics import sweep_measurements as _measures

    monkeypatch.setattr(_measures, "ALLOWED_S", -1.0)  # whatever a clock says
    report = api.sweep(Cube, values(), seed=1)
    (entry,) = report.inputs
    assert [one.method for one in entry.measurements] == ["extrapolation"]
    assert entry.left_out == ["window fit", "path integral", "path integral at 0.125"]


def test_a_wrong_gradient_is_a_plateau_of_its_size(ops):
    code, report = swept("ops.py:Wrong")
    (entry,) = report["targets"][0]["inputs"]
    assert code == 1
    assert report["targets"][0]["verdict"] == "fail"
    assert entry["verdict"] == "differs"
    assert entry["relative_error"] == pytest.approx(0.2, rel=1e-6)  # a fifth of the claimed slope
    assert entry["resolution"] < 1e-9
    assert {step["limit"] for step in entry["steps"][4:16]} == {"plateau"}
    assert not any(one["agrees"] for one in entry["measurements"])


def test_every_operator_of_a_file_is_swept_and_crashes_stay_apart(ops):
    code, report = swept("ops.py", "--timeout", "4", "--inputs", "randn(3)", "--import", "math")
    found = {target["target"]: target for target in report["targets"]}
    assert code == 1
    assert found["ops.py:Exp"]["verdict"] == "pass"
    assert found["ops.py:Wrong"]["verdict"] == "fail"
    assert found["ops.py:Straight"]["verdict"] == "pass"
    assert found["ops.py:Straight"]["inputs"][0]["verdict"] == "surrogate"
    assert "forward raised ValueError: [5] is bad" in found["ops.py:Raises"]["error"]
    assert found["ops.py:Dies"]["error"].startswith("GL005")
    assert found["ops.py:Hangs"]["error"].startswith("GL006")
    assert found["ops.py:Exp"]["sample"]["args"][0]["shape"] == [3]


def test_samples_dtypes_and_steps_can_be_chosen(ops):
    code, report = swept(
        *("ops.py:Exp", "--sample", "large", "--dtype", "float32,bfloat16", "--steps", "6")
    )
    assert code == 0
    single, half = (target["inputs"][0] for target in report["targets"])
    assert (single["dtype"], half["dtype"]) == ("float32", "bfloat16")
    assert single["shape"] == [9, 5]
    assert len(single["steps"]) == len(half["steps"]) == 6
    assert single["verdict"] == "agrees"
    assert half["verdict"] in ("agrees", "cannot tell")


def test_the_same_seed_gives_the_same_numbers(ops):
    first, again = (swept("ops.py:Exp")[1]["targets"] for _ in range(2))
    assert first == again


def test_nothing_to_sweep(ops, capsys):
    (ops / "empty").mkdir()
    assert main(["sweep", "empty"]) == 5
    assert "Nothing was swept." in capsys.readouterr().out
    assert main(["sweep", "ops.py:rounding", "--inputs", "randn(3)"]) == 5
    assert "no output is differentiable" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nosuch.py:Exp"], "nosuch.py"),
        (["ops.py:Expp"], "Expp"),
        (["ops.py:Exp", "--sample", "nope"], "known are small, large"),
        (["ops.py:Exp", "--plot", "plot.gif"], ".png, .svg or .pdf"),
        (["ops.py:Exp", "--plot", "nowhere/plot.png"], "no folder"),
        (["ops.py:Exp", "-o", "nowhere/out.txt"], "no folder"),
        (["ops.py:Exp", "--output-format", "jsn"], "did you mean `json`?"),
        (["ops.py:Exp", "--dtype", "float65"], "float64"),
        (["ops.py:Exp", "--steps", "2"], "--steps"),
        (["ops.py:Exp", "--inputs", "import os"], "--inputs"),
        ([], "TARGET"),
    ],
)
def test_wrong_usage_exits_2_with_one_message(words, told, ops, capsys):
    assert main(["sweep", *words]) == 2
    captured = capsys.readouterr()
    assert told in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_plots_into_a_file(suffix, ops):
    pytest.importorskip("matplotlib")
    assert main(["sweep", "ops.py:Exp", "--plot", f"plot.{suffix}", "-o", "out.txt"]) == 0
    assert (ops / f"plot.{suffix}").stat().st_size > 5000
    assert "chosen" in (ops / "out.txt").read_text()


def test_a_missing_extra_is_named_before_anything_runs(ops, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["sweep", "ops.py:Dies", "--plot", "plot.png"]) == 2
    assert "pip install 'gradlint[plot]'" in capsys.readouterr().err


def test_piped_under_ascii_in_40_columns_without_colour(ops):
    environment = dict(os.environ, COLUMNS="40", PYTHONIOENCODING="ascii", NO_COLOR="1")
    environment["PYTHONPATH"] = str(Path(sweeping.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "gradlint", "sweep", "ops.py:Wrong"],
        capture_output=True,
        env=environment,
        timeout=120,
        check=False,
    )
    text = done.stdout.decode("ascii")
    assert done.returncode == 1, done.stderr
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 40
    assert "the error stops at" in " ".join(text.split())


def test_help_and_mistakes_do_not_import_torch():
    code = (
        "import sys; from gradlint.cli.entry import main; code = main(sys.argv[1:]); "
        "print(code, 'torch' in sys.modules, 'matplotlib' in sys.modules)"
    )
    environment = dict(os.environ, PYTHONPATH=str(Path(sweeping.__file__).parents[1]))
    for words, status in ((["--help"], 0), (["x.py:X", "--plot", "a.gif"], 2)):
        done = subprocess.run(
            [sys.executable, "-c", code, "sweep", *words],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        assert done.stdout.splitlines()[-1] == f"{status} False False", done.stderr


# -- the Python function ---------------------------------------------------------------------------


class Cube(torch.autograd.Function):
    factor = 3.0

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * Cube.factor * ctx.saved_tensors[0] ** 2


def values() -> tuple[torch.Tensor]:
    return (torch.linspace(-1, 2, 7, dtype=torch.float64),)


def test_live_objects_are_swept_in_this_process(monkeypatch):
    report = api.sweep(Cube, values(), seed=1)
    (entry,) = report.inputs
    assert (report.ok, report.exit_code, report.seed) == (True, 0, 1)
    assert (entry.name, entry.verdict, entry.shape) == ("x", "agrees", [7])
    assert entry.resolution < 1e-10
    assert entry.curvature > 0
    monkeypatch.setattr(Cube, "factor", 2.0)
    wrong = api.sweep(Cube, values, seed=1)
    assert not wrong.ok
    assert wrong.inputs[0].relative_error == pytest.approx(1 / 3)
    assert "wrong by that much" in " ".join(str(wrong).split())


def test_modules_and_callables_are_swept_by_input_and_parameter():
    layer = torch.nn.Linear(3, 2, dtype=torch.float64)
    x = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    report = api.sweep(layer, (x,), seed=0)
    assert [(item.name, item.verdict) for item in report.inputs] == [
        ("input", "agrees"),
        ("weight", "agrees"),
        ("bias", "agrees"),
    ]
    report = api.sweep(lambda a, b: a.exp().sum() + b.sum(), (x, x[:0]), seed=0)
    assert [item.verdict for item in report.inputs] == ["agrees", "empty"]
    assert report.exit_code == 0


def test_the_default_generator_is_left_as_it_was():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    api.sweep(torch.nn.Dropout(0.5), (torch.ones(5, dtype=torch.float64),), seed=0)
    assert torch.equal(torch.get_rng_state(), before)


def test_mistakes_of_the_caller():
    with pytest.raises(GradlintError, match="at least 3 steps"):
        api.sweep(Cube, values(), steps=2)
    with pytest.raises(GradlintError, match="no sample 'other'"):
        api.sweep(Cube, values(), sample="other")
    with pytest.raises(TypeError, match="must be text"):
        api.sweep("ops.py:Exp", values())


def test_a_path_that_crosses_a_kink_is_no_disagreement(monkeypatch):
    from gradlint.numerics import sweep_measurements as _measures
    from gradlint.numerics.differences import Estimate

    monkeypatch.setattr(
        _measures, "path_integral", lambda *_, **__: Estimate(1.0, 1e-3, 2.0, 1e-4, 0.5)
    )
    (entry,) = api.sweep(Cube, values(), seed=1).inputs
    assert entry.verdict == "agrees"
    assert [one.agrees for one in entry.measurements] == [True, True, None, None]
    assert "unclear" in str(api.sweep(Cube, values(), seed=1))
    monkeypatch.setattr(Cube, "factor", 2.0)
    (entry,) = api.sweep(Cube, values(), seed=1).inputs
    assert [one.agrees for one in entry.measurements] == [False] * 4


def test_where_two_steps_are_too_noisy_other_measurements_may_settle_it():
    x = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).abs()
    reasons = []
    for seed in range(6):
        (entry,) = api.sweep(torch.log, (x,), seed=seed, dtypes=["bfloat16"]).inputs
        assert entry.verdict in ("agrees", "cannot tell")
        reasons.append(entry.reason)
    assert {"by path integral", "by window fit"} & set(reasons)
