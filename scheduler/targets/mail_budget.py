"""The recipients of mail that an owner may have in a day: by `email` jobs, and by notices of jobs and tasks.

A stage sends all mail in its own name, and SES suspends senders for the complaints of strangers.
"""

import logging

from scheduler.model.errors import Unavailable
from scheduler.storage.ports import Users

DAY_MS = 86_400_000  # a budget is full again this long after its first mail

log = logging.getLogger(__name__)


def admit(owner: str, recipients: int, most: int, users: Users, now: int) -> bool:
    """Count the recipients of a mail, also of a refused one. Return whether it may be sent; `most`: recipients a day, 0: any number.

    While the table refuses, mail is sent: budgets protect the stage's name, not secrets.
    """
    if not most:
        return True
    name = f"mails#{owner}"
    try:
        tally = users.add_to_tally(name, recipients, now)
        if now - tally.since >= DAY_MS:
            users.restart_tally(name, tally, recipients, now)
            return recipients <= most
    except Unavailable as error:
        log.warning("mail not counted; it is sent", extra={"user_id": owner, "error": str(error)})
        return True
    return tally.count <= most
