"""The names of our own metrics, for the functions that emit them and the alarms that watch them.

Each is emitted with the one dimension `service`, the verb that emits it.
"""

NAMESPACE = "Punctual"
SERVICE = "service"

OLDEST_OPEN_MINUTE = "OldestOpenMinuteSeconds"  # tick: the scheduler's lag, the age of the oldest minute not closed
PLAN_LAG = "PlanLagSeconds"  # plan: the age of the oldest minute whose tasks are not all topped up
BURIED = "Buried"  # bury: jobs that ended in a dead-letter queue
