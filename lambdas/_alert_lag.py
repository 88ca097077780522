"""Emits the metric of watched runs that are judged late."""


def note_lag(ms: int) -> None:
    """Emit for how long the deadline of a run had passed when it was judged."""
    from lambdas._metrics import emit  # loads Powertools' metrics, with the first late judgement
    from scheduler.insight import metrics

    emit("worker", {metrics.ALERT_LAG: ms / 1_000})
