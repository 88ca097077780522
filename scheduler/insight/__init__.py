"""Counters, forecast, statistics, archive, metrics and scaling."""
