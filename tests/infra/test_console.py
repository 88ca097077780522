import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from aws_cdk import App, Environment, Stack

from infra.console import CSP, DOCS_CSP, TO_INDEX
from infra.settings import settings_for
from infra.waf import MANAGED, REGION, Waf
from lambdas._settings import ORIGIN_HEADER, VIEWER_HEADER
from tests.infra import conftest
from tests.infra.conftest import Synthesized, allowed, name_of


def synthesized(stage: str, **options: Any) -> Synthesized:
    """The stack of the stage's console."""
    made = conftest.synthesized(stage, **options).console
    assert made is not None
    return made


@pytest.fixture
def any_stage(any_stage: Synthesized) -> Synthesized:
    return synthesized(any_stage.settings.stage)


@pytest.fixture
def on_aws(on_aws: Synthesized) -> Synthesized:
    return synthesized(on_aws.settings.stage)


@pytest.fixture
def local() -> Synthesized:
    return synthesized("local")


def distribution(stage: Synthesized) -> Any:
    return stage.one("CloudFront::Distribution", "ConsoleDistribution")["DistributionConfig"]


def behaviour(stage: Synthesized, pattern: str) -> Any:
    return next(each for each in distribution(stage)["CacheBehaviors"] if each["PathPattern"] == pattern)


def origin(stage: Synthesized, target: str) -> Any:
    return next(each for each in distribution(stage)["Origins"] if each["Id"] == target)


def test_only_the_distribution_reads_the_bucket(any_stage: Synthesized) -> None:
    bucket = any_stage.one("S3::Bucket", "ConsoleFiles")
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    policies = [each for each in any_stage.all("S3::BucketPolicy").values() if name_of(each["Bucket"]) == "ConsoleFiles"]
    (policy,) = policies
    assert list(allowed(policy["PolicyDocument"])) == [("s3:GetObject", "ConsoleFiles/*")]
    reader = next(each for each in policy["PolicyDocument"]["Statement"] if each["Effect"] == "Allow")
    assert reader["Principal"] == {"Service": "cloudfront.amazonaws.com"}
    assert "ConsoleDistribution" in json.dumps(reader["Condition"]["StringEquals"]["AWS:SourceArn"])


def test_the_content_security_policy_allows_only_own_files(any_stage: Synthesized) -> None:
    headers = any_stage.one("CloudFront::ResponseHeadersPolicy", "ConsoleHeaders")["ResponseHeadersPolicyConfig"]["SecurityHeadersConfig"]
    sent = headers["ContentSecurityPolicy"]
    assert sent == {"ContentSecurityPolicy": CSP, "Override": True}
    assert "default-src 'none'" in CSP
    assert "script-src 'self'" in CSP
    assert "unsafe" not in CSP
    assert headers["FrameOptions"]["FrameOption"] == "DENY"
    id = any_stage.id("CloudFront::ResponseHeadersPolicy", "ConsoleHeaders")
    for each in (distribution(any_stage)["DefaultCacheBehavior"], behaviour(any_stage, "/assets/*")):
        assert each["ResponseHeadersPolicyId"] == {"Ref": id}


def test_the_distribution_forwards_api_requests_uncached_and_complete(any_stage: Synthesized) -> None:
    api = behaviour(any_stage, "/api/*")
    assert sorted(api["AllowedMethods"]) == ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"]
    assert api["CachePolicyId"] == "4135ea2d-6df8-44a3-9df3-4b5a84be39ad", "CachingDisabled, by its id on AWS"
    assert api["OriginRequestPolicyId"] == "b689b0a8-53d0-40ab-baf2-68738e2966ac", "AllViewerExceptHostHeader"
    (associated,) = api["FunctionAssociations"]
    assert "ConsoleTellViewer" in json.dumps(associated), "the function of pages would answer an unknown path of the API with a page"


def test_on_aws_everything_is_https(on_aws: Synthesized) -> None:
    behaviours = [distribution(on_aws)["DefaultCacheBehavior"], *distribution(on_aws)["CacheBehaviors"]]
    assert {each["ViewerProtocolPolicy"] for each in behaviours} == {"redirect-to-https"}
    api = origin(on_aws, behaviour(on_aws, "/api/*")["TargetOriginId"])
    assert api["CustomOriginConfig"]["OriginProtocolPolicy"] == "https-only"
    id = api["DomainName"]["Fn::Join"][1][0]
    suffix = {"Ref": "AWS::URLSuffix"}
    assert api["DomainName"] == {"Fn::Join": ["", [id, ".execute-api.", {"Ref": "AWS::Region"}, ".", suffix]]}


def test_a_deployment_of_the_console_reads_the_apis_id_again(any_stage: Synthesized) -> None:
    """CloudFormation reads the parameter at each deployment: the API of a stage that was deleted and made again has another id."""
    parameters = any_stage.template["Parameters"]
    (id,) = [name for name, each in parameters.items() if each.get("Default") == any_stage.settings.api_id]
    assert parameters[id]["Type"] == "AWS::SSM::Parameter::Value<String>"
    assert json.dumps({"Ref": id}) in json.dumps(origin(any_stage, behaviour(any_stage, "/api/*")["TargetOriginId"]))
    assert "Fn::GetStackOutput" not in json.dumps(any_stage.template), "CloudFormation follows no weak reference by itself"
    stage = conftest.synthesized(any_stage.settings.stage)
    (told,) = [each for each in stage.all("SSM::Parameter").values() if each["Name"] == stage.settings.api_id]
    assert told["Value"] == {"Ref": stage.id("ApiGatewayV2::Api", "ApiHttp")}


def test_locally_the_api_is_reached_at_the_port_of_the_local_aws(local: Synthesized) -> None:
    api = origin(local, behaviour(local, "/api/*")["TargetOriginId"])
    assert api["DomainName"] == "localhost"
    assert api["CustomOriginConfig"]["HTTPPort"] == local.settings.endpoint_port


def test_every_page_is_index_html_and_files_keep_their_paths(any_stage: Synthesized) -> None:
    assert distribution(any_stage)["DefaultRootObject"] == "index.html"
    (associated,) = distribution(any_stage)["DefaultCacheBehavior"]["FunctionAssociations"]
    assert associated["EventType"] == "viewer-request"
    assert "CustomErrorResponses" not in distribution(any_stage), "error responses would also replace the API's errors by pages"
    assert "FunctionAssociations" not in behaviour(any_stage, "/assets/*")


def test_the_documentation_loads_nothing_from_another_host(any_stage: Synthesized) -> None:
    docs = behaviour(any_stage, "/docs/*")
    assert docs["FunctionAssociations"] == distribution(any_stage)["DefaultCacheBehavior"]["FunctionAssociations"]
    assert docs["ResponseHeadersPolicyId"] == {"Ref": any_stage.id("CloudFront::ResponseHeadersPolicy", "ConsoleDocsHeaders")}
    headers = any_stage.one("CloudFront::ResponseHeadersPolicy", "ConsoleDocsHeaders")["ResponseHeadersPolicyConfig"][
        "SecurityHeadersConfig"
    ]
    assert headers["ContentSecurityPolicy"] == {"ContentSecurityPolicy": DOCS_CSP, "Override": True}
    assert "http" not in DOCS_CSP and "*" not in DOCS_CSP, "a script of another host could read the session of the console"


@pytest.mark.parametrize(
    ("path", "file"),
    [
        ("/", "/index.html"),
        ("/tasks/01ARZ3NDEKTSV4RRFFQ69G5FAV", "/index.html"),
        ("/docsomething", "/index.html"),
        ("/docs/", "/docs/index.html"),
        ("/docs/reference/errors/", "/docs/reference/errors/index.html"),
        ("/docs/assets/site.css", "/docs/assets/site.css"),
        ("/clock.svg", "/clock.svg"),
    ],
)
def test_a_path_leads_to_its_file(path: str, file: str) -> None:
    assert handled(path) == {"uri": file}


@pytest.mark.parametrize("path", ["/docs", "/docs/reference/errors"])
def test_the_address_of_a_page_of_the_documentation_gets_its_slash(path: str) -> None:
    answer = handled(path)
    assert (answer["statusCode"], answer["headers"]) == (301, {"location": {"value": f"{path}/"}})


def handled(path: str) -> dict[str, Any]:
    program = f"{TO_INDEX}\nconsole.log(JSON.stringify(handler({{request: {{uri: {json.dumps(path)}}}}})))"
    found: dict[str, Any] = json.loads(subprocess.run(["node", "-e", program], capture_output=True, check=True).stdout)
    return found


def test_there_is_no_web_acl_by_default(any_stage: Synthesized) -> None:
    assert "WebACLId" not in distribution(any_stage) and not any_stage.all("WAFv2::WebACL")


@pytest.mark.long
def test_an_enabled_web_acl_protects_console_and_api_and_allows_batches() -> None:
    stage = synthesized("prod", waf=True)
    (acl,) = stage.all("WAFv2::WebACL").values()
    assert acl["Scope"] == "CLOUDFRONT" and acl["DefaultAction"] == {"Allow": {}}
    assert name_of(distribution(stage)["WebACLId"]) == "ConsoleWafAcl"
    groups = [rule["Statement"]["ManagedRuleGroupStatement"] for rule in acl["Rules"] if "ManagedRuleGroupStatement" in rule["Statement"]]
    assert tuple(group["Name"] for group in groups) == MANAGED
    assert [each["Name"] for each in groups[-1]["RuleActionOverrides"]] == ["SizeRestrictions_BODY"]
    (rate,) = [rule for rule in acl["Rules"] if "RateBasedStatement" in rule["Statement"]]
    assert rate["Action"] == {"Block": {}}


def test_a_web_acl_in_a_region_without_cloudfront_acls_is_refused() -> None:
    stack = Stack(App(), "elsewhere", env=Environment(region="eu-central-1"))
    with pytest.raises(ValueError, match=f"needs the stack in {REGION}"):
        Waf(stack, "Waf", "dev")


def test_only_the_api_gets_the_origin_secret_and_the_viewers_address(any_stage: Synthesized) -> None:
    target = behaviour(any_stage, "/api/*")["TargetOriginId"]
    (sent,) = origin(any_stage, target)["OriginCustomHeaders"]
    assert sent["HeaderName"] == ORIGIN_HEADER
    assert sent["HeaderValue"] == f"{{{{resolve:ssm:/punctual/{any_stage.settings.stage}/cloudfront-secret:1}}}}"
    others = [each for each in distribution(any_stage)["Origins"] if each["Id"] != target]
    assert others and not [each for each in others if "OriginCustomHeaders" in each]
    code = any_stage.one("CloudFront::Function", "ConsoleTellViewer")["FunctionCode"]
    assert f"event.request.headers['{VIEWER_HEADER}'] = {{ value: event.viewer.ip }};" in code


def test_the_stack_passes_its_url_to_the_functions_created_before_it(any_stage: Synthesized) -> None:
    (parameter,) = any_stage.all("SSM::Parameter").values()
    assert parameter["Name"] == any_stage.settings.console_address
    assert "ConsoleDistribution" in json.dumps(parameter["Value"])
    assert (".cloudfront.localhost:{port}" in json.dumps(parameter["Value"])) is any_stage.settings.api_at_endpoint
    assert set(any_stage.template["Outputs"]) == {"ConsoleUrl", "ConsoleBucket"}


# The services whose names belong to an account, not to a region of it.
GLOBAL = ("AWS::CloudFront::", "AWS::IAM::", "AWS::S3::Bucket", "AWS::WAFv2::", "AWS::Route53::")


def names_in(stage: Synthesized, region: str) -> set[str]:
    """The names that the templates of a stage give to resources of global services, as CloudFormation fills them in."""
    found = set()
    for id, resource in stage.template["Resources"].items():
        if resource["Type"].startswith(GLOBAL):
            text = json.dumps(resource["Properties"]).replace('{"Ref": "AWS::Region"}', json.dumps(region))
            named = [value for key, value in _pairs(json.loads(text)) if key in ("Name", f"{resource['Type'].rpartition('::')[2]}Name")]
            found |= {f"{id}: {json.dumps(name)}" for name in named}
    return found


def _pairs(value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The properties of a resource and those in its one configuration: rules and statements further down have names of their own."""
    if isinstance(value, dict) and depth < 2:
        for key, each in value.items():
            yield key, each
            yield from _pairs(each, depth + 1)


@pytest.mark.parametrize("stage", [conftest.DEV, "prod"])
def test_two_regions_of_an_account_share_no_global_name(stage: str) -> None:
    for stack in (conftest.synthesized(stage), synthesized(stage)):
        here, there = names_in(stack, "us-east-1"), names_in(stack, "eu-central-1")
        assert here & there == set()
    assert len(here) == 5, "two policies of headers, access control, two functions"


def test_global_names_fit_in_the_longest_region() -> None:
    for name in names_in(synthesized("prod"), "ap-southeast-1"):
        parts = json.loads(name.partition(": ")[2])
        assert len("".join(parts["Fn::Join"][1])) <= 64


@pytest.mark.long
def test_without_a_console_the_api_has_no_origin_secret() -> None:
    variable = "PUNCTUAL_ORIGIN_SECRET"
    without, with_one = conftest.synthesized("dev", console=False), conftest.synthesized("dev")
    assert variable not in without.functions()["Api"]["Environment"]["Variables"]
    assert "cloudfront-secret" not in json.dumps(without.template), "CloudFormation would look for it"
    assert with_one.functions()["Api"]["Environment"]["Variables"][variable] == with_one.settings.origin_secret
    assert [name for name, each in with_one.functions().items() if variable in each["Environment"]["Variables"]] == ["Api"]


def test_after_a_rotation_the_api_accepts_two_secrets() -> None:
    first, third = (settings_for("dev", origin_secret_version=version) for version in (1, 3))
    assert first.origin_secrets == first.origin_secret
    assert third.origin_secrets == "{{resolve:ssm:/punctual/dev/cloudfront-secret:2}} {{resolve:ssm:/punctual/dev/cloudfront-secret:3}}"
    assert third.origin_secret == "{{resolve:ssm:/punctual/dev/cloudfront-secret:3}}"


@pytest.mark.long
def test_the_stack_keeps_the_options_that_it_was_deployed_with(prod: Synthesized) -> None:
    for stack, chosen in ((prod, {}), (conftest.synthesized("prod", waf=True), {"waf": True})):
        (kept,) = [each for each in stack.all("SSM::Parameter").values() if each["Name"] == "/punctual/prod/options"]
        assert json.loads(kept["Value"]) == chosen
