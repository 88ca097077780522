"""console: the web console in a private bucket behind CloudFront, with the API under the same host name: no CORS, one CSP.

`local/publish.py` uploads the files with their cache headers, to AWS and to the local AWS.
"""

from aws_cdk import Acknowledgment, Duration, Fn, Stack, Validations
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_cloudfront as cloudfront
from aws_cdk import aws_cloudfront_origins as origins
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.settings import Settings
from infra.waf import Waf

CSP = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)

# Every page has its own address, but all pages are one file. A custom error response would also replace the API's 404.
TO_INDEX = """\
function handler(event) {
    var request = event.request;
    if (request.uri.split('/').pop().indexOf('.') < 0) request.uri = '/index.html';
    return request;
}
"""


class Console(Construct):
    """The bucket and the distribution in front of it."""

    def __init__(self, scope: Construct, id: str, settings: Settings, http: apigateway.HttpApi) -> None:
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
        files = origins.S3BucketOrigin.with_origin_access_control(self.bucket)
        protocol = cloudfront.ViewerProtocolPolicy.REDIRECT_TO_HTTPS if settings.tls_only else cloudfront.ViewerProtocolPolicy.ALLOW_ALL
        headers = self._headers()
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
                function_associations=[
                    cloudfront.FunctionAssociation(
                        function=cloudfront.Function(
                            self,
                            "ToIndex",
                            code=cloudfront.FunctionCode.from_inline(TO_INDEX),
                            runtime=cloudfront.FunctionRuntime.JS_2_0,
                            comment="every page is index.html",
                        ),
                        event_type=cloudfront.FunctionEventType.VIEWER_REQUEST,
                    )
                ],
            ),
            additional_behaviors={
                "/assets/*": cloudfront.BehaviorOptions(origin=files, viewer_protocol_policy=protocol, response_headers_policy=headers),
                "/api/*": cloudfront.BehaviorOptions(
                    origin=self._api(settings, http),
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

    def _api(self, settings: Settings, http: apigateway.HttpApi) -> cloudfront.IOrigin:
        if settings.api_at_endpoint:
            return origins.HttpOrigin(
                "localhost",
                origin_path=f"/_aws/execute-api/{http.api_id}/$default",
                http_port=settings.endpoint_port,
                protocol_policy=cloudfront.OriginProtocolPolicy.HTTP_ONLY,
            )
        host = Fn.select(2, Fn.split("/", http.api_endpoint))
        return origins.HttpOrigin(host, protocol_policy=cloudfront.OriginProtocolPolicy.HTTPS_ONLY)

    def _headers(self) -> cloudfront.ResponseHeadersPolicy:
        return cloudfront.ResponseHeadersPolicy(
            self,
            "Headers",
            response_headers_policy_name=f"{Stack.of(self).stack_name}-console",  # a generated name would be too long for MiniStack and AWS
            security_headers_behavior=cloudfront.ResponseSecurityHeadersBehavior(
                content_security_policy=cloudfront.ResponseHeadersContentSecurityPolicy(content_security_policy=CSP, override=True),
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
