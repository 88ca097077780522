"""The CDK app: one stack for the stage that `-c stage=...` names (`dev` when it names none)."""

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks

from infra.settings import settings_for
from infra.stack import PunctualStack

app = cdk.App()
settings = settings_for(app.node.try_get_context("stage") or "dev", operator_email=app.node.try_get_context("operator_email"))
PunctualStack(app, settings)
if settings.nag:
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
app.synth()
