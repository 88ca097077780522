"""The tests of the shop: half an hour takes milliseconds, and neither a network nor AWS is needed."""

from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest
from punctual.testing import Memory

from examples.order_expiry.app import ShopApp
from examples.order_expiry.main import Shop


@dataclass
class Sale:
    memory: Memory
    shop: Shop
    app: ShopApp
    web: httpx.Client  # a customer

    def order(self) -> str:
        return self.web.post("/order/chair").text


@pytest.fixture
def sale() -> Iterator[Sale]:
    shop = Shop("chair", units=3)
    with Memory(now="2026-11-20T10:00:00Z") as memory:
        app = ShopApp(shop, memory.client, "https://shop.example.com")
        memory.use(app)
        with httpx.Client(transport=httpx.WSGITransport(app), base_url="https://shop.example.com") as web:
            yield Sale(memory, shop, app, web)


def test_an_unpaid_order_expires_after_half_an_hour_and_not_before(sale: Sale) -> None:
    order = sale.order()
    sale.memory.clock.advance("29m59s")
    assert sale.shop.counts() == {"stock": 2, "open": 1}
    sale.memory.clock.advance("1s")
    assert sale.shop.counts() == {"stock": 3, "expired": 1}
    assert [call.path for call in sale.memory.calls] == [f"/expire/{order}"]


def test_a_paid_order_does_not_expire(sale: Sale) -> None:
    order = sale.order()
    sale.memory.clock.advance("10m")
    sale.web.post(f"/pay/{order}")
    sale.memory.clock.advance("1d")
    assert sale.shop.counts() == {"stock": 2, "paid": 1} and sale.memory.calls == []


def test_a_payment_after_the_expiry_is_too_late(sale: Sale) -> None:
    order = sale.order()
    sale.memory.clock.advance("30m")
    sale.web.post(f"/pay/{order}")
    assert sale.shop.counts() == {"stock": 3, "expired": 1}


def test_an_expiry_that_runs_twice_restocks_once(sale: Sale) -> None:
    order = sale.order()
    for _ in range(2):
        sale.memory.client.jobs.create(http=f"https://shop.example.com/expire/{order}")
    sale.memory.clock.advance("30m")
    assert sale.shop.counts() == {"stock": 3, "expired": 1} and len(sale.memory.calls) == 3


def test_a_shop_that_is_down_expires_the_order_later(sale: Sale) -> None:
    sale.order()
    sale.memory.use(lambda environ, start_response: start_response("503 Service Unavailable", []) or [b""])
    sale.memory.clock.advance("31m")
    assert sale.shop.counts() == {"stock": 2, "open": 1} and sale.memory.calls
    sale.memory.use(sale.app)
    sale.memory.clock.advance("2h")
    assert sale.shop.counts() == {"stock": 3, "expired": 1}
