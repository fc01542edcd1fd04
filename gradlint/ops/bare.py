"""The op's side of a confirmation: a program of its own that runs an op for somebody else.

It imports the standard library and torch, and nothing else, so that no code of a checker is in the
process in which the op runs. It is executed from its text, under a name that says nothing
(``running/_zygote.py``). The judge, another process, imports it to send and receive the same.

A message is two lengths, a header in JSON, and the bytes of arrays, whose dtypes and shapes the
header holds. Both lengths are limited, and nothing that arrives can run code.
"""

from __future__ import annotations

import _thread
import copy
import ctypes
import gc
import importlib
import importlib.util
import json
import math
import os
import random
import select
import signal
import socket
import struct
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, NoReturn

import torch

#: Bytes of the header and of the arrays of one message, at most (heuristic: samples are small).
MOST_HEADER = 1 << 20
MOST_ARRAYS = 1 << 28

_LENGTHS = struct.Struct(">IQ")

DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
        *(torch.complex128, torch.complex64, torch.complex32),
        *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
    )
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}

#: Descriptors below this are closed in a process that was forked (heuristic: a server that has only
#: imported modules has a dozen).
_MOST_FDS = 4096

#: How many forks of a zygote cost what it costs to make them cheaper (heuristic: 0.2 s of processor
#: time to move what torch holds into large pages, and 8 ms for each fork and its end).
WORTH_FORKS = 25

#: Kind of an argument without tensors → what makes it from plain data.
_LEAVES: dict[str, Callable[[Any], Any]] = {
    "plain": lambda value: value,
    "dtype": lambda name: getattr(torch, name),
    "device": torch.device,
    "complex": lambda parts: complex(*parts),
}

#: How many times a module is asked for before a process is kept that holds it: its import is then
#: done once more, and never again (heuristic: two operators).
WORTH_HOLDING = 2

#: How many processes hold a module at once, the latest ones: runs go through one file after
#: another (heuristic: two for each of the files that two workers check, and as many on the way).
MOST_HELD = 8

#: Bytes of a request that says which module it is about, at most: what such a socket takes.
MOST_REQUEST = 1 << 17

#: Seconds that a held module may take to be imported. Whoever waits does not wait for that.
_HOLDING_SECONDS = 60

_PR_SET_PDEATHSIG = 1  # linux/prctl.h

#: Threads of torch's, in a process of the op's own: more than one, which is what checks have.
THREADS = 2

#: Fields of /proc/self/stat, counted from behind the name: where the command line begins and ends,
#: and the environment that the process was started with (proc(5)).
_ARGUMENTS, _ENVIRONMENT = (45, 46), (47, 48)


# -- Messages --------------------------------------------------------------------------------------
def send(fd: int, header: dict[str, Any], arrays: Sequence[torch.Tensor] = ()) -> None:
    """Write a message to ``fd``.

    Raises:
        ValueError: a tensor is not dense, or has a dtype that does not travel.
        OSError: the other side is gone.
    """
    described, parts = [], []
    for tensor in arrays:
        if tensor.layout is not torch.strided or tensor.dtype not in _NAMES:
            raise ValueError(f"a tensor of {tensor.layout} and {tensor.dtype}")
        described.append([_NAMES[tensor.dtype], list(tensor.shape)])
        parts.append(_bytes_of(tensor))
    body = b"".join(parts)
    text = json.dumps({**header, "arrays": described}).encode()
    if len(text) > MOST_HEADER or len(body) > MOST_ARRAYS:
        raise ValueError("a message that is too large")
    view = memoryview(_LENGTHS.pack(len(text), len(body)) + text + body)
    while view:
        view = view[os.write(fd, view) :]


def receive(fd: int) -> tuple[dict[str, Any], list[torch.Tensor]]:
    """Read the next message from ``fd``: its header and its arrays.

    Raises:
        ValueError: it is no message, or too large.
        EOFError: the other side is gone.
    """
    text, body = _LENGTHS.unpack(_read(fd, _LENGTHS.size))
    if text > MOST_HEADER or body > MOST_ARRAYS:
        raise ValueError("a message that is too large was announced")
    try:
        header = json.loads(_read(fd, text))
    except RecursionError as error:
        raise ValueError("a header that is nested too deeply") from error
    return header, unpacked(header, _read(fd, body))


def unpacked(header: Any, body: bytes | bytearray) -> list[torch.Tensor]:
    """The arrays in ``body``, as ``header["arrays"]`` describes them: pairs of dtype and shape.

    Raises:
        ValueError: the description is none, or does not fit.
    """
    described = header.get("arrays") if isinstance(header, dict) else None
    if not isinstance(described, list):
        raise ValueError("a header without arrays")
    arrays, start = [], 0
    for item in described:
        name, shape = item if isinstance(item, list) and len(item) == 2 else (None, None)
        dtype = DTYPES.get(name) if isinstance(name, str) else None
        if dtype is None or not isinstance(shape, list):
            raise ValueError("an array without dtype or shape")
        if not all(type(size) is int and size >= 0 for size in shape):
            raise ValueError("an array with a shape that is none")
        count = math.prod(shape)
        end = start + count * dtype.itemsize
        if end > len(body) or max(shape, default=0) > MOST_ARRAYS:
            raise ValueError("an array that is longer than what came")
        if count:
            part = bytearray(body[start:end])
            arrays.append(torch.frombuffer(part, dtype=dtype).reshape(shape).clone())
        else:
            arrays.append(torch.empty(shape, dtype=dtype))
        start = end
    if start != len(body):
        raise ValueError("more came than was announced")
    return arrays


def packed(arrays: Sequence[torch.Tensor]) -> tuple[list[list[Any]], list[bytes]]:
    """Dtypes and shapes of ``arrays``, and their bytes; for dense tensors of :data:`DTYPES`."""
    described = [[_NAMES[tensor.dtype], list(tensor.shape)] for tensor in arrays]
    return described, [_bytes_of(tensor) for tensor in arrays]


def _bytes_of(tensor: torch.Tensor) -> bytes:
    dense = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    size = dense.numel() * dense.element_size()
    return ctypes.string_at(dense.data_ptr(), size) if size else b""


def _read(fd: int, size: int) -> bytearray:
    found = bytearray()
    while len(found) < size:
        chunk = os.read(fd, min(size - len(found), 1 << 20))
        if not chunk:
            raise EOFError("the other side is gone")
        found += chunk
    return found


# -- The op ----------------------------------------------------------------------------------------
class _Op:
    """The op that a request to load describes.

    Args:
        wanted: where it is, how it is made and called (``checking/confirmable.py``).
        arrays: the tensors of the call.
        module: its module, if this process has that already.

    Attributes:
        module: its module.
    """

    def __init__(
        self, wanted: dict[str, Any], arrays: list[torch.Tensor], module: Any = None
    ) -> None:
        self._wanted = wanted
        self._arrays = arrays
        self._grad = torch.autograd.grad
        self._call = torch.func.functional_call
        self._draw()
        self.module = imported(wanted) if module is None else module
        found = _found(self.module, wanted["attribute"])
        if isinstance(found, type) and issubclass(found, torch.autograd.Function):
            found = found.apply
        elif isinstance(found, type):
            copies = [tensor.clone() for tensor in arrays]
            found = found(**_built(wanted["constructor"], copies))
        elif wanted["module"] and not isinstance(found, torch.nn.Module):
            found = found()
        self._op = found

    def outputs(self, values: list[torch.Tensor]) -> list[torch.Tensor]:
        """What forward returns at these values of the inputs."""
        return self._forward(values)[1]

    def gradients(
        self, values: list[torch.Tensor], cotangents: list[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        """What backward returns for one cotangent for each differentiable output."""
        leaves, outputs = self._forward(values)
        chosen = [output for output in outputs if differentiable(output)]
        found: Any = self._grad(chosen, leaves, cotangents, allow_unused=True)
        return list(found)

    def _draw(self) -> None:
        """Random numbers are the same at every call."""
        _draw_from(self._wanted["seed"])

    def _forward(self, values: list[torch.Tensor]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        wanted = self._wanted
        leaves = [value.detach().clone().requires_grad_() for value in values]
        passed = [leaf.clone() for leaf in leaves] if wanted["in_place"] else leaves
        tensors = [tensor.clone() for tensor in self._arrays]
        for place, tensor in zip(wanted["inputs"], passed, strict=True):
            tensors[place] = tensor
        args, kwargs = (_built(wanted[name], tensors) for name in ("args", "kwargs"))
        state = {name: tensors[place] for name, place in wanted["state"].items()}
        op = copy.deepcopy(self._op) if wanted["stateful"] else self._op
        self._draw()
        with torch.enable_grad():
            returned = self._call(op, state, args, kwargs) if state else op(*args, **kwargs)
            outputs = list(_tensors(returned))
        return leaves, outputs


def differentiable(output: torch.Tensor) -> bool:
    """Whether a gradient can be taken of ``output``."""
    return output.requires_grad and (output.is_floating_point() or output.is_complex())


def _draw_from(seed: int) -> None:
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)


def imported(wanted: dict[str, Any]) -> Any:
    """The module that ``wanted`` names, where it says."""
    os.chdir(wanted["folder"])
    os.environ.clear()
    os.environ.update(wanted["environment"])
    sys.path[:] = wanted["sys_path"]
    importlib.invalidate_caches()
    for name in wanted["imports"]:
        if name.endswith((".so", ".dll", ".dylib", ".pyd")):
            torch.ops.load_library(name)
        elif name.endswith(".py"):
            _executed(os.path.splitext(os.path.basename(name))[0], name)
        else:
            importlib.import_module(name)
    if wanted["file"]:
        return _executed(wanted["name"], wanted["file"])
    return torch if wanted["name"] == "torch" else importlib.import_module(wanted["name"])


def _found(module: Any, attribute: list[str]) -> Any:
    """What the ``attribute``, of names one in the other, is in ``module``."""
    thing = module
    for part in attribute:
        if not hasattr(thing, part) and hasattr(thing, "__path__"):
            importlib.import_module(f"{thing.__name__}.{part}")
        thing = getattr(thing, part)
    return thing


def _executed(name: str, path: str) -> Any:
    """The module ``name`` made of the file at ``path``."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} can't be loaded as a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _built(item: Any, tensors: list[torch.Tensor]) -> Any:
    """The argument that ``item`` stands for: a pair of a kind and what is needed to make it."""
    kind, value = item
    if kind == "tensor":
        return tensors[value]
    if kind == "list":
        return [_built(part, tensors) for part in value]
    if kind == "tuple":
        return tuple(_built(part, tensors) for part in value)
    if kind == "dict":
        return {key: _built(part, tensors) for key, part in value}
    if kind == "object":
        return SimpleNamespace(**{name: _built(part, tensors) for name, part in value})
    return _LEAVES[kind](value)


def _tensors(returned: Any) -> Iterator[torch.Tensor]:
    if isinstance(returned, torch.Tensor):
        yield returned
    elif isinstance(returned, (list, tuple)):
        for part in returned:
            yield from _tensors(part)
    elif isinstance(returned, dict):
        for part in returned.values():
            yield from _tensors(part)


# -- The process -----------------------------------------------------------------------------------
def answer(reader: int, writer: int, module: Any = None) -> None:
    """Load an op and answer requests about it, then perhaps another one of its module, until
    nobody asks any more.

    Args:
        reader, writer: descriptors.
        module: the op's, if this process has it already; the answer to a request to load says so.
    """
    torch.set_num_threads(THREADS)
    op = None
    while True:
        try:
            header, arrays = receive(reader)
        except (EOFError, OSError):
            return
        reply: dict[str, Any] = {}
        found: list[torch.Tensor] = []
        try:
            if op is None or header["ask"] == "load":
                op = None
                _limit(header["memory_mb"])
                op = _Op(header, arrays, module)
                reply["held"] = module is not None
                module = op.module
            elif header["ask"] == "outputs":
                found = op.outputs(arrays)
                reply["differentiable"] = [differentiable(tensor) for tensor in found]
            else:
                count = header["count"]
                gradients = op.gradients(arrays[:count], arrays[count:])
                reply["given"] = [gradient is not None for gradient in gradients]
                found = [gradient for gradient in gradients if gradient is not None]
            send(writer, reply, found)
        except OSError:
            return
        except BaseException as error:
            words = f"{type(error).__name__}: {error}".partition("\n")[0]
            send(writer, {"error": words[:200]})
            if op is None:
                return


def main() -> None:
    """Answer over the standard streams, which the op does not get."""
    reader, writer = os.dup(0), os.dup(1)
    _silence()
    answer(reader, writer)


class _Holders:
    """Processes that hold a module each, and fork for every request about it.

    Args:
        poll: of the zygote, which sees that a holder is ready, or gone.
        spare: see :func:`zygote`.
        inherited: descriptors of the zygote that holders must not have.
    """

    def __init__(
        self, poll: select.poll, spare: Callable[[], None], inherited: Callable[[], list[int]]
    ) -> None:
        self._poll, self._spare, self._inherited = poll, spare, inherited
        self._asked: dict[str, int] = {}
        self._ways: dict[str, socket.socket] = {}
        self._processes: dict[str, int] = {}
        self._ready: set[str] = set()

    def descriptors(self) -> list[int]:
        """Those that belong to holders."""
        return [way.fileno() for way in self._ways.values()]

    def pass_on(self, request: bytes, descriptors: list[int]) -> bool:
        """Whether a process that holds the module in ``request`` got it. Where it is asked for
        often, one is made, which gets what comes later."""
        try:
            wanted = json.loads(request)
        except ValueError:
            return False
        key = wanted["key"]
        if key in self._ready:
            with suppress(OSError):
                socket.send_fds(self._ways[key], [b"!"], descriptors)
                return True
            return False
        self._asked[key] = self._asked.get(key, 0) + 1
        if self._asked[key] == WORTH_HOLDING:
            if len(self._ways) == MOST_HELD:
                self._drop(next(iter(self._ways)))
            self._hold(key, wanted, descriptors)
        return False

    def hear(self, fd: int) -> None:
        """The holder that ``fd`` belongs to has said that it is ready, or ended."""
        for key in [key for key, way in self._ways.items() if way.fileno() == fd]:
            try:
                word = self._ways[key].recv(1, socket.MSG_DONTWAIT)
            except BlockingIOError:
                continue  # it was another one's, which ended meanwhile
            except OSError:
                word = b""
            if word:
                self._ready.add(key)
            else:
                self._drop(key)

    def end(self) -> None:
        """End them all."""
        for key in list(self._ways):
            self._drop(key)

    def _drop(self, key: str) -> None:
        way = self._ways.pop(key)
        self._poll.unregister(way)
        way.close()
        _end(self._processes.pop(key))
        self._ready.discard(key)

    def _hold(self, key: str, wanted: dict[str, Any], descriptors: list[int]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        others = [ours.fileno(), *descriptors, *self._inherited(), *self.descriptors()]
        child = os.fork()
        if child == 0:
            try:
                _by_itself(others)
                signal.alarm(_HOLDING_SECONDS)  # ends this process
                torch.set_num_threads(1)
                _limit(wanted["memory_mb"])
                _draw_from(wanted["seed"])
                module = imported(wanted)
                signal.alarm(0)
                gc.freeze()  # as in the zygote
                if _can_be_forked():
                    theirs.send(b"!")
                    zygote(theirs.detach(), self._spare, module)
            finally:
                os._exit(1)
        theirs.close()
        self._ways[key], self._processes[key] = ours, child
        self._poll.register(ours, select.POLLIN)


def _can_be_forked() -> bool:
    """Whether a fork of this process has all that this process has: it has a single thread, and
    holds no device."""
    return len(os.listdir("/proc/self/task")) == 1 and not torch.cuda.is_initialized()


def zygote(control: int, spare: Callable[[], None], module: Any = None) -> NoReturn:
    """Fork a process for every request, until nobody holds the other end of ``control``.

    A request carries two descriptors: what the process answers over, and one of which the other
    end belongs to whoever asks. When that is closed, the process is killed. Its text may be JSON
    that says which module it will ask for; then a process may be kept that has imported it.

    Args:
        control: of a socket that keeps messages apart.
        spare: makes this process cheaper to fork.
        module: what the forks hold, if all requests are about one module.
    """
    requests = socket.socket(fileno=control)
    forks = 0
    alive: dict[int, int] = {}
    poll = select.poll()
    poll.register(control, select.POLLIN)
    holders = _Holders(poll, spare, lambda: [control, *alive])
    while True:
        for fd, _ in poll.poll():
            if fd in alive:
                poll.unregister(fd)
                os.close(fd)
                _end(alive.pop(fd))
                continue
            if fd != control:
                holders.hear(fd)
                continue
            text, descriptors, _, _ = socket.recv_fds(requests, MOST_REQUEST, 2)
            if not text:
                holders.end()
                for child in alive.values():
                    _end(child)
                os._exit(0)
            if len(descriptors) != 2:
                continue
            channel, lifeline = descriptors
            if module is None and holders.pass_on(text, descriptors):
                os.close(channel)
                os.close(lifeline)
                continue
            forks += 1
            if forks == WORTH_FORKS:
                spare()
            others = [control, lifeline, *alive, *holders.descriptors()]
            alive[lifeline] = _forked(channel, others, module)
            poll.register(lifeline, select.POLLIN | select.POLLHUP)


def _forked(channel: int, others: Sequence[int], module: Any) -> int:
    child = os.fork()
    if child:
        os.close(channel)
        return child
    status = 1
    try:
        _by_itself(others)
        answer(channel, channel, module)
        status = 0
    finally:
        os._exit(status)


def _by_itself(others: Sequence[int]) -> None:
    """Part this process, which was forked a moment ago, from the one that it was forked from.

    Args:
        others: descriptors that it must not have.
    """
    for fd in others:
        os.close(fd)
    os.setsid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    _silence()


def _end(child: int) -> None:
    with suppress(OSError):
        os.killpg(child, signal.SIGKILL)
    with suppress(OSError):
        os.kill(child, signal.SIGKILL)  # before it became the leader of its group
    with suppress(OSError):
        os.waitpid(child, 0)


def _silence() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


def _limit(memory_mb: int | None) -> None:
    """No core dumps, and at most ``memory_mb`` MiB beyond what is held now (Linux)."""
    with suppress(ImportError, OSError, ValueError, IndexError):
        resource = importlib.import_module("resource")
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with open("/proc/self/status") as status:
            held = next(int(line.split()[1]) for line in status if line.startswith("VmData:"))
        if memory_mb is not None:
            limit = held * 1024 + memory_mb * 2**20
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _overwrite_command_line() -> None:
    """Let /proc show neither how this process was started, nor with what environment (Linux)."""
    with open("/proc/self/stat", "rb") as told:
        fields = told.read().rpartition(b")")[2].split()
    for (first, last), text in ((_ARGUMENTS, b"python"), (_ENVIRONMENT, b"")):
        start, end = int(fields[first]), int(fields[last])
        if start and end > start:
            ctypes.memset(start, 0, end - start)
            ctypes.memmove(start, text, min(len(text), end - start))


def start_zygote(control: int, spare: Callable[[], None]) -> NoReturn:
    """Be a zygote, in a process that was forked for it; see :func:`zygote`.

    The requests are served by a new thread: a fork of it has no other, and so a stack on which
    nothing stands of what started this process.
    """
    _silence()
    os.closerange(3, control)
    os.closerange(control + 1, _MOST_FDS)
    warnings.simplefilter("ignore")
    sys.argv = [""]
    sys.orig_argv = [sys.executable]
    with suppress(OSError, ValueError, IndexError):
        _overwrite_command_line()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _thread.start_new_thread(zygote, (control, spare))
    while True:
        signal.pause()
