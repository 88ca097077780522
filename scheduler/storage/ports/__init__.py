"""The ports: the interfaces through which the services reach storage, queues, functions, secrets, people and time.

`scheduler.storage.aws` and `scheduler.storage.memory` implement them; one contract suite in `tests/contract` runs over both.

Common to all methods:
- An implementation may fail any call with `errors.Unavailable` (AWS throttles, refuses or cannot be reached). The effect of a failed
  write may or may not have happened, so callers repeat writes; a write is therefore conditional or idempotent.
- No implementation reads the clock: instants are arguments, in UTC milliseconds. Durations are milliseconds, unless a name says otherwise.
- A method that writes several items writes each on its own, and returns one `Written` for each argument, in their order.
  A refusal of one item does not raise.
- Reads are eventually consistent unless the method says "strongly consistent". A batch read returns a mapping; it omits objects that do
  not exist.
- An item is unreadable if its format (`v`) is newer than this version's, if it has an unknown value, or if a field is missing. Each
  unreadable item is logged and counted with every read. Lists leave it out, `Found` names it, and a read of that one object raises
  `errors.Unreadable`.
- A cursor is opaque to the caller, unless the method says otherwise; None: there is no next page.
"""

from scheduler.storage.ports.calendars import Calendars
from scheduler.storage.ports.counters import Counters
from scheduler.storage.ports.declarations import ApiAnswer, Declarations, OwnApi
from scheduler.storage.ports.everything import Ports
from scheduler.storage.ports.execution import Clock, Pool
from scheduler.storage.ports.followers import Followers
from scheduler.storage.ports.groups import Groups
from scheduler.storage.ports.intake import IntakeDeadLetters
from scheduler.storage.ports.jobs import KEY_RETENTION_MS, MOVING, Change, ClaimRequest, ClaimResult, EndNote, Guard, Jobs, KeyTaking
from scheduler.storage.ports.lanes import Functions, Lanes, WorkQueue
from scheduler.storage.ports.ledger import Ledger, Watched
from scheduler.storage.ports.monitors import Monitors
from scheduler.storage.ports.notices import EventBus, NoticeQueue, Notices, Traces
from scheduler.storage.ports.operations import Operations
from scheduler.storage.ports.orders import OrderingQueues
from scheduler.storage.ports.outputs import Outputs
from scheduler.storage.ports.owner_alerts import OwnerAlerts
from scheduler.storage.ports.owners import MOST_KEYS, MOST_PRINCIPALS, Owners
from scheduler.storage.ports.receipts import RECEIPT_RETENTION_MS, Receipts
from scheduler.storage.ports.receivers import Receivers
from scheduler.storage.ports.results import Found, Written
from scheduler.storage.ports.run_timers import RunTimers
from scheduler.storage.ports.secrets import Secrets
from scheduler.storage.ports.targets import ChangeResult, Targets
from scheduler.storage.ports.tasks import Tasks
from scheduler.storage.ports.users import Barred, Challenge, Identity, IdpClaims, OwnerRecord, Session, Trail, User, Users

__all__ = [
    "KEY_RETENTION_MS",
    "MOST_KEYS",
    "MOST_PRINCIPALS",
    "MOVING",
    "RECEIPT_RETENTION_MS",
    "ApiAnswer",
    "Barred",
    "Calendars",
    "Challenge",
    "Change",
    "ChangeResult",
    "ClaimRequest",
    "ClaimResult",
    "Clock",
    "Counters",
    "Declarations",
    "EndNote",
    "EventBus",
    "Followers",
    "Found",
    "Functions",
    "Groups",
    "Guard",
    "Identity",
    "IdpClaims",
    "IntakeDeadLetters",
    "Jobs",
    "KeyTaking",
    "Lanes",
    "Ledger",
    "Monitors",
    "NoticeQueue",
    "Notices",
    "Operations",
    "OrderingQueues",
    "Outputs",
    "OwnApi",
    "OwnerAlerts",
    "OwnerRecord",
    "Owners",
    "Pool",
    "Ports",
    "Receipts",
    "Receivers",
    "RunTimers",
    "Secrets",
    "Session",
    "Targets",
    "Tasks",
    "Traces",
    "Trail",
    "User",
    "Users",
    "Watched",
    "WorkQueue",
    "Written",
]
