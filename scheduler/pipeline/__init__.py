"""The engine: submit, tick, dispatch, overflow, execute, reconcile and bury, with leads, leases and follow-ups."""
