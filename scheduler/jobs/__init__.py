"""The operations of an owner on a job: cancel, change, retry, put by key, list the history, resume an ordering key."""
