"""The step of operations that replace the future runs of tasks."""

import logging
from collections.abc import Callable

from scheduler.model.errors import NotFound, Unavailable
from scheduler.model.job import TaskKey
from scheduler.model.operation import Candidate, Counts, Operation
from scheduler.storage.ports import Ports
from scheduler.tasks.withdraw import settle

log = logging.getLogger(__name__)


def each(operation: Operation, chosen: list[Candidate], replanned: Callable[[TaskKey], bool], ports: Ports) -> Counts:
    """Apply `replanned` to these tasks. When this returns, none of the replaced runs starts. An error of one task stops no other."""
    done, failed, refused = 0, 0, list[str]()
    for key in [each.chosen for each in chosen]:
        try:
            done += replanned(key) or key.id in operation.pending  # a step that died may have replaced them
        except NotFound:
            pass
        except Unavailable:
            refused.append(key.id)
        except Exception:
            context = {"operation_id": operation.id, "task_id": key.id, "user_id": key.owner}
            log.exception("could not replace the runs of a task", extra=context)
            failed += 1
    if done:
        settle(ports)
    return Counts(done, len(chosen) - done - failed - len(refused), failed, tuple(refused))
