"""Main loop of a worker process: it calls its job for each message, until the pipeline closes.

A message that is a dictionary announces another job, of which the memory follows.

It hears nothing of Ctrl-C, which is for the pipeline, and ends when its parent does. Where it dies
of a fault, or is asked where it is, `faulthandler` writes the stack into memory that the pipeline
reads. BLAS libraries have one thread in it.

A fork server is a process that has imported what workers need and does nothing else, so that it can
be forked at any time, whatever threads the program has.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import json
import mmap
import os
import pickle
import random
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.compiler.transport.rank_status import end_with_parent
from mycel._src.foundation.system import subprocesses
from mycel.dataset.execution import code_pickling
from mycel.dataset.execution.shared_memory_channel import Channel, Ended, NotSent, Region, memory, pack, packed_size
from mycel.dataset.execution.threaded_stages import Broken
from mycel.dataset.pipeline_errors import said
from mycel.dataset.rows.column_blocks import Block, try_stack

LENGTH = struct.Struct("<I")
_JOB = struct.Struct("<QQ")
# Descriptors: the connection, memory from and to the pipeline, memory for stacks, the job.
Descriptors = tuple[int, ...]


def write_job(job: Any) -> int:
    """Return the descriptor of memory that holds a job, whose arrays all workers share."""
    content, buffers = code_pickling.dumps(job)
    sizes = [buffer.nbytes for buffer in buffers]
    head = _JOB.pack(len(content), len(sizes)) + struct.pack(f"<{len(sizes)}Q", *sizes) + content
    start = packed_size([len(head)])
    descriptor = memory()
    os.ftruncate(descriptor, max(1, start + packed_size(sizes)))
    with mmap.mmap(descriptor, 0) as region:
        region[: len(head)] = head
        view = memoryview(region)
        pack(view, buffers, start)
        view.release()
    return descriptor


def read_job(descriptor: int) -> Any:
    """Return the job; what this process writes into its arrays is seen by this process alone."""
    region = memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY))
    length, count = _JOB.unpack(region[: _JOB.size])
    sizes = struct.unpack(f"<{count}Q", region[_JOB.size : _JOB.size + 8 * count])
    head = _JOB.size + 8 * count
    start = packed_size([head + length])
    buffers = []
    for size in sizes:
        buffers.append(region[start : start + size])
        start += packed_size([size])
    return pickle.loads(region[head : head + length], buffers=buffers)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(0)


def _sent(error: BaseException) -> BaseException:
    """Return an error that can be sent: itself, or one with the same text."""
    try:
        pickle.loads(code_pickling.dumps(error, False)[0])
    except BaseException:
        # Whatever the class of the user's does when it is pickled.
        return RuntimeError(said(error))
    return error


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # It was held back while the process started.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def serve(descriptors: Descriptors, job: Callable[..., Any] | None, shares: bool) -> None:
    """Answer messages with what the job gives; None: it is read from its memory."""
    connection, receiving, sending, trace, given = descriptors
    _ignore_interrupts()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    faulthandler.enable(trace)
    faulthandler.register(signal.SIGUSR1, trace)
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()
    channel = Channel(socket.socket(fileno=connection), Region(sending), Region(receiving), shares)
    # Open in processes that a user's function forks, it would hide that this one has died.
    os.register_at_fork(after_in_child=channel.connection.close)
    with contextlib.suppress(Ended), channel.connection:
        while True:
            request = _work(channel, given, job)
            # Another pipeline's: nothing of the last job is left.
            job = None
            code_pickling.forget()
            gc.collect()
            _prepare(request)
            (given,) = socket.recv_fds(channel.connection, 1, 1)[1]


def _work(channel: Channel, given: int, job: Callable[..., Any] | None) -> dict[str, Any]:
    """Do a job until another one is announced; return what the announcement says."""
    # Without a seed, functions draw from these: not the same numbers in every worker.
    fresh = os.urandom(16)
    random.seed(fresh)
    np.random.seed(np.frombuffer(fresh, np.uint32))
    refusal: tuple[Any, ...] = ()
    try:
        if job is None:
            job = read_job(given)
            os.close(given)
    except BaseException as error:
        refusal = (_sent(error), traceback.format_exc())
    while True:
        try:
            request = channel.receive()
            if isinstance(request, dict):
                return request
            channel.send((None, *refusal) if job is None else _answer(job, request))
        except NotSent as error:
            channel.send((None, error, traceback.format_exc()))


def _answer(job: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, BaseException | None, str]:
    """Return what a job gives, an error, and its traceback as text."""
    try:
        return _stacked(job(*arguments)), None, ""
    except Broken as broken:
        error = broken.error
        return (
            _stacked(broken.before),
            _sent(error),
            "".join(traceback.format_exception(type(error), error, error.__traceback__)),
        )
    except BaseException as error:
        return None, _sent(error), traceback.format_exc()


def _stacked(result: Any) -> Any:
    """Return a block with one array for each column where it may be: fewer parts to send."""
    if isinstance(result, Block) and result.count > 1:
        columns = [try_stack(column) if isinstance(column, list) else None for column in result.columns]
        return Block([c if s is None else s for c, s in zip(result.columns, columns)], result.count)
    return result


def run_spawned(arguments: str) -> None:
    """Be a worker that was started as a program; `arguments` are JSON."""
    given = json.loads(arguments)
    _prepare(given)
    serve(tuple(given["descriptors"]), None, given["shares"])
    os._exit(0)


def _prepare(given: dict[str, Any]) -> None:
    sys.path[:] = given["path"]
    if given["folder"] is not None:
        with contextlib.suppress(OSError):
            os.chdir(given["folder"])
    for name in given["modules"]:
        # Where the module cannot be imported, reading the job says so.
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def _fork_on_request(control: socket.socket, children: set[int]) -> None:
    """Fork workers, and tell how they ended, until the connection is closed."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, LENGTH.size, 8)
        if not message:
            break
        length = LENGTH.unpack(message)[0]
        content = b""
        while len(content) < length:
            part = control.recv(length - len(content))
            if not part:
                return
            content += part
        given = json.loads(content)
        if "status" in given:
            answer = _reaped(given["status"], children)
        else:
            _prepare(given)
            child = subprocesses.fork()
            if not child:
                control.close()
                # At once, where the server is killed; `_watch` looks once a second.
                end_with_parent()
                try:
                    serve(tuple(descriptors), None, given["shares"])
                finally:
                    os._exit(0)
            for number in descriptors:
                os.close(number)
            children.add(child)
            answer = child
        reply = json.dumps(answer).encode()
        control.sendall(LENGTH.pack(len(reply)) + reply)


def run_server(descriptor: int) -> None:
    """Be a fork server, which forks workers until the other end of its connection is closed."""
    control = socket.socket(fileno=descriptor)
    _ignore_interrupts()
    children: set[int] = set()
    # What is there now is no garbage: looking for some would copy its pages in every worker.
    gc.freeze()
    # A program that is killed resets the connection where it left an answer unread.
    with contextlib.suppress(ConnectionError):
        _fork_on_request(control, children)
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    os._exit(0)


def _reaped(child: int, children: set[int]) -> int | None:
    """Return how a worker ended, as `os.waitstatus_to_exitcode` has it; None while it runs."""
    if child not in children:
        return 0
    found, status = os.waitpid(child, os.WNOHANG)
    if not found:
        return None
    children.discard(child)
    return os.waitstatus_to_exitcode(status)
