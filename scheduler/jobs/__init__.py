"""The operations of an owner on a job: cancel, change, retry, list the history, resume an ordering key."""
