"""Emits a metric of a lag, which is rare."""


def emit_lag(service: str, name: str, ms: int) -> None:
    """Emit the lag in seconds."""
    from lambdas._metrics import emit  # loads Powertools' metrics, with the first lag

    emit(service, {name: ms / 1_000})
