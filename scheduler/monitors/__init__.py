"""Monitors of work that runs elsewhere: pings, their deadlines, and the notices of silence."""
