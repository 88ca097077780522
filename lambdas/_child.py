"""The child's side of `_children`: a process that runs one job at a time and talks to its parent in frames over pipes.

A frame is a length of four bytes, then JSON of that length. The parent sends a job, or a request to stop. The child sends that the job has
begun, each log record of the target, and the result. It has no credentials and loads no AWS library. It ends when its pipe closes, and on
Linux also when its parent ends, in any state.
"""

import ctypes
import json
import logging
import os
import queue
import signal
import sys
import threading
import time
import traceback
from typing import Any, BinaryIO

from scheduler.model.job import FailureKind
from scheduler.targets import registry
from scheduler.targets.base import Context
from scheduler.targets.job_context import JobContext

HEAD = 4  # bytes of a frame's length field
BEYOND_S = 60.0  # added to the job's deadline: normally the parent kills the child in time, this ends it if the parent does not
_PR_SET_PDEATHSIG = 1
_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


def frame(content: Any) -> bytes:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8", "surrogatepass")
    return len(text).to_bytes(HEAD) + text


def main() -> None:
    """Run jobs until the pipe closes. Standard output carries only frames: prints of a target are redirected to standard error."""
    parent = os.getppid()
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    logging.basicConfig(level=logging.INFO, handlers=[_FrameHandler(answers)])
    jobs: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    stop = threading.Event()
    threading.Thread(target=_read, args=(jobs, stop), daemon=True).start()
    _end_with(parent)
    while True:
        job = jobs.get()
        _send(answers, {"begun": True})
        ended = _ended(job, stop)
        sys.stdout.flush()
        sys.stderr.flush()
        _write(answers, ended)


def _ended(job: dict[str, Any], stop: threading.Event) -> bytes:
    """Run a job and return the frame of its result; that of a failure if it has none that can be sent."""
    deadline = time.monotonic() + job["seconds"] + BEYOND_S
    context = Context(JobContext.read(job["job"]), deadline=deadline, stop=stop, timeout_seconds=job.get("timeout_seconds"))
    try:
        result = registry.load(job["type"]).attempt(job["payload"], context)
        failure = result.failure
        return frame({"ended": [result.output, result.log, failure and [failure.kind.value, failure.message, failure.retry_after_ms]]})
    except Exception as error:
        traceback.print_exc()
        return frame({"ended": [None, None, [FailureKind.RETRYABLE.value, f"{type(error).__name__}: {error}", None]]})


def _read(jobs: "queue.SimpleQueue[dict[str, Any]]", stop: threading.Event) -> None:
    while head := _exactly(HEAD):
        content = json.loads(_exactly(int.from_bytes(head)) or "{}")
        if content.get("stop"):
            stop.set()
        else:
            stop.clear()
            jobs.put(content)
    os._exit(0)  # regardless of the other thread: its result is no longer awaited


def _exactly(size: int) -> bytes:
    """Read `size` bytes of standard input; no bytes once it is closed. It bypasses the buffer, whose lock a waiting thread would hold."""
    read = b""
    while len(read) < size:
        more = os.read(0, size - len(read))
        if not more:
            return b""
        read += more
    return read


def _end_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends.

    The thread that notices a closed pipe cannot run while a target holds the interpreter lock; the kernel needs no thread. It reacts to the
    end of the thread that started this process, not only of the parent process: an executor's threads live as long as the executor.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)


def _send(pipe: BinaryIO, content: Any) -> None:
    _write(pipe, frame(content))


def _write(pipe: BinaryIO, sending: bytes) -> None:
    left = memoryview(sending)
    while left:
        left = left[pipe.write(left) :]


class _FrameHandler(logging.Handler):
    """Sends every log record as a frame; the parent writes it to its own log."""

    def __init__(self, pipe: BinaryIO) -> None:
        super().__init__()
        self._pipe = pipe

    def emit(self, record: logging.LogRecord) -> None:
        more = {name: value for name, value in vars(record).items() if name not in _STANDARD_FIELDS}
        text = record.getMessage() + (f"\n{logging.Formatter().formatException(record.exc_info)}" if record.exc_info else "")
        _send(self._pipe, {"log": [record.name, record.levelno, text, more]})  # frames do not mix: a handler has a lock


if __name__ == "__main__":
    main()
