"""A proxy in front of a local AWS that misbehaves on request: it refuses, fails, loses calls, loses answers, answers late.

The functions reach AWS through it. The faults, and the services they apply to, are set at run time. The proxy finds the service in
the scope of the signature, and the operation in `X-Amz-Target` or in the form's `Action`.
"""

import asyncio
import json
import random
import re
import threading
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self, TypeVar
from urllib.parse import parse_qs

from local.aws import HOST

Kind = Literal["throttle", "error", "lose_call", "lose_answer", "delay"]
HEAD_LIMIT = 1 << 20
SCOPE = re.compile(r"Credential=[^/]+/\d+/[^/]+/([^/]+)/aws4_request")
THROTTLES = {  # error code by service; DynamoDB and SQS return it in JSON, SNS in XML, Lambda in a header
    "dynamodb": "ProvisionedThroughputExceededException",
    "sqs": "RequestThrottled",
    "sns": "Throttling",
    "lambda": "TooManyRequestsException",
}

T = TypeVar("T")


@dataclass(frozen=True)
class Fault:
    """A fault that affects a share of the calls to a service (None: to all services), or only to some of its operations."""

    kind: Kind
    service: str | None = None
    share: float = 1.0
    operations: tuple[str, ...] = ()
    seconds: float = 0.0  # of a delay

    def concerns(self, service: str, operation: str) -> bool:
        return self.service in (None, service) and (not self.operations or operation in self.operations)


class Faulty:
    """A context manager: listens on a free port of the loopback, and passes every call on to the port `behind`."""

    def __init__(self, behind: int = 0, seed: int = 1) -> None:
        self.behind = behind
        self.dealt: Counter[str] = Counter()  # faults caused, by "kind service"
        self.port = 0
        self._faults: tuple[Fault, ...] = ()
        self._random = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://{HOST}:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._serve, HOST, 0, limit=HEAD_LIMIT, backlog=1024))
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @contextmanager
    def misbehaving(self, *faults: Fault) -> Iterator[None]:
        """Cause these faults during the block."""
        self._faults = faults
        try:
            yield
        finally:
            self._faults = ()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _close(self) -> None:
        self._server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of a client, call by call, over one connection to the port behind."""
        with suppress(OSError, EOFError, asyncio.LimitOverrunError, asyncio.CancelledError):
            await self._relay(reader, writer)
        writer.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        try:
            while True:
                head, body = await _message(reader, writer)
                service, operation = called(head, body)
                fault = self._fault(service, operation)
                if fault is not None:
                    self.dealt[f"{fault.kind} {service}"] += 1
                    if fault.kind == "lose_call":
                        return
                    if fault.kind in ("throttle", "error"):
                        writer.write(refusal(fault.kind, service))
                        await writer.drain()
                        continue
                    if fault.kind == "delay":
                        await asyncio.sleep(fault.seconds)
                if behind is not None and behind[0].at_eof():  # the server has closed it while it was idle
                    behind[1].close()
                    behind = None
                if behind is None:
                    behind = await asyncio.open_connection(HOST, self.behind, limit=HEAD_LIMIT)
                behind[1].write(head + body)
                await behind[1].drain()
                answer = await _answer(behind[0], head)
                if fault is not None and fault.kind == "lose_answer":
                    return
                writer.write(answer)
                await writer.drain()
                if b"connection: close" in answer.partition(b"\r\n\r\n")[0].lower():
                    return
        finally:
            if behind is not None:
                behind[1].close()

    def _fault(self, service: str, operation: str) -> Fault | None:
        return next((fault for fault in self._faults if fault.concerns(service, operation) and self._random.random() < fault.share), None)


def called(head: bytes, body: bytes) -> tuple[str, str]:
    """Return service and operation of a call; empty strings if the call does not name them."""
    text = head.decode("latin-1")
    scope = SCOPE.search(text)
    service = scope[1] if scope else ""
    target = re.search(r"^x-amz-target:\s*(\S+)", text, re.IGNORECASE | re.MULTILINE)
    if target:
        return service, target[1].rpartition(".")[2]
    if service == "sns":
        return service, parse_qs(body.decode("latin-1")).get("Action", [""])[0]
    return service, ""


def refusal(kind: Kind, service: str) -> bytes:
    """Return the answer with which this service throttles a call or reports an internal error."""
    code = THROTTLES.get(service, "ThrottlingException") if kind == "throttle" else "InternalFailure"
    status = "500 Internal Server Error" if kind == "error" else "429 Too Many Requests" if service == "lambda" else "400 Bad Request"
    if service == "sns":
        media = "text/xml"
        body = f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>refused</Message></Error></ErrorResponse>"
    else:
        media = "application/x-amz-json-1.0"
        body = json.dumps({"__type": code, "message": "refused"})
    head = [f"HTTP/1.1 {status}", f"Content-Type: {media}", f"Content-Length: {len(body)}", f"x-amzn-errortype: {code}"]
    return ("\r\n".join(head) + "\r\n\r\n" + body).encode()


async def _message(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[bytes, bytes]:
    """Read head and body of one request. Answers `Expect: 100-continue`, with which uploads wait before they send the body."""
    head = await reader.readuntil(b"\r\n\r\n")
    if re.search(rb"^expect:\s*100-continue\r\n", head, re.IGNORECASE | re.MULTILINE):
        head = re.sub(rb"^expect:[^\r]*\r\n", b"", head, flags=re.IGNORECASE | re.MULTILINE)
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return head, await _body(reader, head)


async def _answer(reader: asyncio.StreamReader, request: bytes) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    bare = request.startswith(b"HEAD ") or head.split(b" ", 2)[1] in (b"204", b"304")
    return head if bare else head + await _body(reader, head)


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    if re.search(rb"^transfer-encoding:\s*chunked\r\n", head, re.IGNORECASE | re.MULTILINE):
        parts = []
        while True:
            line = await reader.readuntil(b"\r\n")
            size = int(line.partition(b";")[0], 16)
            parts += [line, await reader.readexactly(size + 2) if size else await _trailer(reader)]
            if not size:
                return b"".join(parts)
    length = re.search(rb"^content-length:\s*(\d+)\r\n", head, re.IGNORECASE | re.MULTILINE)
    return await reader.readexactly(int(length[1])) if length else b""


async def _trailer(reader: asyncio.StreamReader) -> bytes:
    lines = b""
    while not lines.endswith(b"\r\n\r\n") and lines != b"\r\n":
        lines += await reader.readuntil(b"\r\n")
    return lines
