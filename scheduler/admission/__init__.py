"""Whether a job may start now: overlap, ordering keys, limits, breakers and paused lanes. Each rule stands beside its gate."""
