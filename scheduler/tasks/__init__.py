"""Tasks: schedules (cron, rate, time zones), planning of runs, and what people do with a task."""
