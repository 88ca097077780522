"""Single sign-on and the second factor, with a real identity provider (oidc-provider): on a user pool alone, and on the deployed stack."""

import io
import json
import secrets
import time
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from punctual import ApiError, NotAuthenticated, Punctual

from infra.accounts import GROUPS_ATTRIBUTE, SIGNED_IN, TRIGGER
from local.aws import LocalAws
from scheduler.accounts.sso import LOOPBACK_PORTS, Sso
from scheduler.model.errors import Unauthorized
from scheduler.storage.aws import clients
from scheduler.storage.aws.accounts import AppClient
from scheduler.storage.aws.identity import CognitoIdentity
from scheduler.storage.memory.accounts import codes
from scheduler.storage.ports import Challenge, IdpClaims, Session
from tests.contract.conftest import running as local_aws
from tests.system import oidc
from tests.system.conftest import System, until
from tests.system.test_console import ARTEFACTS, stories

pytestmark = pytest.mark.apart

BACK = f"http://127.0.0.1:{LOOPBACK_PORTS[0]}{SIGNED_IN}"
AFTER = "http://127.0.0.1:9/signed-out"  # nobody listens there: a browser stays at that address
MAPPING = {"email": "email", "name": "name", f"custom:{GROUPS_ATTRIBUTE}": "groups"}
PASSWORD = f"{secrets.token_urlsafe(15)}-aA1"


def client_of(cognito: Any, pool: str, idp: oidc.IdentityProvider, *console: str) -> dict[str, Any]:
    """The provider in the pool, and the app client for its codes, as `infra/accounts.py` makes them."""
    cognito.create_identity_provider(
        UserPoolId=pool, ProviderName="corp", ProviderType="OIDC", ProviderDetails=idp.details, AttributeMapping=MAPPING
    )
    made: dict[str, Any] = cognito.create_user_pool_client(
        UserPoolId=pool,
        ClientName="sso",
        GenerateSecret=True,
        ExplicitAuthFlows=["ALLOW_ADMIN_USER_PASSWORD_AUTH"],
        SupportedIdentityProviders=["corp"],
        AllowedOAuthFlowsUserPoolClient=True,
        AllowedOAuthFlows=["code"],
        AllowedOAuthScopes=["openid", "profile", "email"],
        CallbackURLs=[BACK, *(f"{address}{SIGNED_IN}" for address in console)],
        LogoutURLs=[f"{idp.issuer}/session/end"],
    )["UserPoolClient"]
    return made


def option(address: str, client: dict[str, Any], idp: oidc.IdentityProvider) -> dict[str, Any]:
    return {
        "provider": "corp",
        "name": "Example Corp",
        "url": address,
        "client_id": client["ClientId"],
        "client_secret": client["ClientSecret"],
        "administrators": ["job-admins"],
        "operators": ["job-operators"],
        "sign_out_url": f"{idp.issuer}/session/end",
    }


# On a user pool alone, with the trigger of tokens.


class Pool:
    """A user pool on a local AWS that enforces roles, with the trigger, and its provider."""

    def __init__(self, address: str, idp: oidc.IdentityProvider) -> None:
        self.idp, self.address, self.browser = idp, address, oidc.Browser()
        self.cognito: Any = clients.cognito(endpoint_url=address)
        function = self._trigger(address)
        triggers: Any = {
            "PreTokenGenerationConfig": {"LambdaArn": function, "LambdaVersion": "V2_0"},
            "InboundFederation": {"LambdaArn": function, "LambdaVersion": "V1_0"},
        }
        schema: Any = [{"Name": GROUPS_ATTRIBUTE, "AttributeDataType": "String", "Mutable": True}]
        self.pool = self.cognito.create_user_pool(PoolName="users", Schema=schema, LambdaConfig=triggers)["UserPool"]["Id"]
        totp: Any = {"Enabled": True}
        self.cognito.set_user_pool_mfa_config(UserPoolId=self.pool, MfaConfiguration="OPTIONAL", SoftwareTokenMfaConfiguration=totp)
        api = self.cognito.create_user_pool_client(
            UserPoolId=self.pool, ClientName="api", GenerateSecret=True, ExplicitAuthFlows=["ALLOW_ADMIN_USER_PASSWORD_AUTH"]
        )["UserPoolClient"]
        self.client = client_of(self.cognito, self.pool, idp)
        self.sso = Sso(**option(address, self.client, idp))
        self.identity = CognitoIdentity(self.cognito, self.pool, AppClient(api["ClientId"], api["ClientSecret"]), self.sso)

    def _trigger(self, address: str) -> str:
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as packed:
            packed.writestr("index.py", TRIGGER.read_text())
        trust = {"Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}]}
        iam = LocalAws(int(address.rpartition(":")[2])).client("iam")
        role = iam.create_role(RoleName="tokens", AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
        made = clients.functions(endpoint_url=address).create_function(
            FunctionName="tokens",
            Runtime="python3.13",
            Handler="index.handler",
            Role=role,
            Code={"ZipFile": archive.getvalue()},
            Environment={"Variables": {"GROUPS_CLAIM": "groups"}},
        )
        return str(made["FunctionArn"])

    def sign_on(self) -> tuple[Session, IdpClaims]:
        code, verifier = self.browser.sign_in(self._page("authorize", identity_provider="corp"), BACK)
        return self.identity.exchange(code, verifier, BACK)

    def _page(self, name: str, **query: str) -> str:
        fixed = f"client_id={self.sso.client_id}&response_type=code&scope=openid+profile+email"
        return f"{self.address}/oauth2/{name}?{fixed}" + "".join(f"&{key}={value}" for key, value in query.items())

    def sign_out(self) -> None:
        self.browser.sign_out(f"{self.address}/logout?client_id={self.sso.client_id}&logout_uri={self.sso.sign_out_url}", self.idp.issuer)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}.items():
            patch.setenv(name, value)
        with local_aws(tmp_path_factory.mktemp("pool"), AUTH="true") as address:
            back = f"http://localhost:{address.rpartition(':')[2]}/oauth2/idpresponse"
            with oidc.running(back, AFTER) as idp:
                yield Pool(address, idp)


@pytest.fixture
def fresh(pool: Pool) -> Pool:
    """The pool, with a browser in which nobody is signed in."""
    pool.browser = oidc.Browser()
    return pool


def test_the_pool_states_person_and_groups(fresh: Pool) -> None:
    fresh.idp.become("Ann", name="Ann", email="ann@example.org", email_verified=False, groups=["job-operators", "others"])
    session, claims = fresh.sign_on()
    assert claims == IdpClaims("corp", "ann", frozenset({"job-operators", "others"}), "Ann", "ann@example.org", claims.email_verified)
    assert session.user is not None and session.user.username == "corp_Ann"
    assert fresh.identity.refresh(session.refresh_token or "").token.count(".") == 2


def test_a_removed_group_is_gone_with_the_next_sign_in(fresh: Pool) -> None:
    for groups, stated in ((["a", "b"], {"a", "b"}), (["b"], {"b"}), ([], set()), (["a"], {"a"}), (None, set())):
        fresh.browser = oidc.Browser()
        fresh.idp.become("gert", **({} if groups is None else {"groups": groups}))
        assert fresh.sign_on()[1].groups == stated


def test_the_pool_checks_the_verifier(fresh: Pool) -> None:
    fresh.idp.become("ann")
    code, verifier = fresh.browser.sign_in(fresh._page("authorize", identity_provider="corp"), BACK)
    with pytest.raises(Unauthorized):
        fresh.identity.exchange(code, "w" * 64, BACK)
    assert fresh.identity.exchange(code, verifier, BACK)
    with pytest.raises(Unauthorized):
        fresh.identity.exchange(code, verifier, BACK)


def test_after_the_sign_out_the_next_person_signs_in(fresh: Pool) -> None:
    fresh.idp.become("ann")
    assert fresh.sign_on()[1].subject == "ann"
    fresh.idp.become("ben")
    assert fresh.sign_on()[1].subject == "ann", "the session at the provider goes on"
    fresh.sign_out()
    assert fresh.sign_on()[1].subject == "ben"


def test_no_token_of_a_person_changes_the_account(fresh: Pool) -> None:
    fresh.idp.become("ann")
    name = f"ada-{secrets.token_hex(4)}"
    fresh.identity.create(name, PASSWORD)
    by_password = fresh.identity.login(name, PASSWORD)
    assert isinstance(by_password, Session)
    for session in (by_password, fresh.identity.refresh(by_password.refresh_token or ""), fresh.sign_on()[0]):
        for call in (
            lambda token: fresh.cognito.delete_user(AccessToken=token),
            lambda token: fresh.cognito.change_password(AccessToken=token, PreviousPassword=PASSWORD, ProposedPassword=PASSWORD + "x"),
            lambda token: fresh.cognito.associate_software_token(AccessToken=token),
        ):
            with pytest.raises(ClientError, match="required scopes"):
                call(session.token)


def test_the_second_factor_works_although_tokens_lack_its_scope(fresh: Pool) -> None:
    name = f"ada-{secrets.token_hex(4)}"
    subject = fresh.identity.create(name, PASSWORD)
    secret = fresh.identity.begin_totp(name, PASSWORD)
    fresh.identity.confirm_totp(name, PASSWORD, present(secret))
    challenge = fresh.identity.login(name, PASSWORD)
    assert isinstance(challenge, Challenge) and fresh.identity.has_totp(subject)
    session = fresh.identity.answer_challenge(challenge, present(secret))
    with pytest.raises(ClientError, match="required scopes"):
        fresh.cognito.delete_user(AccessToken=session.token)


def present(secret: str) -> str:
    """The code that a phone shows now."""
    return codes(secret, int(time.time() * 1000))[1]


# On the deployed stack.


@pytest.fixture(scope="module")
def idp(deployed: System) -> Iterator[oidc.IdentityProvider]:
    """The provider, configured in the stack as the option `[sso]` would."""
    aws, outputs = deployed.aws, deployed.outputs
    with oidc.running(f"http://localhost:{deployed.stack.aws.port}/oauth2/idpresponse", AFTER) as found:
        client = client_of(aws("cognito-idp"), outputs["UserPoolId"], found, deployed.stack.console_address)
        gateway = aws("apigatewayv2")
        (authorizer,) = [
            each
            for each in gateway.get_authorizers(ApiId=outputs["ApiId"])["Items"]
            if outputs["UserPoolClientId"] in each["JwtConfiguration"]["Audience"]
        ]
        known = authorizer["JwtConfiguration"]
        audience = [*known["Audience"], client["ClientId"]]
        gateway.update_authorizer(
            ApiId=outputs["ApiId"], AuthorizerId=authorizer["AuthorizerId"], JwtConfiguration={**known, "Audience": audience}
        )
        sso = option("{endpoint}", client, found)
        deployed.stack.aws.set_variables(outputs["ApiFunction"], PUNCTUAL_SSO=json.dumps(sso))
        yield found


def signed_on(system: System, browser: oidc.Browser) -> Punctual:
    """A client with the session of a single sign-on through the API."""
    anybody = system.anonymous()
    page = anybody.request("GET", "/auth/sso")["sso"]
    code, verifier = browser.sign_in(page["authorize_url"], BACK)
    session = anybody.request("POST", "/auth/sso", {"code": code, "verifier": verifier, "redirect_uri": BACK})
    return Punctual(system.address, token=session["token"])


def test_a_person_signs_in_through_the_provider_with_a_role_from_a_group(deployed: System, idp: oidc.IdentityProvider) -> None:
    sub = f"olga-{secrets.token_hex(4)}"
    for groups, role in ((["job-operators"], "operator"), (["job-admins"], "administrator"), ([], "user")):
        idp.become(sub, name="Olga", groups=groups)
        signed_in = signed_on(deployed, oidc.Browser())
        until(35, lambda role=role, client=signed_in: client.request("GET", "/me")["role"] == role)  # type: ignore[misc]


def test_the_command_line_and_the_console_learn_the_way(deployed: System, idp: oidc.IdentityProvider) -> None:
    page = deployed.anonymous().request("GET", "/auth/sso")
    assert page["passwords"] is True and page["sso"]["name"] == "Example Corp"
    assert page["sso"]["loopback_ports"] == list(LOOPBACK_PORTS) and oidc.SECRET not in json.dumps(page)


def test_a_linked_person_sees_the_same_jobs_both_ways(deployed: System, idp: oidc.IdentityProvider) -> None:
    admin, sub = deployed.client(), f"ann-{secrets.token_hex(4)}"
    user = admin.request("POST", "/users", {"username": sub, "password": PASSWORD})
    job = deployed.sign_in(sub, PASSWORD).jobs.create("log", {"message": "mine"}, execute_at="2030-01-01T00:00:00Z").raw
    admin.request("PUT", f"/users/{user['id']}/identities/corp", {"subject": sub})
    idp.become(sub, name="Ann", groups=[])
    by_sso = signed_on(deployed, oidc.Browser())
    assert by_sso.request("GET", "/me")["id"] == user["id"]
    assert by_sso.jobs.get(job["id"]).raw["id"] == job["id"]
    by_sso.request("POST", f"/jobs/{job['id']}/cancel")


def test_a_disabled_person_does_not_sign_in_through_the_provider(deployed: System, idp: oidc.IdentityProvider) -> None:
    sub = f"dora-{secrets.token_hex(4)}"
    idp.become(sub, groups=["job-admins"])
    me = signed_on(deployed, oidc.Browser()).request("GET", "/me")
    admin = deployed.client()
    admin.request("POST", f"/users/{me['id']}/disable")
    with pytest.raises(NotAuthenticated):
        signed_on(deployed, oidc.Browser())
    admin.request("POST", f"/users/{me['id']}/enable")
    assert signed_on(deployed, oidc.Browser()).request("GET", "/me")["id"] == me["id"]


def test_a_second_factor_on_the_stack(deployed: System) -> None:
    admin, name = deployed.client(), f"tom-{secrets.token_hex(4)}"
    user = admin.request("POST", "/users", {"username": name, "password": PASSWORD})
    client = deployed.sign_in(name, PASSWORD)
    begun = client.request("POST", "/auth/totp", {"current_password": PASSWORD})
    used = present(begun["secret"])
    client.request("PUT", "/auth/totp", {"current_password": PASSWORD, "code": used})
    anybody = deployed.anonymous()
    challenge = anybody.request("POST", "/auth/login", {"username": name, "password": PASSWORD})
    assert challenge["challenge"] == "totp"
    with pytest.raises(ApiError) as replayed:
        anybody.request("POST", "/auth/challenge", {"session": challenge["session"], "code": used})
    assert replayed.value.status == 401, "each code once"
    ahead = codes(begun["secret"], int(time.time() * 1000))[2]  # a phone whose clock is fast
    session = anybody.request("POST", "/auth/challenge", {"session": challenge["session"], "code": ahead})
    assert Punctual(deployed.address, token=session["token"]).request("GET", "/auth/totp") == {"possible": True, "enabled": True}
    admin.request("DELETE", f"/users/{user['id']}/totp")
    assert deployed.sign_in(name, PASSWORD).request("GET", "/auth/totp")["enabled"] is False


def test_the_console_signs_in_by_the_provider_and_by_code(
    deployed: System, idp: oidc.IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"phone-{secrets.token_hex(4)}"
    deployed.client().request("POST", "/users", {"username": name, "password": PASSWORD})
    monkeypatch.setenv("CONSOLE_FACTOR_USER", name)
    monkeypatch.setenv("CONSOLE_FACTOR_PASSWORD", PASSWORD)
    idp.become(f"kim-{secrets.token_hex(4)}", name="Kim", groups=["job-operators"])
    done = stories(deployed, ARTEFACTS, files="browser/sso.story.ts")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_nobody_signs_in_at_the_pool_itself(deployed: System) -> None:
    cognito, client = deployed.aws("cognito-idp"), deployed.outputs["UserPoolClientId"]
    with pytest.raises(ClientError):
        cognito.initiate_auth(ClientId=client, AuthFlow="USER_PASSWORD_AUTH", AuthParameters={"USERNAME": "x", "PASSWORD": PASSWORD})
