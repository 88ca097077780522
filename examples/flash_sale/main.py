"""A flash sale: a buyer holds an item for a short time, and what is not paid goes to the next buyer.

python -m examples.flash_sale.main [--buyers 200] [--items 50] [--seconds 3]
"""

import argparse
import random
import threading
import uuid
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from punctual import Conflict, NotFound, Punctual

from examples.receiver import Receiver

AT_ONCE = 8  # buyers at the same time


class Sale:
    """The stock: each item is free, held by one buyer, or sold. Every change is one step under one lock, as in one database row."""

    def __init__(self, items: int) -> None:
        self._changed = threading.Condition()
        self.items = items
        self.free = set(range(items))
        self.on_hold: dict[str, int] = {}  # item by hold
        self.sold: dict[int, int] = {}  # buyer by item
        self.events: Counter[str] = Counter()

    def hold(self, hold: str) -> bool:
        """Hold an item, or wait for one. Return False when everything is sold."""
        with self._changed:
            while not self.free:
                if len(self.sold) == self.items:
                    return False
                self._changed.wait(1)
            self.on_hold[hold] = self.free.pop()
            self._check("held")
            return True

    def pay(self, hold: str, buyer: int) -> bool:
        """Buy the held item. Return False if the hold was released before."""
        with self._changed:
            item = self.on_hold.pop(hold, None)
            if item is None:
                return False
            if item in self.sold:
                raise AssertionError(f"item {item} was sold twice")
            self.sold[item] = buyer
            self._check("sold")
            return True

    def release(self, hold: str) -> None:
        """Return a held item to the stock. A paid or released hold stays as it is, so a repeated call does no harm."""
        with self._changed:
            item = self.on_hold.pop(hold, None)
            if item is None:
                self.events["releases without effect"] += 1
                return
            self.free.add(item)
            self._check("released")

    def _check(self, event: str) -> None:
        self.events[event] += 1
        whole = len(self.free) + len(self.on_hold) + len(self.sold)
        if whole != self.items:
            raise AssertionError(f"{whole} items instead of {self.items}")
        self._changed.notify_all()


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--buyers", type=int, default=200)
    options.add_argument("--items", type=int, default=50)
    options.add_argument("--seconds", type=float, default=3, help="how long a hold lasts; twelve minutes in a real sale")
    arguments = options.parse_args()
    sale = Sale(arguments.items)

    def release(path: str, headers: Mapping[str, str], body: bytes) -> int:
        sale.release(path.rsplit("/", 1)[1])
        return 200

    # Eight buyers at a time may keep a busy machine's local AWS waiting; each create is safe to repeat, as it has a key.
    with Punctual(timeout=120) as punctual, Receiver(release) as receiver:

        def buy(buyer: int) -> None:
            chances, hold = random.Random(buyer), f"{buyer}-{uuid.uuid4().hex[:8]}"
            if not sale.hold(hold):
                return
            job = punctual.jobs.create(key=f"sale-{hold}", delay=arguments.seconds, http=receiver.url(f"/release/{hold}"), max_attempts=10)
            if chances.random() < 0.5:
                return  # the buyer closes the page; the job releases the item
            if chances.random() < 0.2:
                punctual.jobs.wait(job.id, timeout=120, poll=1)  # the buyer pays too late
            if sale.pay(hold, buyer):
                try:
                    punctual.jobs.cancel(key=f"sale-{hold}")
                except (NotFound, Conflict):
                    pass  # the release runs at this moment, and finds a paid hold

        with ThreadPoolExecutor(AT_ONCE) as pool:
            for done in [pool.submit(buy, number) for number in range(arguments.buyers)]:
                done.result()
        while sale.on_hold:
            (hold, *_) = sale.on_hold
            punctual.jobs.wait(punctual.jobs.get(key=f"sale-{hold}").id, timeout=120)
    print(f"{arguments.buyers} buyers, {arguments.items} items: {len(sale.sold)} sold, {len(sale.free)} free, {dict(sale.events)}")
    if sale.free and len(sale.sold) + len(sale.free) != arguments.items:
        return 1
    print("no item was sold twice, none was lost")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
