"""What a confined worker tries: each attempt is told as the name of the error, or as what came."""

# ruff: noqa: SIM115 (what is opened here must not be)

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import resource
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)

PTRACE_ATTACH = 16
NEW_USER = 0x10000000
TIOCSTI = 0x5412


def _c(function: Callable[..., int], *arguments: Any) -> int:
    result = function(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def told(attempt: Callable[[], Any]) -> str:
    try:
        attempt()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, type(error).__name__)
    return "done"


def attempts(outsider: int, witness: str) -> dict[str, str]:
    """What must not succeed.

    Args:
        outsider: a process of the same user, outside.
        witness: a file outside that this user may change.
    """
    folder = os.path.dirname(witness)
    bind = _libc.mount
    tries: dict[str, Callable[[], Any]] = {
        "connect over the network": lambda: socket.create_connection(("127.0.0.1", 9), 1),
        "make a socket of the internet": lambda: socket.socket(socket.AF_INET),
        "make a datagram socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "make a socket of the sixth version": lambda: socket.socket(socket.AF_INET6),
        "make a raw packet socket": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
        "make a socket to daemons": lambda: socket.socket(socket.AF_UNIX),
        "make a pair that reaches any path": lambda: socket.socketpair(
            socket.AF_UNIX, socket.SOCK_DGRAM
        ),
        "write to a file": lambda: os.open(witness, os.O_WRONLY),
        "empty a file": lambda: os.truncate(witness, 0),
        "empty a file on opening": lambda: os.open(witness, os.O_RDONLY | os.O_TRUNC),
        "remove a file": lambda: os.unlink(witness),
        "move a file": lambda: os.rename(witness, f"{witness}.moved"),
        "make a file": lambda: os.open(f"{witness}.new", os.O_CREAT | os.O_WRONLY),
        "make a folder": lambda: os.mkdir(f"{witness}.folder"),
        "make a link": lambda: os.link(witness, f"{witness}.link"),
        "make a symbolic link": lambda: os.symlink(witness, f"{witness}.symlink"),
        "make a pipe": lambda: os.mkfifo(f"{witness}.fifo"),
        "change who may read": lambda: os.chmod(witness, 0o777),
        "change the owner": lambda: os.chown(witness, os.getuid(), os.getgid()),
        "change the time": lambda: os.utime(witness, (0, 0)),
        "change attributes": lambda: os.setxattr(witness, "user.gradlint", b"1"),
        "write to a folder that is open": lambda: _through_open_folders("gradlint-escape"),
        "write to the home folder": lambda: open(os.path.join(_home(), ".gradlint-escape"), "w"),
        "write to the temporary folder": lambda: open("/tmp/gradlint-escape", "w"),
        "write to gradlint's source": lambda: open(_source(), "r+"),
        "write to a setting of the kernel": lambda: open("/proc/sys/vm/swappiness", "r+"),
        "write to a disk": lambda: os.open(_disk(), os.O_WRONLY),
        "make a device": lambda: os.mknod(
            os.path.join(tempfile.gettempdir(), "disk"), 0o060600, os.makedev(254, 0)
        ),
        "signal a process": lambda: os.kill(outsider, 0),
        "kill all processes": lambda: _all_but_own(),
        "queue a signal": lambda: _c(_libc.sigqueue, outsider, 0, None),
        "signal by a descriptor": lambda: signal.pidfd_send_signal(os.pidfd_open(outsider), 0),
        "have signals sent": lambda: fcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, outsider),
        "set limits of a process": lambda: resource.prlimit(
            outsider, resource.RLIMIT_NOFILE, resource.prlimit(outsider, resource.RLIMIT_NOFILE)
        ),
        "set the priority of a process": lambda: os.setpriority(os.PRIO_PROCESS, outsider, 10),
        "trace a process": lambda: _c(_libc.ptrace, PTRACE_ATTACH, outsider, 0, 0),
        "read memory of a process": lambda: _c(
            _libc.process_vm_readv, outsider, None, 0, None, 0, 0
        ),
        "open memory of a process": lambda: open(f"/proc/{outsider}/mem", "r+b"),
        "read variables of a process": lambda: open(f"/proc/{outsider}/environ").read(),
        "open files of a process": lambda: os.open(f"/proc/{outsider}/fd/1", os.O_WRONLY),
        "make namespaces": lambda: _c(_libc.unshare, NEW_USER),
        "mount": lambda: _c(bind, b"none", os.fsencode(folder), b"tmpfs", 0, None),
        "read keys": lambda: _c(_libc.syscall, _keyctl(), 0, -3, 0),
        "type into the terminal": lambda: fcntl.ioctl(0, TIOCSTI, b"x"),
    }
    return {name: told(attempt) for name, attempt in tries.items()}


def uses(witness: str) -> dict[str, str]:
    """What a right operator may need."""
    folder = tempfile.gettempdir()
    tries: dict[str, Callable[[], Any]] = {
        "read a file": lambda: Path(witness).read_bytes(),
        "list a folder": lambda: os.listdir(os.path.dirname(witness)),
        "write to the scratch folder": lambda: Path(folder, "a").write_text("a"),
        "move files there": lambda: os.replace(Path(folder, "a"), Path(folder, "b")),
        "make files named after nothing": lambda: tempfile.TemporaryFile().write(b"1"),
        "write where home is": lambda: Path.home().joinpath("a").write_text("a"),
        "write to /dev/null": lambda: Path(os.devnull).write_text("a"),
        "read random numbers": lambda: Path("/dev/urandom").open("rb").read(4),
        "start a program": lambda: subprocess.run(["sh", "-c", f"echo 1 > {folder}/c"], check=True),
        "make a pair of sockets": lambda: socket.socketpair()[0].close(),
        "fork": lambda: os.waitpid(os.fork() or os._exit(0), 0),
        "signal itself": lambda: os.kill(os.getpid(), 0),
        "load a library from there": lambda: _load_from(folder),
    }
    return {name: told(attempt) for name, attempt in tries.items()}


def variables() -> list[str]:
    """What memory still holds of the caller's environment, and the environment itself."""
    return [*os.environ.values(), *Path("/proc/self/environ").read_text().split("\0")]


def fill() -> str:
    """Fill the scratch folder, with files of 64 MiB."""
    block = bytes(1 << 26)
    with contextlib.suppress(OSError):
        for number in range(16):
            Path(tempfile.gettempdir(), f"{number}").write_bytes(block)
        return "never full"
    return "full"


def scratch() -> list[str]:
    """The files in the scratch folder."""
    return os.listdir(tempfile.gettempdir())


def leave_processes(path: str) -> None:
    """Start one that leaves its session and its parent, and waits for ``path`` to be removed."""
    code = f"import os, time\nwhile os.path.exists({path!r}): time.sleep(0.01)"
    subprocess.Popen(["python3", "-c", code], start_new_session=True)


def _home() -> str:
    import pwd

    return pwd.getpwuid(os.getuid()).pw_dir


def _source() -> str:
    from gradlint.running import run

    return run.__file__


def _disk() -> str:
    disks = [path for path in Path("/dev").iterdir() if path.is_block_device()]
    return str(disks[0]) if disks else "/dev/vda"


def _all_but_own() -> None:
    # With signal 0 nothing is sent; where there is nobody to send it to, that is an error.
    os.kill(-1, 0)


def _through_open_folders(name: str) -> None:
    for entry in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=int(entry)))
            return
    raise OSError(errno.EBADF, "no folder is open")


def _keyctl() -> int:
    from gradlint.running._linux import number

    return number("keyctl") or 0


def _load_from(folder: str) -> None:
    import _ctypes
    import shutil

    shutil.copyfile(_ctypes.__file__, os.path.join(folder, "library.so"))
    ctypes.CDLL(os.path.join(folder, "library.so"))
