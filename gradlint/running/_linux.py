"""System calls of Linux that Python has no function for, and their numbers."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from typing import Any

#: ``prctl`` (linux/prctl.h).
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38

#: Numbers of system calls: x86-64 (asm/unistd_64.h), and arm64 (asm-generic/unistd.h), where None
#: says that the call does not exist.
_NUMBERS: dict[str, tuple[int, int | None]] = {
    "accept": (43, 202),
    "accept4": (288, 242),
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bind": (49, 200),
    "bpf": (321, 280),
    "capset": (126, 91),
    "chmod": (90, None),
    "chown": (92, None),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "connect": (42, 203),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "fcntl": (72, 25),
    "file_setattr": (469, 469),
    "finit_module": (313, 273),
    "fremovexattr": (199, 16),
    "fsconfig": (431, 431),
    "fsetxattr": (190, 7),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "futimesat": (261, None),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "kill": (62, 129),
    "landlock_add_rule": (445, 445),
    "landlock_create_ruleset": (444, 444),
    "landlock_restrict_self": (446, 446),
    "lchown": (94, None),
    "listen": (50, 201),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "migrate_pages": (256, 238),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "msgctl": (71, 187),
    "msgget": (68, 186),
    "msgrcv": (70, 188),
    "msgsnd": (69, 189),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41),
    "prlimit64": (302, 261),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "removexattr": (197, 14),
    "removexattrat": (466, 466),
    "request_key": (249, 218),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "seccomp": (317, 277),
    "semctl": (66, 191),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "setpriority": (141, 140),
    "settimeofday": (164, 170),
    "setxattr": (188, 5),
    "setxattrat": (463, 463),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmget": (29, 194),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "tgkill": (234, 131),
    "tkill": (200, 130),
    "truncate": (76, 45),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "utime": (132, None),
    "utimensat": (280, 88),
    "utimes": (235, None),
}

#: The highest number of a call that Linux 6.18 has; what came later is unknown here.
LAST_KNOWN = 470

#: ``AUDIT_ARCH_*`` of linux/audit.h, and the column of :data:`_NUMBERS`, by ``platform.machine``.
_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}


def architecture() -> int:
    """The number by which the kernel names this processor to filters of system calls.

    Raises:
        OSError: it is not one of those whose system calls are known here.
    """
    return _machine()[0]


def number(name: str) -> int | None:
    """The number of the system call ``name`` on this processor; None where there is no such call.

    Raises:
        OSError: as :func:`architecture`.
    """
    return _NUMBERS[name][_machine()[1]]


def call(name: str, *arguments: Any) -> int:
    """Make the system call ``name``, or ``prctl`` of the C library.

    Raises:
        OSError: it failed; the text names the call.
    """
    library = ctypes.CDLL(None, use_errno=True)
    words = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    if name == "prctl":
        result = library.prctl(*words, *[ctypes.c_long(0)] * (5 - len(words)))
    else:
        which = number(name)
        if which is None:
            raise OSError(f"{name}: no such system call here")
        library.syscall.restype = ctypes.c_long
        result = library.syscall(ctypes.c_long(which), *words)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return int(result)


def _machine() -> tuple[int, int]:
    machine = platform.machine()
    # A 32-bit Python on a 64-bit kernel makes other calls.
    if sys.platform != "linux" or machine not in _MACHINES or sys.maxsize < 2**32:
        raise OSError(f"system calls of {sys.platform} on {machine} are not known to gradlint")
    return _MACHINES[machine]
