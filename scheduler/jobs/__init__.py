"""What an owner does with a job: cancel, change, retry, read its history, resume its ordering key."""
