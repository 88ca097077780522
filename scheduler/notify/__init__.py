"""Notifications of the runs of tasks: the policy, the texts, the queue messages, the service."""
