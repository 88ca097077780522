import json
from typing import Any

import pytest
from aws_cdk import App, Environment, Stack

from infra.console import CSP
from infra.waf import MANAGED, REGION, Waf
from tests.infra.conftest import Synthesized, allowed, name_of, synthesized


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
    assert "FunctionAssociations" not in api, "otherwise an unknown path of the API would return a page"


def test_on_aws_everything_is_https(on_aws: Synthesized) -> None:
    behaviours = [distribution(on_aws)["DefaultCacheBehavior"], *distribution(on_aws)["CacheBehaviors"]]
    assert {each["ViewerProtocolPolicy"] for each in behaviours} == {"redirect-to-https"}
    api = origin(on_aws, behaviour(on_aws, "/api/*")["TargetOriginId"])
    assert api["CustomOriginConfig"]["OriginProtocolPolicy"] == "https-only"
    assert "ApiHttp" in json.dumps(api["DomainName"])


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


def test_there_is_no_web_acl_by_default(any_stage: Synthesized) -> None:
    assert "WebACLId" not in distribution(any_stage) and not any_stage.all("WAFv2::WebACL")


@pytest.mark.long
def test_an_enabled_web_acl_protects_console_and_api_and_allows_batches() -> None:
    stage = synthesized("prod", waf="true")
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
