"""Confinement by Landlock, where namespaces are not allowed, as in most containers.

The worker may read any file, and write beneath its scratch folder and to a few devices alone. It
may neither look into processes outside nor, by the filter of system calls, send them signals.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress

from gradlint.running import _namespaces, _seccomp
from gradlint.running._linux import PR_SET_NO_NEW_PRIVS, call

#: The oldest version that refuses to truncate files (Linux 6.2). Older ones can be led around.
LEAST_VERSION = 3

# -- linux/landlock.h ------------------------------------------------------------------------------
_VERSION = 1  # LANDLOCK_CREATE_RULESET_VERSION
_PATH_BENEATH = 1

#: LANDLOCK_ACCESS_FS_*: WRITE_FILE, REMOVE_DIR, REMOVE_FILE, MAKE_CHAR … MAKE_SYM, REFER, TRUNCATE;
#: not EXECUTE, READ_FILE and READ_DIR, which stay as they are.
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_WRITING = _WRITE_FILE | sum(1 << bit for bit in range(4, 15))

#: LANDLOCK_ACCESS_NET_BIND_TCP and _CONNECT_TCP; LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET and _SIGNAL.
_NET, _NET_SINCE = 0b11, 4
_SCOPES, _SCOPES_SINCE = 0b11, 6


def version() -> int:
    """The version of Landlock here.

    Raises:
        OSError: there is none, or it is not allowed.
    """
    return call("landlock_create_ruleset", None, 0, _VERSION)


def enter(scratch: str, *, cuda: bool) -> None:
    """Confine this process and all that it starts.

    Args:
        scratch: the folder in which it may write.
        cuda: whether it may use the devices of NVIDIA's driver.

    Raises:
        OSError: Landlock or seccomp is missing here, or too old.
    """
    found = version()
    if found < LEAST_VERSION:
        raise OSError(f"Landlock has version {found} here, {LEAST_VERSION} is needed (Linux 6.2)")
    # struct landlock_ruleset_attr; what is too new is left out by its size.
    attributes = struct.pack("3Q", _WRITING, _NET, _SCOPES)
    size = 24 if found >= _SCOPES_SINCE else 16 if found >= _NET_SINCE else 8
    rules = call("landlock_create_ruleset", attributes, size, 0)
    try:
        _allow(rules, scratch, _WRITING)
        for name in _namespaces.devices(cuda=cuda):
            _allow(rules, f"/dev/{name}", _WRITE_FILE | _TRUNCATE)
        call("prctl", PR_SET_NO_NEW_PRIVS, 1)
        call("landlock_restrict_self", rules, 0)
    finally:
        os.close(rules)
    _namespaces.drop_capabilities()
    _seccomp.install(os.getpid())


def _allow(rules: int, path: str, access: int) -> None:
    with suppress(FileNotFoundError):
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            # struct landlock_path_beneath_attr, which is packed
            rule = struct.pack("=Qi", access, descriptor)
            call("landlock_add_rule", rules, _PATH_BENEATH, rule, 0)
        finally:
            os.close(descriptor)
