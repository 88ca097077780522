"""The file of options: its valid content, and refusals with the line and the rule."""

import json
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from infra import options
from infra.options import EXAMPLE, MOST_ISSUERS, Options, OptionsError, of_deployment, read
from infra.settings import OF_REACH, OF_RULES, STAGES, Settings, settings_for
from scheduler.model.rules import Rules
from scheduler.targets.base import Reach
from tests.infra import choices
from tests.infra.conftest import refusal

SSO = 'name = "Corp"\ntype = "saml"\nconsole = "https://c.example.com"\nmetadata_url = "https://idp.example.com"\n'
ARN = "arn:aws:sqs:eu-west-1:123456789012:orders-*"


def test_a_stage_without_a_file_has_its_defaults(written: Path) -> None:
    assert read(written) == Options()
    for stage, defaults in STAGES.items():
        assert settings_for(stage, read(written)) == defaults


def test_every_option_of_a_file_reaches_the_settings(written: Path) -> None:
    written.write_text(choices.example())
    chosen = read(written)
    missing = Options.model_fields.keys() - chosen.model_fields_set
    assert missing == set(), f"stages/example.toml lacks {', '.join(missing)}"
    settings = settings_for("dev", chosen)
    assert settings.allowed_targets == chosen.allowed_targets and len(chosen.allowed_targets) == 2
    domains, hosts = ("example.org", "*.example.org"), ("hooks.example.com", "*.example.org")
    actions = ("s3:CopyObject", "ecs:RunTask 3f1c7a52-0000-4000-8000-000000000001")
    accounts = ("arn:aws:iam::210987654321:role/punctual-targets 3f1c7a52-0000-4000-8000-000000000001",)
    network = ("10.0.0.0/16", "*.internal.example.com")
    made = Reach(chosen.allowed_targets, "punctual@example.org", domains, False, hosts, actions)
    assert settings.reach == replace(made, network=network, accounts=accounts, stage="dev")
    assert settings.network == chosen.network
    assert (settings.allowed_actions, settings.accounts) == (chosen.allowed_actions, chosen.accounts)
    assert (settings.operator_email, settings.ticket_email) == ("ops@example.org", "desk@example.org")
    assert settings.issuers == {"123456789012": "https://0a1b2c3d-4e5f-6789-abcd-ef0123456789.tokens.sts.global.api.aws"}
    assert settings.sso == chosen.sso and chosen.sso is not None and chosen.sso.administrators == ("job-admins",)


def test_every_option_is_a_setting_of_the_stage_its_rules_or_its_reach() -> None:
    for name in Options.model_fields:
        place, field = (Reach, OF_REACH[name]) if name in OF_REACH else (Rules, name) if name in OF_RULES else (Settings, name)
        assert field in {each.name for each in fields(place)}, f"{place.__name__} lacks {field}"


def test_an_option_replaces_the_default_of_its_stage_and_only_that() -> None:
    chosen = settings_for("local", Options(http_hosts=("example.com",), raw_http=False, waf=True, provisioned_writes=25))
    assert chosen.reach.hosts == ("example.com",) and chosen.reach.plain_http and chosen.reach.arns == STAGES["local"].reach.arns
    assert not chosen.rules.raw_http and chosen.rules.shards == STAGES["local"].rules.shards
    assert (chosen.waf, chosen.provisioned_writes, chosen.console) == (True, 25, True)
    assert chosen.options == {"http_hosts": ["example.com"], "raw_http": False, "waf": True, "provisioned_writes": 25}


def test_an_unknown_option_is_refused_with_the_list(written: Path) -> None:
    told = refusal(written, "# a comment\n\nwaff = true\n")
    assert told.startswith(", line 3: there is no option waff; the options are base, operator_email, ticket_email, allowed_targets,")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('waf = "true"', ", line 1: waf must be true or false, not 'true'"),
        ("waf = 1", ", line 1: waf must be true or false, not 1"),
        ('\nprovisioned_writes = "500"', ", line 2: provisioned_writes must be a whole number, not '500'"),
        ("provisioned_writes = true", ", line 1: provisioned_writes must be a whole number, not true"),
        ('http_hosts = "a.example.com"', ', line 1: http_hosts must be a list of texts, such as ["a", "b"], not \'a.example.com\''),
        ('events = "some"', ', line 1: events must be "none", "chosen" or "all", not \'some\''),
        ('base = "staging"', ', line 1: base must be "dev" or "prod", not \'staging\''),
        ("events = true", ', line 1: events must be "none", "chosen" or "all", not true'),
        ("operator_email = 5", ", line 1: operator_email must be a text in quotes, not 5"),
        ('sso = ["corp"]', ", line 1: sso must be a table: begin it with [sso], not ['corp']"),
        (f'allowed_targets = [\n  "{ARN}",\n  7,\n]', ", line 3: an element of allowed_targets must be a text in quotes, not 7"),
        ('http_hosts = "a.example.com"', ', line 1: http_hosts must be a list of texts, such as ["a", "b"], not \'a.example.com\''),
    ],
)
def test_a_wrong_type_is_refused_with_its_line(written: Path, text: str, told: str) -> None:
    assert refusal(written, text) == told


@pytest.mark.parametrize("bad", ["*", "orders", "arn:aws:s3:::bucket", "arn:aws:*:*:*:*"])
def test_a_target_that_is_no_arn_of_a_known_service_is_refused(written: Path, bad: str) -> None:
    told = refusal(written, f'allowed_targets = [\n  "{ARN}",\n  "{bad}",\n]')
    assert told == f", line 3: an element of allowed_targets: '{bad}' is no ARN of ecs, events, lambda, sns, sqs, states; such as {ARN}"


@pytest.mark.parametrize("bad", ["*", "https://example.com", "example.com/path", "example.com:80"])
def test_a_host_that_is_no_host_name_is_refused(written: Path, bad: str) -> None:
    assert f", line 1: an element of http_hosts: '{bad}' is no host name" in refusal(written, f'http_hosts = ["{bad}"]')


def test_lists_that_no_environment_of_a_function_holds_are_refused(written: Path) -> None:
    together = (
        "allowed_targets, allowed_actions, accounts, email_domains, http_hosts, network, aws_issuers and sso together have at most 1670"
    )
    many = '", "'.join(["arn:aws:sqs:eu-west-1:123456789012:orders"] * 60)
    assert f"allowed_targets: {together}" in refusal(written, f'allowed_targets = ["{many}"]')
    many = '", "'.join(["hooks.example.com"] * 120)
    assert f"http_hosts: {together}" in refusal(written, f'http_hosts = ["{many}"]')


def test_options_that_no_parameter_holds_are_refused(written: Path) -> None:
    scopes = ", ".join(f'"{"s" * 400}{number}"' for number in range(10))
    assert refusal(written, f"[sso]\n{SSO}scopes = [{scopes}]") == ": the options are longer than 4096 characters together"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("secret = 5", "there is no option sso.secret; the options are "),
        ('provider = "Corp"', "sso.provider: must be 3 to 32 small letters"),
        ('issuer = "https://idp.example.com"', 'sso: issuer belongs to the other type, not to "saml"'),
        (f"operators = {json.dumps(['o' * 450] * 3)}", "aws_issuers and sso together have at most 1670 characters"),
        ("passwords = false", "sso: passwords = false needs a user name in break_glass"),
    ],
)
def test_a_wrong_option_of_single_sign_on_is_refused_with_its_line(written: Path, line: str, told: str) -> None:
    assert told in refusal(written, f"[sso]\n{SSO}{line}")


def test_an_option_that_single_sign_on_lacks_is_named(written: Path) -> None:
    assert "sso.console is missing" in refusal(written, '[sso]\nname = "Corp"\ntype = "saml"')


@pytest.mark.parametrize("bad", [24, 40_001, -1])
def test_provisioned_capacity_that_aws_refuses_is_refused(written: Path, bad: int) -> None:
    told = refusal(written, f"provisioned_writes = {bad}")
    assert told == f", line 1: provisioned_writes: must be 0 (on demand) or from 25 to 40000, not {bad}"


@pytest.mark.parametrize("bad", [-1, 3_651])
def test_days_of_an_audit_lock_that_nobody_could_undo_are_refused(written: Path, bad: int) -> None:
    told = refusal(written, f"\naudit_lock_days = {bad}")
    assert told == f", line 2: audit_lock_days: must be 0 (no copy) or from 1 to 3650 days, not {bad}"


ISSUER = "https://0a1b.tokens.sts.global.api.aws"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f'12345678901 = "{ISSUER}"', ", line 1: aws_issuers: an AWS account has 12 digits; '12345678901' is not valid"),
        (f'"١٢٣٤٥٦٧٨٩٠١٢" = "{ISSUER}"', "an AWS account has 12 digits"),
        (
            '123456789012 = "http://0a1b.tokens.sts.global.api.aws"',
            "123456789012 is https://….tokens.sts.global.api.aws, which",
        ),
        ('123456789012 = "https://tokens.example.com"', "not 'https://tokens.example.com'"),
        ('123456789012 = "https://0a1b.tokens.sts.global.api.aws.example.com"', "the issuer of 123456789012 is"),
        ('123456789012 = "https://0a1b.tokens.sts.global.api.aws/"', "the issuer of 123456789012 is"),
        ('123456789012 = "https://example.com/.tokens.sts.global.api.aws"', "the issuer of 123456789012 is"),
        (f'123456789012 = "{ISSUER}"\n210987654321 = "{ISSUER}"', "each account has an issuer of its own; two accounts here have the same"),
        ("123456789012 = 5", ", line 2: aws_issuers.123456789012 must be a text in quotes, not 5"),
    ],
)
def test_an_issuer_of_an_account_is_that_of_aws(written: Path, text: str, message: str) -> None:
    assert message in refusal(written, f"[aws_issuers]\n{text}")


def test_more_accounts_than_the_api_may_have_authorizers_are_refused(written: Path) -> None:
    accounts = [f'{number:012} = "https://{number}.tokens.sts.global.api.aws"' for number in range(MOST_ISSUERS + 1)]
    written.write_text("\n".join(["[aws_issuers]", *accounts[:-1]]))
    assert len(read(written).aws_issuers) == MOST_ISSUERS
    assert "has at most 9 accounts, each of which needs an authorizer of API Gateway, not 10" in refusal(
        written, "\n".join(["[aws_issuers]", *accounts])
    )


def test_issuers_that_no_environment_of_a_function_holds_are_refused(written: Path) -> None:
    many = '", "'.join(["arn:aws:sqs:eu-west-1:123456789012:orders"] * 38)
    chosen = f'allowed_targets = ["{many}"]\n[aws_issuers]\n'
    written.write_text(f'{chosen}123456789012 = "https://1.tokens.sts.global.api.aws"')
    assert len(read(written).aws_issuers) == 1
    issuer = f"https://{'0' * 36}.tokens.sts.global.api.aws"
    assert (
        "aws_issuers: allowed_targets, allowed_actions, accounts, email_domains, http_hosts, network, aws_issuers and sso together"
        in refusal(written, f'{chosen}123456789012 = "{issuer}"')
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[intake]\nq = 'principals'",
            "intake: allowed_targets, allowed_actions, accounts, email_domains, http_hosts, network and intake together have at most 1670",
        ),
        (
            f"[sso]\n{SSO}",
            "accounts, email_domains, http_hosts, network, aws_issuers and sso together have at most 1670",
        ),
    ],
)
def test_queues_and_a_sign_on_that_no_environment_holds_are_refused(written: Path, text: str, message: str) -> None:
    many = '", "'.join(["arn:aws:sqs:eu-west-1:123456789012:orders-1"] * 37)
    chosen = f'allowed_targets = ["{many}", "arn:aws:sqs:eu-west-1:123456789012:a"]\n'
    written.write_text(chosen)
    assert len(read(written).allowed_targets) == 38
    assert message in refusal(written, f"{chosen}{text}")


@pytest.mark.parametrize("name", ["operator_email", "ticket_email", "email_sender"])
def test_an_address_must_be_one(written: Path, name: str) -> None:
    assert refusal(written, f'{name} = "ops"') == f", line 1: {name}: must be an e-mail address"


def test_a_web_acl_without_a_console_is_refused(written: Path) -> None:
    told = refusal(written, "waf = true\nconsole = false\n")
    assert told.startswith(", line 1: waf: needs the console")


@pytest.mark.parametrize("domain", ["", "example", "a@example.com", "example.com,example.org", "https://example.com", "**", "example."])
def test_a_domain_of_recipients_is_a_domain(written: Path, domain: str) -> None:
    assert "is no domain; such as example.com, *.example.com or * for any" in refusal(written, f'email_domains = ["{domain}"]')


def test_all_errors_of_a_file_are_reported_together(written: Path) -> None:
    told = refusal(written, "waf = 1\ntracing = 2\n").splitlines()
    assert [line.rpartition("line ")[2][:1] for line in told] == ["2", "1"]


def test_a_file_that_is_no_toml_is_refused_with_its_line(written: Path) -> None:
    assert re.fullmatch(r": this is no TOML: .*line 2.*", refusal(written, "waf = true\nconsole = maybe\n"))


def test_a_file_in_another_encoding_is_refused(written: Path) -> None:
    written.write_bytes(b"# Gr\xfc\xdfe")
    with pytest.raises(OptionsError, match="this is no TOML"):
        read(written)


def test_an_option_on_the_command_line_is_refused() -> None:
    with pytest.raises(OptionsError, match=r"-c waf=...: options are set in stages/dev.toml"):
        of_deployment("dev", {"waf": "true"}.get)


def test_a_tool_may_name_another_file(written: Path) -> None:
    written.write_text("console = false")
    assert not of_deployment("dev", {"options": str(written)}.get).console
    with pytest.raises(OptionsError, match="there is no such file"):
        of_deployment("dev", {"options": f"{written}x"}.get)


def test_files_of_stages_are_beside_the_example() -> None:
    assert options.file_of("dev") == EXAMPLE.with_name("dev.toml") and EXAMPLE.is_file()


TRACES = '[traces]\nendpoint = "https://otel.example.com/v1/traces"\n'


def test_a_collector_has_an_endpoint_and_perhaps_a_secret_and_a_ratio(written: Path) -> None:
    written.write_text(f'{TRACES}headers_secret = "punctual/collector"\nratio = 0.25\n')
    found = read(written).traces
    assert found is not None and (found.endpoint, found.ratio) == ("https://otel.example.com/v1/traces", 0.25)
    written.write_text('[traces]\nendpoint = "xray"\nratio = 1\n')
    assert read(written).traces == options.Traces(endpoint="xray")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[traces]\n", "endpoint is missing"),
        ('[traces]\nendpoint = "http://otel.example.com/v1/traces"\n', "must begin with https://"),
        ('[traces]\nendpoint = "https://ann:key@otel.example.com/v1/traces"\n', "headers_secret names a secret with keys"),
        ('[traces]\nendpoint = "https://otel.example.com/v1/traces?key=1"\n', "headers_secret names a secret with keys"),
        (f'{TRACES}headers_secret = "a b"\n', "is neither the name nor the ARN of a secret"),
        (f"{TRACES}ratio = 1.5\n", "ratio"),
        (f'{TRACES}token = "x"\n', "there is no option traces.token"),
        ('[traces]\nendpoint = "xray"\nheaders_secret = "a"\n', "headers_secret must be absent"),
        ("traces = true\n", "must be a table: begin it with [traces]"),
    ],
)
def test_a_wrong_collector_is_refused(written: Path, text: str, message: str) -> None:
    assert message in refusal(written, text)
