"""The ARN that the function of a custom resource sees in the local AWS."""

from typing import Any

from ministack.services import lambda_svc
from ministack.services.cloudformation import custom_resource

from local import custom_resources

ALIAS = "arn:aws:lambda:us-east-1:000000000000:function:provider:shop"


def test_a_custom_resource_calls_the_alias_that_its_template_names() -> None:
    seen: list[Any] = []
    record_of = custom_resources.by_alias(lambda function, config: {**function, "config": config})

    def invoke(request: str, resource: str, properties: dict[str, Any], *rest: Any) -> None:
        seen.append(record_of({"versions": {}}, {"FunctionArn": "arn:…:provider:7", "Version": "7"}))

    custom_resources.noting(invoke)("Create", "Nightly", {"ServiceToken": ALIAS}, "shop", "arn", "Custom::PunctualTask")
    assert seen == [{"versions": {}, "config": {"FunctionArn": ALIAS, "Version": "7"}}]


def test_other_invocations_keep_their_arn() -> None:
    record_of = custom_resources.by_alias(lambda function, config: config)
    custom_resources.noting(lambda *arguments: None)("Create", "Nightly", {"ServiceToken": ALIAS})
    assert record_of({}, {"FunctionArn": "arn:…:other"}) == {"FunctionArn": "arn:…:other"}


def test_ministack_still_has_what_is_wrapped() -> None:
    """A new version of it may call them otherwise: tests/system/test_templates.py shows that it calls them."""
    assert callable(custom_resource.invoke_custom_resource) and callable(lambda_svc._execution_record_for_config)
