"""An effect that happens exactly once: the key of the call and the effect are written by one transaction."""

import sqlite3

from punctual.receivers import Call


def credit(database: sqlite3.Connection, call: Call, account: str, amount: int) -> bool:
    """Credit an amount. Return False if this call, in this or an earlier attempt, did it before."""
    try:
        with database:  # one transaction: both writes, or none
            database.execute("INSERT INTO done_calls (idempotency_key) VALUES (?)", (call.idempotency_key,))
            database.execute("UPDATE accounts SET balance = balance + ? WHERE name = ?", (amount, account))
    except sqlite3.IntegrityError:  # the primary key of done_calls
        return False
    return True
