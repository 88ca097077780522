"""The port Receipts."""

from dataclasses import replace

import pytest

from scheduler.storage.ports import RECEIPT_RETENTION_MS, Receipts
from tests.contract import make
from tests.contract.make import NOW


def test_a_receipt_is_kept_and_found(receipts: Receipts) -> None:
    receipt = make.receipt()
    assert receipts.find("ada", receipt.key, NOW) is None
    assert receipts.keep([receipt], NOW) == [receipt]
    assert receipts.find("ada", receipt.key, NOW + 1_000) == receipt
    assert receipts.find("eve", receipt.key, NOW) is None
    assert receipts.find("ada", receipt.key + "x", NOW) is None
    assert receipts.keep([], NOW) == []


def test_the_first_receipt_of_a_key_stays(receipts: Receipts) -> None:
    first = make.receipt()
    second = replace(first, fingerprint="f2", at=NOW + 1_000, random=7)
    assert receipts.keep([first], NOW) == [first]
    assert receipts.keep([second], NOW + 1_000) == [first]
    assert receipts.find("ada", first.key, NOW + 1_000) == first


def test_each_owner_has_separate_keys(receipts: Receipts) -> None:
    made = [make.receipt(owner=owner, key=key) for owner, key in (("ada", "b#c"), ("ada#b", "c"), ("eve", "b#c"))]
    assert [receipts.keep([receipt], NOW)[0] for receipt in made] == made
    assert [receipts.find(receipt.owner, receipt.key, NOW) for receipt in made] == made


@pytest.mark.parametrize("key", ["k", "k" * 5_000, " é 🙂 \n"])
def test_any_text_is_a_key(receipts: Receipts, key: str) -> None:
    receipt = make.receipt(key=key)
    assert receipts.keep([receipt], NOW) == [receipt]
    assert receipts.keep([replace(receipt, random=1)], NOW) == [receipt]


def test_an_outdated_receipt_is_treated_as_missing(receipts: Receipts) -> None:
    """DynamoDB deletes it only days later."""
    old = make.receipt()
    assert receipts.keep([old], NOW) == [old]
    last, over = NOW + RECEIPT_RETENTION_MS - 1, NOW + RECEIPT_RETENTION_MS
    assert receipts.find("ada", old.key, last) == old
    assert receipts.keep([make.receipt(at=last, fingerprint="f2")], last) == [old]
    assert receipts.find("ada", old.key, over) is None
    new = make.receipt(at=over, fingerprint="f3")
    assert receipts.keep([new], over) == [new]
    assert receipts.find("ada", old.key, over) == new


@pytest.mark.long
@pytest.mark.parametrize("count", [30, 120])
def test_receipts_of_one_call_are_kept_independently_in_order(receipts: Receipts, count: int) -> None:
    made = [make.receipt(key=f"key {number}") for number in range(count)]
    earlier = {
        3: make.receipt(key="key 3", fingerprint="other"),
        7: make.receipt(key="key 7", at=NOW - RECEIPT_RETENTION_MS, fingerprint="old"),
        20: make.receipt(key="key 20", fingerprint="other"),
    }
    for receipt in earlier.values():
        assert receipts.keep([receipt], receipt.at) == [receipt]
    expected = [earlier[number] if number in (3, 20) else receipt for number, receipt in enumerate(made)]
    assert receipts.keep(made, NOW) == expected
    assert [receipts.find("ada", receipt.key, NOW) for receipt in made] == expected
    assert receipts.keep(made, NOW) == expected
