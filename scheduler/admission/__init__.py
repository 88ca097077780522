"""Whether a job may start now: overlap, ordering keys, limits, breakers and paused lanes. Each rule is in a module beside its gate."""
