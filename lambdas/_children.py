"""Child processes for jobs that compute in the executor itself: killing the process ends such a job reliably.

A thread cannot be killed. A process forked from one with threads may inherit a locked lock whose holder does not exist in it. Therefore a
child is an interpreter of its own (`_child`): it is started for its first job, kept warm, and replaced after it was killed.
"""

import json
import logging
import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import suppress

from lambdas._child import HEAD, frame
from scheduler.model.job import Failure, FailureKind, Job, Result
from scheduler.targets.base import Context

IDLE = 10  # most children kept warm: as many as a batch may need
POLL_S = 0.1  # within this time a stop is noticed
SAID = 262_144  # characters kept of a child's log and standard error
TIMED_OUT = "{time_out} passed; process {pid} was killed"
FORCED = "it did not stop when asked to; process {pid} was killed"
DIED = "its process ended by {how} before it had answered"
COMMAND = (sys.executable, "-S", "-P", "-m", frame.__module__)  # `site` would take a third of the start, and PYTHONPATH is given
HANDED_ON = ("LD_LIBRARY_PATH",)  # Lambda's Python finds libpython there


class Died(Exception):
    """The child had ended before it began its job."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Child:
    """One process, which runs one job at a time."""

    def __init__(self) -> None:
        # The child inherits nothing else of this process's environment: no credentials, no settings.
        environment = {name: os.environ[name] for name in HANDED_ON if name in os.environ}
        environment |= {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)), "PYTHONUNBUFFERED": "1", "LC_ALL": "C.UTF-8"}
        self._process = subprocess.Popen(
            COMMAND, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._in, self._out, self._err = (pipe.fileno() for pipe in (self._process.stdin, self._process.stdout, self._process.stderr))
        os.set_blocking(self._in, False)  # a child that does not read must not block the executor past the deadline
        os.set_blocking(self._err, False)
        self._received = b""
        self._begun = False

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> int:
        """Kill the process if it is alive; wait for its end and return its exit code."""
        self._process.kill()
        return self._process.wait()

    def close(self) -> None:
        """Kill the process and close its pipes; the child cannot be used afterwards."""
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def run(self, job: Job, context: Context, force: threading.Event) -> Result:
        """Run one job until its end, its deadline or `force`, and send a stop to the child when the context is stopped.

        The log names the process. Raises Died if the child had ended before the job began. After any end without an answer the child has
        ended, too.
        """
        said = deque([f"process {self.pid}"])
        self._read_errors(deque())  # drops text that the child wrote after its previous answer: it does not belong to this job
        left = context.deadline - time.monotonic()
        request = {
            "type": job.spec.type,
            "payload": job.spec.payload,
            "job": context.job.encoded(),
            "seconds": left,
            "timeout_seconds": context.timeout_seconds,
        }
        failure = self._work(frame(request), context, force, said)
        self._read_errors(said)
        result = failure if isinstance(failure, Result) else Result(failure=failure)
        return Result(result.output, failure=result.failure, log="\n".join(filter(None, [*said, result.log]))[-SAID:])

    def _work(self, sending: bytes, context: Context, force: threading.Event, said: deque[str]) -> Result | Failure:
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        poll.register(self._err, select.POLLIN)
        poll.register(self._in, select.POLLOUT)
        stop_sent = self._begun = False
        while True:
            left = context.deadline - time.monotonic()
            if left <= 0 or force.is_set():
                self.kill()
                return Failure(FailureKind.TIMEOUT, (TIMED_OUT if left <= 0 else FORCED).format(pid=self.pid, time_out=context.time_out))
            if context.stop.is_set() and not stop_sent:
                stop_sent = True
                sending += frame({"stop": True})
                poll.register(self._in, select.POLLOUT)
            for pipe, _ in poll.poll(math.ceil(min(left, POLL_S) * 1000)):
                if pipe == self._in:
                    try:
                        sending = sending[os.write(self._in, sending) :]
                    except BlockingIOError:
                        pass
                    except BrokenPipeError:
                        sending = b""  # the child's end shows on the other pipe
                    if not sending:
                        poll.unregister(self._in)
                elif pipe == self._err:
                    if not self._read_errors(said):
                        poll.unregister(self._err)
                elif (ended := self._read(said)) is not None:
                    return ended

    def _read(self, said: deque[str]) -> Result | Failure | None:
        """Read the frames that have arrived; return the result of the job if it is among them."""
        received = os.read(self._out, 65_536)
        if not received:
            died = _died(self.kill())
            if not self._begun:
                raise Died(died)
            return died
        self._received += received
        while len(self._received) >= HEAD and len(self._received) >= (end := HEAD + int.from_bytes(self._received[:HEAD])):
            content = json.loads(self._received[HEAD:end].decode("utf-8", "surrogatepass"))
            self._received = self._received[end:]
            if "ended" in content:
                output, log, failure = content["ended"]
                return Result(output, failure=failure and Failure.read(*failure), log=log)
            self._begun = True
            if "log" in content:
                name, level, text, more = content["log"]
                said.append(text)
                logging.getLogger(name).log(level, "%s", text, extra=more)  # the child's log record becomes the executor's own
        return None

    def _read_errors(self, said: deque[str]) -> bool:
        """Read what has arrived on standard error, one entry per read. False once it is closed."""
        while True:
            try:
                more = os.read(self._err, 65_536)
            except BlockingIOError:
                return True
            if not more:
                return False
            said.append(more.decode(errors="replace").rstrip("\n"))
            while sum(map(len, said)) > SAID and len(said) > 2:
                del said[1]


def _died(code: int) -> Failure:
    """The failure for a child that ended early. Its executor and the other jobs continue. The attempt is charged; the job is retried."""
    return Failure(FailureKind.RETRYABLE, DIED.format(how=signal.Signals(-code).name if code < 0 else f"exit code {code}"))


class Children:
    """All children of an executor; safe to use from several threads."""

    def __init__(self) -> None:
        self._idle: list[Child] = []
        self._lock = threading.Lock()

    def run(self, job: Job, context: Context, force: threading.Event) -> Result:
        """Run one job in a child of its own. A killed child is replaced at once, before the next job."""
        try:
            return self._run(self._take(), job, context, force)
        except Died:  # it ended while it was idle
            pass
        try:
            return self._run(Child(), job, context, force)
        except Died as died:
            return Result(failure=died.failure)

    def _run(self, child: Child, job: Job, context: Context, force: threading.Event) -> Result:
        try:
            return child.run(job, context, force)
        finally:
            if child.is_alive:
                self._keep(child)
            else:
                child.close()
                with suppress(OSError):  # the next job tries again
                    self._keep(Child())

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            child.close()

    def _take(self) -> Child:
        while True:
            with self._lock:
                child = self._idle.pop() if self._idle else None
            if child is None:
                return Child()
            if child.is_alive:
                return child
            child.close()

    def _keep(self, child: Child) -> None:
        with self._lock:
            if len(self._idle) < IDLE:
                self._idle.append(child)
                return
        child.close()
