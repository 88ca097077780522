"""The shop as a web application: customers order and pay, and Punctual calls `/expire/<number>`."""

from collections.abc import Callable, Iterable
from typing import Any

from punctual import Punctual

from examples.order_expiry.main import Shop, pay

PATIENCE = "30m"  # how long an order may stay unpaid
StartResponse = Callable[[str, list[tuple[str, str]]], Any]


class ShopApp:
    """A WSGI application. `url` is the address at which Punctual reaches it."""

    def __init__(self, shop: Shop, punctual: Punctual, url: str) -> None:
        self._shop, self._punctual, self._url = shop, punctual, url

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        status, text = self._answer(environ["PATH_INFO"].strip("/").split("/"))
        start_response(status, [("Content-Type", "text/plain")])
        return [text.encode()]

    def _answer(self, path: list[str]) -> tuple[str, str]:
        match path:
            case ["order", item]:
                return "201 Created", str(self._order(item))
            case ["pay", order]:
                pay(self._punctual, self._shop, int(order))
                return "200 OK", ""
            case ["expire", order]:
                return "200 OK", "expired" if self._shop.expire(int(order)) else "was paid or expired before"
        return "404 Not Found", ""

    def _order(self, item: str) -> int:
        order = self._shop.order(item)
        self._punctual.jobs.create(key=f"order-{order}-expiry", delay=PATIENCE, http=f"{self._url}/expire/{order}", max_attempts=10)
        return order
