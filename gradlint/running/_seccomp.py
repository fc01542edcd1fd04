"""The filter of system calls that untrusted code runs under (seccomp, as classic BPF).

The filter refuses what would lead out of the confinement; all else is allowed. It stays for the
life of the process and of everything it starts.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Iterable, Iterator

from gradlint.running._linux import (
    LAST_KNOWN,
    PR_SET_NO_NEW_PRIVS,
    architecture,
    call,
    number,
)

#: Refused always. Sockets are refused altogether and not by family: one of the family AF_UNIX
#: reaches daemons (of containers, of keys) through a read-only file system. ``socketpair`` is left,
#: which connects a process to its own children; see :func:`program` for its kinds.
REFUSED = (
    # other processes
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp"),
    *("pidfd_getfd", "perf_event_open"),
    # other views of files, devices and processes
    *("mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "open_tree_attr"),
    *("fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "unshare", "setns"),
    *("name_to_handle_at", "open_by_handle_at", "fanotify_init", "quotactl"),
    # the network, and daemons
    *("socket", "bind", "connect", "listen", "accept", "accept4"),
    # ways around this filter
    *("io_uring_setup", "io_uring_enter", "io_uring_register"),
    # the kernel
    *("bpf", "userfaultfd", "keyctl", "add_key", "request_key"),
    *("kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module"),
    *("acct", "swapon", "swapoff", "reboot", "syslog"),
    *("settimeofday", "clock_settime", "clock_adjtime", "adjtimex"),
    *("sethostname", "setdomainname"),
)

#: Refused where no namespaces hold the process, but Landlock: it leaves these open, which change
#: files without writing to them, or are shared with all processes of the user.
REFUSED_WITHOUT_NAMESPACES = (
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat"),
    *("removexattr", "lremovexattr", "fremovexattr", "removexattrat", "file_setattr"),
    *("utime", "utimes", "futimesat", "utimensat"),
    *("shmget", "shmat", "shmctl", "semget", "semop", "semctl", "semtimedop"),
    *("msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink"),
    *("pidfd_open", "pidfd_send_signal", "tkill"),
)

#: Calls that act on the process, the group or the thread that their first argument names.
_FIRST_IS_A_PROCESS = (
    *("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "prlimit64", "migrate_pages"),
    *("sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler", "move_pages"),
)

#: Calls that do so with their second argument; the first says what kind it is.
_SECOND_IS_A_PROCESS = ("setpriority", "ioprio_set")

#: Flags of ``clone`` that make namespaces (CLONE_NEW* of linux/sched.h; that of time namespaces is
#: part of the mask for the signal, and for ``clone3`` alone).
_NEW_NAMESPACES = 0x7E020000

#: Terminals: input in the name of whoever sits there (TIOCSTI, TIOCLINUX). Signals by descriptor to
#: any process of the user (FIOSETOWN, SIOCSPGRP).
_REFUSED_IOCTLS = (0x5412, 0x541C, 0x8901, 0x8902)

#: F_SETOWN, F_SETOWN_EX, F_SETSIG: signals, of any kind, by descriptor.
_REFUSED_FCNTLS = (8, 15, 10)

# -- classic BPF (linux/bpf_common.h, linux/filter.h) ----------------------------------------------
_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_IF_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_IF_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_IF_ANY_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_AND = 0x54  # BPF_ALU | BPF_AND | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K

# -- linux/seccomp.h -------------------------------------------------------------------------------
_SET_MODE_FILTER = 1
_KILL = 0x80000000
_ERRNO = 0x00050000
_ALLOW = 0x7FFF0000

#: Offsets in ``struct seccomp_data``.
_NUMBER, _ARCHITECTURE = 0, 4


def _argument(index: int) -> int:
    """Offset of the low half of an argument; both processors known here are little-endian. The
    arguments looked at are 32 bits wide for the kernel too."""
    return 16 + 8 * index


Instruction = tuple[int, int, int, int]


def program(pid: int | None) -> list[Instruction]:
    """The filter: code, two jumps and a constant for each instruction.

    Args:
        pid: the process to be confined, where it has no namespace of processes of its own: the one
            that it may signal, and set limits for. None where it has one.

    Raises:
        OSError: the system calls of this processor are not known.
    """
    refused = [*REFUSED, *(REFUSED_WITHOUT_NAMESPACES if pid is not None else ())]
    code: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_IF_EQUAL, 1, 0, architecture()),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        # Newer calls, and those of the x32 interface, whose numbers have bit 30 set.
        (_IF_AT_LEAST, 0, 1, LAST_KNOWN + 1),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
    ]
    # Its flags lie in memory, where no filter can read them; the C library goes back to ``clone``.
    code += _when("clone3", [(_RETURN, 0, 0, _ERRNO | errno.ENOSYS)])
    for name in refused:
        code += _when(name, [(_RETURN, 0, 0, _ERRNO | errno.EPERM)])
    code += _when(
        "clone",
        [(_LOAD, 0, 0, _argument(0)), (_IF_ANY_BIT, 0, 1, _NEW_NAMESPACES), *_answers()],
    )
    # One of datagrams can be sent to any path.
    code += _when(
        "socketpair",
        [
            (_LOAD, 0, 0, _argument(1)),
            (_AND, 0, 0, 0xF),  # without SOCK_CLOEXEC and SOCK_NONBLOCK
            (_IF_EQUAL, 0, 1, 2),  # SOCK_DGRAM
            *_answers(),
        ],
    )
    code += _among("ioctl", 1, _REFUSED_IOCTLS)
    code += _among("fcntl", 1, _REFUSED_FCNTLS)
    if pid is not None:
        for name in _FIRST_IS_A_PROCESS:
            code += _unless_own(name, 0, pid)
        for name in _SECOND_IS_A_PROCESS:
            code += _unless_own(name, 1, pid)
    return [*code, (_RETURN, 0, 0, _ALLOW)]


def install(pid: int | None) -> None:
    """Put this thread, and whatever it starts, under :func:`program` for good.

    Raises:
        OSError: the kernel has no such filters, or does not allow them here.
    """
    code = [struct.pack("HBBI", *instruction) for instruction in program(pid)]
    instructions = ctypes.create_string_buffer(b"".join(code))

    class Program(ctypes.Structure):
        """``struct sock_fprog`` of linux/filter.h."""

        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    filters = Program(len(code), ctypes.addressof(instructions))
    call("prctl", PR_SET_NO_NEW_PRIVS, 1)
    call("seccomp", _SET_MODE_FILTER, 0, ctypes.byref(filters))


def _when(name: str, then: list[Instruction]) -> Iterator[Instruction]:
    """``then``, which returns, if the call is ``name``; the number stays loaded if it is not."""
    which = number(name)
    if which is not None:
        yield (_IF_EQUAL, 0, len(then), which)
        yield from then


def _answers() -> list[Instruction]:
    """Refuse after a test that held, allow after one that did not."""
    return [(_RETURN, 0, 0, _ERRNO | errno.EPERM), (_RETURN, 0, 0, _ALLOW)]


def _among(name: str, index: int, values: Iterable[int]) -> Iterator[Instruction]:
    """Refuse the call where an argument is one of ``values``."""
    body: list[Instruction] = [(_LOAD, 0, 0, _argument(index))]
    for value in values:
        body += [(_IF_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ERRNO | errno.EPERM)]
    yield from _when(name, [*body, (_RETURN, 0, 0, _ALLOW)])


def _unless_own(name: str, index: int, pid: int) -> Iterator[Instruction]:
    """Refuse the call unless it means this process or its group."""
    body: list[Instruction] = [(_LOAD, 0, 0, _argument(index))]
    for value in (0, pid, -pid & 0xFFFFFFFF):
        body += [(_IF_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ALLOW)]
    yield from _when(name, [*body, (_RETURN, 0, 0, _ERRNO | errno.EPERM)])
