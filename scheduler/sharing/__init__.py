"""Fair shares: whose job is next when more jobs are due than can run, and how many released jobs a lane may have."""
