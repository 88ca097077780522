"""Jobs that ended before their time leave the stock that `max_jobs` limits at once, without another count of the user's open jobs."""

import logging

from scheduler.model.errors import Unavailable
from scheduler.storage.ports import Ports

log = logging.getLogger(__name__)


def free(owner: str, jobs: int, ports: Ports) -> None:
    """Note that this many open jobs of a user were cancelled or withdrawn. If the table refuses, the next count shows it."""
    if not jobs:
        return
    try:
        ports.users.free(owner, jobs)
    except Unavailable as error:
        log.info("freed jobs not noted; they leave the stock with its next count", extra={"user_id": owner, "error": str(error)})
