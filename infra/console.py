"""console: the web console in a private bucket behind CloudFront, with the API under the same host name: no CORS, one CSP.

It is a stack of its own: an account that may not use CloudFront yet can deploy the scheduler alone. CloudFront's names belong to the
whole account, so they contain the region. `ops/publish.py` uploads the files with their cache headers, to AWS and to the local AWS.
"""

import aws_cdk as cdk
from aws_cdk import Acknowledgment, Aws, Duration, Fn, Stack, Validations
from aws_cdk import aws_cloudfront as cloudfront
from aws_cdk import aws_cloudfront_origins as origins
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from infra.settings import Settings
from infra.waf import Waf
from lambdas._settings import ORIGIN_HEADER, VIEWER_HEADER


def csp(*, scripts: str, styles: str) -> str:
    """A content security policy: files of this host, and nothing of another one."""
    rules = {
        "default-src": "'none'",
        "script-src": scripts,
        "style-src": styles,
        "img-src": "'self' data:",
        "font-src": "'self' data:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
    }
    return "; ".join(f"{kind} {sources}" for kind, sources in rules.items())


# Redoc, which shows the API reference, adds an empty style element and then sets its rules by script. This is the hash of an empty text.
EMPTY = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
CSP = csp(scripts="'self'", styles=f"'self' {EMPTY}")

# The theme of the documentation has scripts and styles in its pages. Every script here can read the session: none of another host runs.
DOCS_CSP = csp(scripts="'self' 'unsafe-inline'", styles="'self' 'unsafe-inline'")

# Every page has its own address, but all pages of the console are one file; each page of the documentation is a file in a folder.
# Its links are relative, so the address of a folder ends with a slash. A custom error response would also replace the API's 404.
TO_INDEX = """\
function handler(event) {
    var request = event.request, uri = request.uri;
    if (uri.split('/').pop().indexOf('.') >= 0) return request;
    var docs = uri === '/docs' || uri.indexOf('/docs/') === 0;
    if (docs && !uri.endsWith('/')) {
        return { statusCode: 301, statusDescription: 'Moved Permanently', headers: { location: { value: uri + '/' } } };
    }
    request.uri = docs ? uri + 'index.html' : '/index.html';
    return request;
}
"""

# The API sees an edge of CloudFront as its client. A header of that name that the viewer sent is replaced.
# https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/example-function-add-true-client-ip-header.html
TELL_VIEWER = f"""\
function handler(event) {{
    event.request.headers['{VIEWER_HEADER}'] = {{ value: event.viewer.ip }};
    return event.request;
}}
"""


class ConsoleStack(cdk.Stack):
    """The console of one stage, and the parameter with its URL, from which notify makes links."""

    def __init__(self, scope: Construct, settings: Settings) -> None:
        super().__init__(scope, settings.console_stack, termination_protection=settings.protected)
        # By a parameter, not an output: each deployment reads it again, also if only the stage's stack was deleted and made again.
        api_id = ssm.StringParameter.value_for_string_parameter(self, settings.api_id)
        self.console = Console(self, "Console", settings, api_id)
        ssm.StringParameter(self, "Address", parameter_name=settings.console_address, string_value=self.console.address(settings))
        cdk.CfnOutput(self, "ConsoleUrl", value=self.console.url)
        cdk.CfnOutput(self, "ConsoleBucket", value=self.console.bucket.bucket_name)


class Console(Construct):
    """The bucket and the distribution in front of it."""

    def __init__(self, scope: Construct, id: str, settings: Settings, api_id: str) -> None:
        super().__init__(scope, id)
        self.bucket = s3.Bucket(
            self,
            "Files",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=settings.tls_only,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            removal_policy=settings.removal_policy,
        )
        access = cloudfront.S3OriginAccessControl(self, "Access", origin_access_control_name=_global(self))
        files = origins.S3BucketOrigin.with_origin_access_control(self.bucket, origin_access_control=access)
        protocol = cloudfront.ViewerProtocolPolicy.REDIRECT_TO_HTTPS if settings.tls_only else cloudfront.ViewerProtocolPolicy.ALLOW_ALL
        headers = self._headers("Headers", CSP)
        to_index = self._on_request("ToIndex", TO_INDEX, "every page is a file")
        self.distribution = cloudfront.Distribution(
            self,
            "Distribution",
            comment=f"Punctual console, {settings.stage}",
            web_acl_id=Waf(self, "Waf", settings.stage).arn if settings.waf else None,
            default_root_object="index.html",
            minimum_protocol_version=cloudfront.SecurityPolicyProtocol.TLS_V1_2_2021,
            price_class=cloudfront.PriceClass.PRICE_CLASS_100,
            default_behavior=cloudfront.BehaviorOptions(
                origin=files,
                viewer_protocol_policy=protocol,
                response_headers_policy=headers,
                function_associations=to_index,
            ),
            additional_behaviors={
                "/assets/*": cloudfront.BehaviorOptions(origin=files, viewer_protocol_policy=protocol, response_headers_policy=headers),
                "/docs/*": cloudfront.BehaviorOptions(
                    origin=files,
                    viewer_protocol_policy=protocol,
                    response_headers_policy=self._headers("DocsHeaders", DOCS_CSP, "docs"),
                    function_associations=to_index,
                ),
                "/api/*": cloudfront.BehaviorOptions(
                    origin=self._api(settings, api_id),
                    function_associations=self._on_request("TellViewer", TELL_VIEWER, "the viewer's address, for the API"),
                    viewer_protocol_policy=protocol,
                    allowed_methods=cloudfront.AllowedMethods.ALLOW_ALL,
                    cache_policy=cloudfront.CachePolicy.CACHING_DISABLED,
                    origin_request_policy=cloudfront.OriginRequestPolicy.ALL_VIEWER_EXCEPT_HOST_HEADER,
                    response_headers_policy=cloudfront.ResponseHeadersPolicy.SECURITY_HEADERS,  # Swagger's page needs its own scripts
                ),
            },
        )
        self._acknowledge()

    @property
    def url(self) -> str:
        return f"https://{self.distribution.distribution_domain_name}"

    def address(self, settings: Settings) -> str:
        """The URL for the links of notices. A local AWS serves the console under another name, and at a port that only its run knows."""
        if settings.api_at_endpoint:
            distribution = Fn.select(0, Fn.split(".", self.distribution.distribution_domain_name))
            return f"http://{distribution}.cloudfront.localhost:{{port}}"
        return self.url

    def _on_request(self, id: str, code: str, comment: str) -> list[cloudfront.FunctionAssociation]:
        function = cloudfront.Function(
            self,
            id,
            function_name=_global(self, id),
            code=cloudfront.FunctionCode.from_inline(code),
            runtime=cloudfront.FunctionRuntime.JS_2_0,
            comment=comment,
        )
        return [cloudfront.FunctionAssociation(function=function, event_type=cloudfront.FunctionEventType.VIEWER_REQUEST)]

    def _api(self, settings: Settings, api_id: str) -> cloudfront.IOrigin:
        known_by = {ORIGIN_HEADER: settings.origin_secret} if settings.origin_secret_version else {}
        if settings.api_at_endpoint:
            return origins.HttpOrigin(
                "localhost",
                origin_path=f"/_aws/execute-api/{api_id}/$default",
                http_port=settings.endpoint_port,
                protocol_policy=cloudfront.OriginProtocolPolicy.HTTP_ONLY,
                custom_headers=known_by,
            )
        host = f"{api_id}.execute-api.{Aws.REGION}.{Aws.URL_SUFFIX}"
        return origins.HttpOrigin(host, protocol_policy=cloudfront.OriginProtocolPolicy.HTTPS_ONLY, custom_headers=known_by)

    def _headers(self, id: str, policy: str, purpose: str = "") -> cloudfront.ResponseHeadersPolicy:
        return cloudfront.ResponseHeadersPolicy(
            self,
            id,
            response_headers_policy_name=_global(self, purpose),
            security_headers_behavior=cloudfront.ResponseSecurityHeadersBehavior(
                content_security_policy=cloudfront.ResponseHeadersContentSecurityPolicy(content_security_policy=policy, override=True),
                content_type_options=cloudfront.ResponseHeadersContentTypeOptions(override=True),
                frame_options=cloudfront.ResponseHeadersFrameOptions(frame_option=cloudfront.HeadersFrameOption.DENY, override=True),
                referrer_policy=cloudfront.ResponseHeadersReferrerPolicy(
                    referrer_policy=cloudfront.HeadersReferrerPolicy.NO_REFERRER, override=True
                ),
                strict_transport_security=cloudfront.ResponseHeadersStrictTransportSecurity(
                    access_control_max_age=Duration.days(365), include_subdomains=True, override=True
                ),
            ),
        )

    def _acknowledge(self) -> None:
        Validations.of(self.bucket).acknowledge(
            Acknowledgment(id="AwsSolutions-S1", reason="it holds only the console's public files: no secrets and no data of users")
        )
        Validations.of(self.distribution).acknowledge(
            Acknowledgment(id="AwsSolutions-CFR1", reason="users sign in from anywhere"),
            Acknowledgment(id="AwsSolutions-CFR2", reason="static files, and an API with its own throttling and authorization"),
            Acknowledgment(id="AwsSolutions-CFR3", reason="the API logs its requests; requests for static files are not of interest"),
            Acknowledgment(id="AwsSolutions-CFR4", reason="CloudFront's default domain allows no newer one; a custom domain would"),
        )


def _global(scope: Construct, purpose: str = "") -> str:
    """A name that no other region of the account has: CloudFront's names belong to the account. At most 64 characters."""
    return "-".join(filter(None, [Stack.of(scope).stack_name, purpose, Aws.REGION]))
