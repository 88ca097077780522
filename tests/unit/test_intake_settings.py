"""The intake queues in a function's environment."""

from lambdas._settings import Settings


def test_the_queues_have_names_owners_and_urls() -> None:
    url = "https://sqs.us-east-1.amazonaws.com/1/q=1"
    parsed = Settings.parse(Settings(stage="test", intake_queues=f"jobs=principals={url} orders=team-a={url}2").render())
    assert parsed.intake == {"jobs": ("principals", url), "orders": ("team-a", f"{url}2")}
    assert Settings(stage="test").intake == {}
