"""Sign-in: a Cognito user pool with its public client."""

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk import aws_cognito as cognito
from constructs import Construct

from infra.settings import Settings

# No longer used: weights are in the users table. A pool may not lose an attribute, so it stays in the template.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cognito-userpool.html (Schema)
WEIGHT_ATTRIBUTE = "job_weight"


class Accounts(Construct):
    """The user pool. Administrators create users; users sign themselves up only if the stage allows it."""

    def __init__(self, scope: Construct, id: str, settings: Settings) -> None:
        super().__init__(scope, id)
        self.pool = cognito.UserPool(
            self,
            "Users",
            self_sign_up_enabled=settings.self_sign_up,
            sign_in_aliases=cognito.SignInAliases(username=True, email=True),
            sign_in_case_sensitive=False,
            custom_attributes={WEIGHT_ATTRIBUTE: cognito.NumberAttribute(min=0, mutable=True)},
            password_policy=cognito.PasswordPolicy(
                min_length=12,
                require_lowercase=True,
                require_uppercase=True,
                require_digits=True,
                require_symbols=True,
                temp_password_validity=Duration.days(3),
            ),
            deletion_protection=settings.protected,
            removal_policy=settings.guarded_removal_policy,
        )
        self.client = self.pool.add_client(
            "Client",
            auth_flows=cognito.AuthFlow(
                user_password=True
            ),  # our login route forwards the password; a separate call rotates refresh tokens
            disable_o_auth=True,
            generate_secret=False,  # public: the API calls it without one
            prevent_user_existence_errors=True,
            enable_token_revocation=True,
            access_token_validity=Duration.hours(1),
            id_token_validity=Duration.hours(1),
            refresh_token_validity=Duration.days(30),
            refresh_token_rotation_grace_period=Duration.seconds(30),  # a client may repeat a refresh whose answer was lost
            read_attributes=cognito.ClientAttributes().with_standard_attributes(email=True, email_verified=True),
            write_attributes=cognito.ClientAttributes().with_standard_attributes(email=True),
        )
        self._acknowledge()

    def _acknowledge(self) -> None:
        paid = "threat protection costs 0.02 USD per user and month; login is throttled instead"
        Validations.of(self.pool).acknowledge(
            Acknowledgment(id="AwsSolutions-COG2", reason="programs sign in with these accounts; a second factor would stop them"),
            Acknowledgment(id="AwsSolutions-COG3", reason=paid),
            Acknowledgment(id="AwsSolutions-COG8", reason=paid),
        )
