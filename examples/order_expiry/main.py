"""Orders that nobody pays expire, and their items are back in stock.

python -m examples.order_expiry.main [--orders 12] [--seconds 5]
"""

import argparse
import random
import sqlite3
import threading
import time
from collections.abc import Mapping

from punctual import Conflict, NotFound, Punctual

from examples.receiver import Receiver

SCHEMA = """
create table stock (item text primary key, units integer not null check (units >= 0));
create table orders (id integer primary key, item text not null, state text not null default 'open');
"""


class Shop:
    """The shop's own database. An order changes from `open` to `paid` or `expired` once: the update decides, not the scheduler."""

    def __init__(self, item: str, units: int) -> None:
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        self._lock = threading.Lock()
        self._db.executescript(SCHEMA)
        self._db.execute("insert into stock values (?, ?)", (item, units))
        self._number = int(time.time())  # numbers of orders never come again, also over several runs of this program

    def order(self, item: str) -> int:
        with self._lock, self._db:
            self._db.execute("update stock set units = units - 1 where item = ?", (item,))
            self._number += 1
            self._db.execute("insert into orders (id, item) values (?, ?)", (self._number, item))
            return self._number

    def pay(self, order: int) -> bool:
        """Return whether the payment was in time."""
        with self._lock, self._db:
            return self._db.execute("update orders set state = 'paid' where id = ? and state = 'open'", (order,)).rowcount == 1

    def expire(self, order: int) -> bool:
        """Expire an open order and restock its item. A second call for the same order changes nothing."""
        with self._lock, self._db:
            found = self._db.execute(
                "update orders set state = 'expired' where id = ? and state = 'open' returning item", (order,)
            ).fetchone()
            if found:
                self._db.execute("update stock set units = units + 1 where item = ?", found)
            return found is not None

    def counts(self) -> dict[str, int]:
        with self._lock:
            states = dict(self._db.execute("select state, count(*) from orders group by state").fetchall())
            return {"stock": self._db.execute("select sum(units) from stock").fetchone()[0], **states}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--orders", type=int, default=12)
    options.add_argument("--seconds", type=float, default=5, help="how long an order may stay unpaid; half an hour in a real shop")
    arguments = options.parse_args()
    shop = Shop("chair", units=arguments.orders)

    def expire(path: str, headers: Mapping[str, str], body: bytes) -> int:
        order = int(path.rsplit("/", 1)[1])
        print(f"order {order}: {'expired, restocked' if shop.expire(order) else 'was paid or expired before'}")
        return 200

    with Punctual() as punctual, Receiver(expire) as receiver:
        began, expiries = time.monotonic(), []
        orders = [shop.order("chair") for _ in range(arguments.orders)]
        for order in orders:
            url = receiver.url(f"/expire/{order}")
            expiries.append(punctual.jobs.create(key=f"order-{order}-expiry", delay=arguments.seconds, http=url, max_attempts=10))
        print(f"{arguments.orders} orders are open for {arguments.seconds:g} s")
        chances = random.Random(7)
        for order in orders:
            kind = chances.choice(("in time", "at the last moment", "never"))
            if kind == "at the last moment":  # the payment and the expiry race
                time.sleep(max(0.0, began + arguments.seconds - time.monotonic()))
            if kind != "never":
                pay(punctual, shop, order)
        for job in expiries:
            punctual.jobs.wait(job.id, timeout=120)
    counts = shop.counts()
    print(f"at the end: {counts}")
    whole = counts["stock"] + counts.get("paid", 0) == arguments.orders and "open" not in counts
    print("every unit is sold or in stock" if whole else "UNITS ARE MISSING")
    return 0 if whole else 1


def pay(punctual: Punctual, shop: Shop, order: int) -> None:
    if not shop.pay(order):
        print(f"order {order}: the payment was too late")
        return
    print(f"order {order}: paid")
    try:
        punctual.jobs.cancel(key=f"order-{order}-expiry")  # without it the job runs, and changes nothing
    except (Conflict, NotFound):
        pass  # it has just run


if __name__ == "__main__":
    raise SystemExit(main())
