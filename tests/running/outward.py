"""Wrong operators that turn to what lies around them: files, processes, memory, terminals.

Nothing of gradlint's stops this code from doing to the user's files what the user may do; with
``--untrusted`` the operating system does. The folder of this file holds what is attacked.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import site
import subprocess
import tempfile

import torch

HERE = pathlib.Path(__file__).parent


class _Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 6

    @staticmethod
    def sample_inputs():
        return (torch.linspace(0.5, 2.0, 3, dtype=torch.float64, requires_grad=True),)


def _attack(attempt):
    """An operator that makes ``attempt`` at its first call of forward, and is wrong."""
    done = []

    def forward(ctx, x):
        if not done:
            done.append(1)
            with contextlib.suppress(Exception):
                attempt()
        return x * 2

    made = type(attempt.__name__, (_Wrong,), {"forward": staticmethod(forward)})
    made.__doc__ = attempt.__doc__
    made.__module__ = __name__
    return made


def _write(path, text="import os\n"):
    with contextlib.suppress(OSError):
        pathlib.Path(path).write_text(text)


# -- files -----------------------------------------------------------------------------------------
@_attack
def WritesReport():
    """The report that an earlier run wrote, or this one will."""
    _write(HERE / "report.json", '{"summary": {"fail": 0}}')
    with contextlib.suppress(OSError):
        os.replace(__file__, HERE / "report.json")


@_attack
def WritesSettings():
    """The next run ignores everything."""
    _write(HERE / "pyproject.toml", '[tool.gradlint]\nignore = ["GL"]\n')
    with contextlib.suppress(OSError):
        (HERE / "pyproject.toml").unlink()


@_attack
def WritesItself():
    """What is read of the source afterwards is right."""
    text = pathlib.Path(__file__).read_text()
    _write(__file__, text.replace("grad_output * 6", "grad_output * 2"))


@_attack
def WritesGradlint():
    """The judge's own source, and its compiled form."""
    import gradlint.numerics.verdict as verdict

    for path in (verdict.__file__, verdict.__cached__):
        with contextlib.suppress(OSError), open(path, "r+b"):
            _write(HERE / "opened", str(path))


@_attack
def WritesStartup():
    """What every Python imports when it starts: sitecustomize, and lines of .pth files."""
    for folder in (HERE, site.getusersitepackages(), *site.getsitepackages()):
        _write(pathlib.Path(folder, "sitecustomize.py"), "")
        _write(pathlib.Path(folder, "gradlint_attack.pth"), "")
        for name in ("sitecustomize.py", "gradlint_attack.pth"):
            if pathlib.Path(folder, name).exists():
                _write(HERE / "opened", folder)
                os.unlink(pathlib.Path(folder, name))


@_attack
def WritesHook():
    """The user's shell, and git's hooks."""
    for name in (".bashrc", ".git/hooks/pre-commit", "conftest.py"):
        (HERE / name).parent.mkdir(parents=True, exist_ok=True)
        _write(HERE / name, "true")


@_attack
def LinksScratch():
    """A link in the scratch folder to a file outside, for whoever tidies up, or writes there."""
    folder = pathlib.Path(tempfile.gettempdir())
    with contextlib.suppress(OSError):
        (folder / "link").symlink_to(HERE)
    shutil.rmtree(folder / "link" / ".", ignore_errors=True)
    _write(folder / "link" / "victim.py", "")


@_attack
def LinksHere():
    """A hard link, by which to change what can't be written where it is."""
    link = pathlib.Path(tempfile.gettempdir(), "hard")
    with contextlib.suppress(OSError):
        os.link(HERE / "victim.py", link)
        _write(link, "")


# -- processes -------------------------------------------------------------------------------------
@_attack
def KillsParent():
    os.kill(os.getppid(), signal.SIGKILL)


@_attack
def KillsAll():
    """Whatever the user runs, and then its group."""
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) not in (1, os.getpid()):
            with contextlib.suppress(OSError):
                os.kill(int(entry), signal.SIGKILL)


@_attack
def StopsServer():
    """Without its parent, no worker starts."""
    for pid in (os.getppid(), 1):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGSTOP)


@_attack
def TracesParent():
    libc = ctypes.CDLL(None)
    if libc.ptrace(16, os.getppid(), 0, 0) == 0:
        _write(HERE / "opened", "ptrace")


@_attack
def WritesMemoryOfParent():
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/mem", "r+b"):
                _write(HERE / "opened", f"memory of {entry}")


@_attack
def LeavesDaemon():
    """A process in a session of its own, which changes files when the run is over."""
    code = f"import time; time.sleep(1); open({str(HERE / 'opened')!r}, 'w')"
    subprocess.Popen(["python3", "-c", code], start_new_session=True)


# -- resources -------------------------------------------------------------------------------------
@_attack
def FillsScratch():
    with contextlib.suppress(OSError):
        for number in range(8):
            pathlib.Path(tempfile.gettempdir(), f"{number}").write_bytes(bytes(1 << 26))


@_attack
def TakesDescriptors():
    kept = []
    with contextlib.suppress(OSError):
        while True:
            kept.append(os.open(os.devnull, os.O_RDONLY))
    for descriptor in kept:
        os.close(descriptor)


@_attack
def FillsSockets():
    """Whatever can be written to is filled."""
    for entry in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            os.set_blocking(int(entry), False)
            for _ in range(64):
                os.write(int(entry), bytes(1 << 16))
