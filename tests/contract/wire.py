"""AWS answered in process: a wire records the requests of a client, and a test may answer them."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import EndpointConnectionError


class Wire:
    """Records the requests of a client. `answers` maps an operation to the answer, error or exception that the client gets."""

    OK = SimpleNamespace(status_code=200)

    def __init__(self, client: Any) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, Callable[[dict[str, Any]], Any]] = {}
        client.meta.events.register("provide-client-params", self._record)
        client.meta.events.register("before-call", self._answer)

    def answer(self, operation: str, parsed: dict[str, Any], status: int = 200) -> None:
        self.answers[operation] = lambda params: (SimpleNamespace(status_code=status), parsed)

    def refuse(self, operation: str, code: str, status: int = 400, **fields: Any) -> None:
        metadata = {"HTTPStatusCode": status}
        self.answer(operation, {"Error": {"Code": code, "Message": "so"}, "ResponseMetadata": metadata} | fields, status)

    def cut(self, operation: str) -> None:
        def unreachable(params: dict[str, Any]) -> Any:
            raise EndpointConnectionError(endpoint_url="http://nowhere")

        self.answers[operation] = unreachable

    def sent(self, operation: str) -> list[dict[str, Any]]:
        return [params for name, params in self.calls if name == operation]

    def _record(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        self.calls.append((model.name, params))

    def _answer(self, model: Any, params: dict[str, Any], **_: Any) -> Any:
        reply = self.answers.get(model.name)
        return reply(params) if reply else None
