"""Tasks: schedules (cron, rate, time zones), planning of runs, and the operations on a task."""
