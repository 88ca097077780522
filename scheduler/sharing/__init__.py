"""Fair shares: which user goes next when more is due than can run, and how much work a lane may hold at once."""
