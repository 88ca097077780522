"""The CDK app: one stack for the stage that `-c stage=...` names (`dev` when it names none)."""

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks

from infra.samples import SamplesStack
from infra.settings import settings_for
from infra.stack import PunctualStack

CHOSEN = (
    "operator_email",
    "allowed_targets",
    "email_sender",
    "machine_clients",
    "self_sign_up",
    "raw_http",
    "http_hosts",
    "plain_http",
    "customer_key",
    "endpoint_port",
)
app = cdk.App()
context = {name: app.node.try_get_context(name) for name in CHOSEN}
settings = settings_for(app.node.try_get_context("stage") or "dev", **context)
PunctualStack(app, settings)
if settings.sample_targets:
    SamplesStack(app, settings)
if settings.nag:
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
app.synth()
