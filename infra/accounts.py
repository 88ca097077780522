"""Sign-in: a Cognito user pool, the app client of the API, the trigger of tokens, and single sign-on (an option).

The app clients have a secret and no public flow: everybody signs in through the API, with its limits and its audit trail.
"""

import json
from pathlib import Path

from aws_cdk import Acknowledgment, Aws, Duration, SecretValue, Stack, Validations
from aws_cdk import aws_cognito as cognito
from constructs import Construct

from infra.encryption import Encryption
from infra.function import trigger
from infra.options import FREE, SignOn
from infra.settings import Settings
from scheduler.accounts.sso import LOOPBACK_PORTS

# No longer used: weights are in the users table. A pool may not lose an attribute, so it stays in the template.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cognito-userpool.html (Schema)
WEIGHT_ATTRIBUTE = "job_weight"
GROUPS_ATTRIBUTE = "groups"  # at the identity provider, as it states them at a single sign-on
SSO_LASTS = Duration.hours(8)  # a session of single sign-on; after that, the person goes to the identity provider again
SIGNED_IN = "/signed-in"  # where the browser comes back
TRIGGER = Path(__file__).resolve().parent.parent / "lambdas" / "_tokens.py"


class Accounts(Construct):
    """The user pool. Administrators create accounts; a single sign-on creates its own."""

    def __init__(self, scope: Construct, id: str, settings: Settings, encryption: Encryption) -> None:
        super().__init__(scope, id)
        self.pool = cognito.UserPool(
            self,
            "Users",
            self_sign_up_enabled=False,
            sign_in_aliases=cognito.SignInAliases(username=True, email=True),
            sign_in_case_sensitive=False,
            custom_attributes={
                WEIGHT_ATTRIBUTE: cognito.NumberAttribute(min=0, mutable=True),
                GROUPS_ATTRIBUTE: cognito.StringAttribute(max_len=2048, mutable=True),
            },
            password_policy=cognito.PasswordPolicy(
                min_length=12,
                require_lowercase=True,
                require_uppercase=True,
                require_digits=True,
                require_symbols=True,
                temp_password_validity=Duration.days(3),
            ),
            mfa=cognito.Mfa.OPTIONAL,
            mfa_second_factor=cognito.MfaSecondFactor(sms=False, otp=True),
            feature_plan=cognito.FeaturePlan.ESSENTIALS,  # AWS's default; Lite changes no access tokens and rotates no refresh tokens
            deletion_protection=settings.protected,
            removal_policy=settings.guarded_removal_policy,
        )
        self._trigger(settings, encryption)
        self.client = self._client(
            "Client",
            refresh_token_validity=Duration.days(30),
            disable_o_auth=True,
            read_attributes=cognito.ClientAttributes().with_standard_attributes(email=True, email_verified=True),
            write_attributes=cognito.ClientAttributes().with_standard_attributes(email=True),
        )
        self.sso = None if settings.sso is None else self._single_sign_on(settings.sso, settings)
        self._option = settings.sso
        self._acknowledge()

    def environment(self, settings: Settings) -> dict[str, str]:
        """The settings of the API's function. The app clients' secrets protect nothing without the grants of its role."""
        found = {
            "user_pool": self.pool.user_pool_id,
            "user_pool_client_id": self.client.user_pool_client_id,
            "user_pool_client_secret": _secret(self.client),
        }
        option, client = self._option, self.sso
        if option is None or client is None:
            return found
        sso = {
            "provider": option.provider,
            "name": option.name,
            "url": self._pages(settings),
            "client_id": client.user_pool_client_id,
            "client_secret": _secret(client),
            "administrators": option.administrators,
            "operators": option.operators,
            "passwords": option.passwords,
            "break_glass": option.break_glass,
            "sign_out_url": option.sign_out_url or option.console,
        }
        return found | {"sso": json.dumps(sso)}

    @property
    def clients(self) -> list[cognito.UserPoolClient]:
        """The app clients whose tokens are valid."""
        return [self.client, *([self.sso] if self.sso else [])]

    def _client(self, id: str, **options: object) -> cognito.UserPoolClient:
        return self.pool.add_client(
            id,
            # Only a role with the grant can sign in. No flow at all would mean AWS's default flows, of which some are public.
            auth_flows=cognito.AuthFlow(admin_user_password=True),
            generate_secret=True,
            prevent_user_existence_errors=True,
            enable_token_revocation=True,
            access_token_validity=Duration.hours(1),
            id_token_validity=Duration.hours(1),
            refresh_token_rotation_grace_period=Duration.seconds(30),  # a client may repeat a refresh whose answer was lost
            **options,  # type: ignore[arg-type]
        )

    def _trigger(self, settings: Settings, encryption: Encryption) -> None:
        claim = {} if settings.sso is None else {"GROUPS_CLAIM": settings.sso.groups_claim}
        function = trigger(Construct(self, "Tokens"), TRIGGER.read_text(), settings, encryption, claim)
        before_tokens = cognito.UserPoolOperation.PRE_TOKEN_GENERATION_CONFIG
        self.pool.add_trigger(before_tokens, function, cognito.LambdaVersion.V2_0)
        if settings.sso is not None:
            raw = self.pool.node.default_child
            assert isinstance(raw, cognito.CfnUserPool)
            place = "LambdaConfig.InboundFederation"  # the construct knows only older triggers
            raw.add_property_override(place, {"LambdaArn": function.function_arn, "LambdaVersion": "V1_0"})

    def _single_sign_on(self, option: SignOn, settings: Settings) -> cognito.UserPoolClient:
        """The identity provider, the address of the pool's sign-in pages, and the app client for its codes."""
        provider = self._provider(option)
        if not settings.api_at_endpoint:  # the local AWS would redirect to a host name of AWS
            self.pool.add_domain("Domain", cognito_domain=cognito.CognitoDomainOptions(domain_prefix=self._prefix(settings)))
        back = [f"{option.console}{SIGNED_IN}", *(f"http://127.0.0.1:{port}{SIGNED_IN}" for port in LOOPBACK_PORTS)]
        mapped = cognito.ClientAttributes().with_standard_attributes(email=True, fullname=True).with_custom_attributes(GROUPS_ATTRIBUTE)
        client = self._client(
            "Sso",
            refresh_token_validity=SSO_LASTS,
            supported_identity_providers=[cognito.UserPoolClientIdentityProvider.custom(option.provider)],
            o_auth=cognito.OAuthSettings(
                flows=cognito.OAuthFlows(authorization_code_grant=True),
                scopes=[cognito.OAuthScope.OPENID, cognito.OAuthScope.PROFILE, cognito.OAuthScope.EMAIL],
                callback_urls=back,
                logout_urls=sorted({option.console, option.sign_out_url or option.console}),
            ),
            read_attributes=mapped,
            write_attributes=mapped,  # Cognito refuses a sign-in whose mapped attributes its client may not write
        )
        client.node.add_dependency(provider)
        return client

    def _provider(self, option: SignOn) -> Construct:
        other = cognito.ProviderAttribute.other
        claims = option.claims
        mapping = cognito.AttributeMapping(
            email=other(claims["email"]),
            fullname=other(claims["name"]),
            custom={f"custom:{GROUPS_ATTRIBUTE}": other(option.groups_claim)},
        )
        if option.type == "oidc":
            return cognito.UserPoolIdentityProviderOidc(
                self,
                "Provider",
                user_pool=self.pool,
                name=option.provider,
                issuer_url=option.issuer or "",
                client_id=option.client_id or "",
                client_secret=_reference(option.client_secret or ""),
                scopes=list(option.scopes),
                attribute_mapping=mapping,
            )
        return cognito.UserPoolIdentityProviderSaml(
            self,
            "Provider",
            user_pool=self.pool,
            name=option.provider,
            metadata=cognito.UserPoolIdentityProviderSamlMetadata.url(option.metadata_url or ""),
            attribute_mapping=mapping,
        )

    @staticmethod
    def _prefix(settings: Settings) -> str:
        return f"punctual-{settings.stage}-{Aws.ACCOUNT_ID}"

    def _pages(self, settings: Settings) -> str:
        """The address of the pool's sign-in pages."""
        if settings.api_at_endpoint:
            return "{endpoint}"
        return f"https://{self._prefix(settings)}.auth.{Stack.of(self).region}.amazoncognito.com"

    def _acknowledge(self) -> None:
        paid = "threat protection costs 0.02 USD per user and month; login is throttled instead"
        Validations.of(self.pool).acknowledge(
            Acknowledgment(id="AwsSolutions-COG2", reason="each person may switch a second factor on; programs use API keys"),
            Acknowledgment(id="AwsSolutions-COG3", reason=paid),
            Acknowledgment(id="AwsSolutions-COG8", reason=paid),
        )


def _secret(client: cognito.UserPoolClient) -> str:
    """The secret of an app client: an attribute of the resource. The construct's own way takes a function that reads it."""
    raw = client.node.default_child
    assert isinstance(raw, cognito.CfnUserPoolClient)
    return raw.attr_client_secret


def _reference(secret: str) -> str:
    """A reference to a secret, by which CloudFormation reads it: neither the template nor the options contain it."""
    if secret.startswith(FREE):
        return f"{{{{resolve:ssm:{secret.removeprefix(FREE)}}}}}"
    return SecretValue.secrets_manager(secret).unsafe_unwrap()
