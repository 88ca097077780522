"""waf: a web ACL in front of the console and the API under its host name, for stages with the option `waf`."""

from aws_cdk import Stack, Token
from aws_cdk import aws_wafv2 as wafv2
from constructs import Construct

REGION = "us-east-1"  # CloudFront requires its ACLs here, so the stack must be here too
MOST_PER_ADDRESS = 2_000  # requests of one address within five minutes
MANAGED = (  # AWS's managed rules, in this order: known attackers first, because refusing them costs the least
    "AWSManagedRulesAmazonIpReputationList",
    "AWSManagedRulesKnownBadInputsRuleSet",
    "AWSManagedRulesCommonRuleSet",
)
COUNTED = ("SizeRestrictions_BODY",)  # a common rule that only counts matches: a batch of jobs is larger than its 8 KB


class Waf(Construct):
    """The ACL. Raises ValueError if the stack's region is known and CloudFront would not find the ACL there."""

    def __init__(self, scope: Construct, id: str, stage: str) -> None:
        super().__init__(scope, id)
        region = Stack.of(self).region
        if not Token.is_unresolved(region) and region != REGION:
            raise ValueError(f"waf=true needs the stack in {REGION}, where CloudFront looks for web ACLs; it is in {region}")
        rules = [self._managed(name, place) for place, name in enumerate(MANAGED)]
        self.acl = wafv2.CfnWebACL(
            self,
            "Acl",
            scope="CLOUDFRONT",
            default_action=wafv2.CfnWebACL.DefaultActionProperty(allow={}),
            description=f"Punctual, {stage}",
            visibility_config=_visible("acl"),
            rules=[*rules, self._rate(len(rules))],
        )

    @property
    def arn(self) -> str:
        return self.acl.attr_arn

    def _managed(self, name: str, place: int) -> wafv2.CfnWebACL.RuleProperty:
        counted = [
            wafv2.CfnWebACL.RuleActionOverrideProperty(name=each, action_to_use=wafv2.CfnWebACL.RuleActionProperty(count={}))
            for each in COUNTED
            if name.endswith("CommonRuleSet")
        ]
        group = wafv2.CfnWebACL.ManagedRuleGroupStatementProperty(vendor_name="AWS", name=name, rule_action_overrides=counted or None)
        return wafv2.CfnWebACL.RuleProperty(
            name=name,
            priority=place,
            statement=wafv2.CfnWebACL.StatementProperty(managed_rule_group_statement=group),
            override_action=wafv2.CfnWebACL.OverrideActionProperty(none={}),
            visibility_config=_visible(name),
        )

    def _rate(self, place: int) -> wafv2.CfnWebACL.RuleProperty:
        limit = wafv2.CfnWebACL.RateBasedStatementProperty(limit=MOST_PER_ADDRESS, aggregate_key_type="IP")
        return wafv2.CfnWebACL.RuleProperty(
            name="rate",
            priority=place,
            statement=wafv2.CfnWebACL.StatementProperty(rate_based_statement=limit),
            action=wafv2.CfnWebACL.RuleActionProperty(block={}),
            visibility_config=_visible("rate"),
        )


def _visible(name: str) -> wafv2.CfnWebACL.VisibilityConfigProperty:
    return wafv2.CfnWebACL.VisibilityConfigProperty(cloud_watch_metrics_enabled=True, metric_name=name, sampled_requests_enabled=True)
