"""Confinement by namespaces of Linux: of users, files, processes, the network and IPC.

The worker that the fork server made stays outside and waits. Its child is the first process of a
new namespace of processes, sets the view of files up, and reaps. Its child in turn is the worker
from then on. When the worker ends, so does the namespace, and the kernel kills all that is in it.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import stat
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gradlint.running import _confine, _seccomp
from gradlint.running._linux import PR_CAPBSET_DROP, PR_SET_DUMPABLE, call

#: Where a confined worker writes: in memory, and gone with the worker.
SCRATCH = "/dev/shm"

#: Size of the scratch folder, and the number of files in it. Heuristic: compiling an operator takes
#: a few megabytes and a few hundred files.
SCRATCH_BYTES = 512 << 20
_SCRATCH_FILES = 1 << 16

# -- linux/sched.h, linux/mount.h, linux/fcntl.h ---------------------------------------------------
_NEW_NAMESPACES = 0x10000000 | 0x00020000 | 0x20000000 | 0x40000000 | 0x08000000 | 0x04000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_BIND, _MS_REC, _MS_SLAVE = 0x1000, 0x4000, 1 << 19
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000

#: Devices that any program may need, and those of NVIDIA's driver.
_DEVICES = ("null", "zero", "full", "random", "urandom")
_CUDA = "nvidia*"

_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}

#: Capabilities are numbered below this (64 bits hold them).
_MOST_CAPABILITIES = 64

#: ``struct __user_cap_header_struct`` with _LINUX_CAPABILITY_VERSION_3, and three empty sets.
_CAPABILITY_HEADER = struct.pack("Ii", 0x20080522, 0)
_NO_CAPABILITIES = bytes(24)


def enter(*, cuda: bool) -> None:
    """Go on as a process in namespaces of its own; the caller is left behind, waiting for it.

    Args:
        cuda: whether to leave it the devices of NVIDIA's driver.

    Raises:
        OSError: something is not allowed here; raised in the process that got that far, which must
            not run code that nobody trusts.
    """
    user, group = os.geteuid(), os.getegid()
    folder = os.getcwd()
    call("unshare", _NEW_NAMESPACES)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")
    tell = _fork_and_mirror()
    _confine.die_with_parent()
    _set_up_files(cuda=cuda)
    os.chdir(folder)
    _fork_and_reap(tell)
    os.setsid()
    _confine.die_with_parent()
    drop_capabilities()
    _seccomp.install(None)


def drop_capabilities() -> None:
    """Give up what root, or the maker of a namespace, may do beyond what others may."""
    for capability in range(_MOST_CAPABILITIES):
        with suppress(OSError):  # numbers that this kernel does not know, or that are gone
            call("prctl", PR_CAPBSET_DROP, capability)
    call("capset", _CAPABILITY_HEADER, _NO_CAPABILITIES)


# -- the three processes --------------------------------------------------------------------------
def _fork_and_mirror() -> int:
    """Return in a child, with a descriptor for the status of the worker, by which this process
    will end."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(told)
        return tell
    try:
        os.close(tell)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _close_all_but(told)
        answer = os.read(told, 4)
        status = os.waitpid(child, 0)[1]
        if len(answer) == 4:
            (status,) = struct.unpack("I", answer)
        if os.WIFSIGNALED(status):
            with suppress(OSError):  # some can't be handled
                signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
            os.kill(os.getpid(), os.WTERMSIG(status))
        os._exit(os.waitstatus_to_exitcode(status))
    finally:
        os._exit(1)


def _fork_and_reap(tell: int) -> None:
    """Return in a child; wait in this process, the first of its namespace, until the child ends."""
    child = os.fork()
    if child == 0:
        os.close(tell)
        return
    try:
        call("prctl", PR_SET_DUMPABLE, 0)
        _close_all_but(tell)
        while True:
            pid, status = os.wait()
            if pid == child:
                os.write(tell, struct.pack("I", status))
                break
    finally:
        os._exit(0)


def _close_all_but(descriptor: int) -> None:
    os.closerange(0, descriptor)
    os.closerange(descriptor + 1, os.sysconf("SC_OPEN_MAX"))


# -- the view of files ----------------------------------------------------------------------------
def _set_up_files(*, cuda: bool) -> None:
    """Everything read-only, a folder of few devices, a scratch folder, and a view of processes."""
    _mount(None, "/", None, _MS_REC | _MS_SLAVE)
    with _opened(devices(cuda=cuda)) as opened:
        _mount("tmpfs", "/dev", "tmpfs", _MS_NOSUID, "mode=755,size=64k")
        for name, descriptor in opened.items():
            target = Path("/dev", name)
            target.parent.mkdir(exist_ok=True)
            target.touch()
            _mount(f"/proc/self/fd/{descriptor}", str(target), None, _MS_BIND)
        for name, where in _LINKS.items():
            os.symlink(where, f"/dev/{name}")
        os.mkdir(SCRATCH)
        # Devices elsewhere, on which root could write around the file system, can't be opened.
        _set_attributes("/", _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV, recursive=True)
        for name in opened:
            _set_attributes(f"/dev/{name}", clear=_ATTR_NODEV)
    limits = f"mode=700,size={SCRATCH_BYTES},nr_inodes={_SCRATCH_FILES}"
    _mount("tmpfs", SCRATCH, "tmpfs", _MS_NOSUID | _MS_NODEV, limits)
    # Where parts of /proc are hidden, as in most containers, no other can be mounted. The one that
    # is there shows other processes, but this user namespace may not look into them.
    with suppress(OSError):
        _mount("proc", "/proc", "proc", _MS_RDONLY | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


def devices(*, cuda: bool) -> list[str]:
    """Names, below /dev, of the devices that a confined process may use and that are here."""
    folder = Path("/dev")
    paths = [folder / name for name in _DEVICES]
    if cuda:
        paths += [*folder.glob(_CUDA), *folder.glob(f"{_CUDA}/*")]
    # `is_char_device` says no of a device that is away.
    return [str(path.relative_to(folder)) for path in paths if path.is_char_device()]


@contextmanager
def _opened(names: Iterable[str]) -> Iterator[dict[str, int]]:
    """Descriptors of devices, by which they are found when another folder lies over theirs."""
    descriptors: dict[str, int] = {}
    try:
        for name in names:
            descriptors[name] = os.open(f"/dev/{name}", os.O_PATH | os.O_CLOEXEC)
        yield descriptors
    finally:
        for descriptor in descriptors.values():
            os.close(descriptor)


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    call("mount", *encoded, flags, os.fsencode(data) if data else None)


def _set_attributes(
    path: str, attributes: int = 0, clear: int = 0, recursive: bool = False
) -> None:
    # struct mount_attr: set, clear, propagation, user namespace
    values = ctypes.create_string_buffer(struct.pack("4Q", attributes, clear, 0, 0), 32)
    flags = _AT_RECURSIVE if recursive else 0
    call("mount_setattr", _AT_FDCWD, os.fsencode(path), flags, values, 32)


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def close_files(keep: Iterable[int]) -> None:
    """Put /dev/null in the place of every descriptor above 2 that is none of ``keep`` and no pipe.

    What was opened before leads around the view of files. The numbers stay taken, so that whatever
    closes one of them later closes no other.
    """
    kept = {0, 1, 2, *keep}
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        for name in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                if int(name) not in {*kept, null} and not _is_pipe(int(name)):
                    os.dup2(null, int(name), inheritable=False)
    finally:
        os.close(null)


def _is_pipe(descriptor: int) -> bool:
    return stat.S_ISFIFO(os.fstat(descriptor).st_mode)
