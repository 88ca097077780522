"""The actions of AWS that no `aws` job may call, whatever the option `allowed_actions` lists: IAM denies them to the executors, too.

An output is stored, shown and sent on, so no action whose answer holds a secret or gives access is allowed. The list has the operations
that botocore's models mark with sensitive credentials, tokens and keys, and these lists:
https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
https://github.com/salesforce/cloudsplaining/blob/master/cloudsplaining/shared/constants.py (ACTIONS_THAT_RETURN_CREDENTIALS)
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

DENIED: Mapping[str, Sequence[str]] = {  # patterns of IAM's actions, by the reason
    "identities and their rights": ("iam:*", "sts:*"),
    "stored secrets": (
        "secretsmanager:GetSecretValue",
        "secretsmanager:BatchGetSecretValue",
        "ssm:GetParameter*",  # a SecureString is decrypted upon request
    ),
    "keys": (
        "acm:ExportCertificate",
        "ec2:CreateKeyPair",
        "iot:CreateKeysAndCertificate",
        "iot:CreateProvisioningClaim",
        "iotmanagedintegrations:CreateProvisioningProfile",
        "iotwireless:*PartnerAccount*",
        "kms:Decrypt",
        "kms:DeriveSharedSecret",
        "kms:GenerateDataKey*",  # pairs, too
        "payment-cryptography:ExportKey",
        "payment-cryptography:DecryptData",
        "pcs:RegisterComputeNodeGroupInstance",
    ),
    "passwords": (
        "amplify:*App",
        "amplify:*Branch",
        "appstream:*DirectoryConfig*",
        "datasync:DescribeLocationFsx*",
        "ec2:*VerifiedAccessTrustProvider*",
        "ec2:ExportVerifiedAccess*",
        "ec2:GetPasswordData",
        "lex:*BotRecommendation",
        "lightsail:CreateBucketAccessKey",
        "lightsail:CreateKeyPair",
        "lightsail:DownloadDefaultKeyPair",
        "lightsail:GetInstanceAccessDetails",
        "lightsail:GetRelationalDatabaseMasterUserPassword",
        "pca-connector-scep:*Challenge*",
        "redshift:GetClusterCredentials*",
        "redshift-serverless:GetCredentials",
        "route53domains:TransferDomainToAnotherAwsAccount",
        "wickr:*Oidc*",
        "wickr:*Opentdf*",
    ),
    "tokens and temporary credentials": (
        "aidevops:*Associat*",
        "airflow:Create*Token",
        "amplifyuibuilder:*Token",
        "appsync:*ApiKey*",
        "bedrock-agentcore:GetResource*",
        "bedrock-agentcore:GetWorkloadAccessToken*",
        "cloudwatch:GetSpaceCredentialsForOrganization",
        "codeartifact:GetAuthorizationToken",
        "codepipeline:Get*JobDetails",
        "codepipeline:PollFor*Jobs",
        "cognito-identity:GetCredentialsForIdentity",
        "cognito-identity:GetOpenIdToken*",
        "cognito-idp:*AuthChallenge",
        "cognito-idp:*InitiateAuth",
        "cognito-idp:*UserPoolClient*",
        "cognito-idp:AssociateSoftwareToken",
        "cognito-idp:Get*Token*",
        "connect:GetFederationToken*",
        "datazone:*Connection",
        "datazone:GetEnvironmentCredentials",
        "deadline:Assume*",
        "dsql:DbConnect*",
        "ecr:GetAuthorizationToken",
        "ecr-public:GetAuthorizationToken",
        "ecs:ExecuteCommand",  # the token of a shell
        "eks-auth:*",
        "elasticmapreduce:GetClusterSessionCredentials",
        "elasticmapreduce:GetSessionEndpoint",
        "emr-containers:GetManagedEndpointSessionCredentials",
        "emr-serverless:GetSessionEndpoint",
        "finspace-api:*Access*",
        "gamelift:CreateBuild",
        "gamelift:GetCompute*",
        "gamelift:GetInstanceAccess",
        "gamelift:RequestUploadCredentials",
        "glue:GetSessionEndpoint",
        "grafana:CreateWorkspace*Key",
        "grafana:CreateWorkspace*Token",
        "health-agent:GetPatientInsightsJob",
        "iot:OpenTunnel",
        "iot:RotateTunnelAccessToken",
        "lakeformation:GetTemporary*",
        "rds-db:*",  # `rds generate-db-auth-token` needs no other right
        "s3:GetDataAccess",
        "s3express:CreateSession",
        "sagemaker:CreatePresigned*",
        "signin:*",
        "ssm:GetAccessToken",
        "ssm:ResumeSession",
        "ssm:StartSession",  # the token of a shell
        "sso-oauth:*",
    ),
    "signed addresses of code": ("lambda:GetFunction", "lambda:GetLayerVersion*"),
}
# Operations, by boto3's names, that IAM has under another name, or that take a token instead of a right.
OPERATIONS = (
    "codecatalyst:CreateAccessToken",
    "finspace-data:ResetUserPassword",
    "iotsecuretunneling:*Tunnel*",
    "s3:CreateSession",
    "sso:GetRoleCredentials",
    "sso-oidc:*",
)
PATTERNS = tuple(pattern for patterns in DENIED.values() for pattern in patterns)


def reason(action: str) -> str | None:
    """The reason why no job may call an action, as `service:Action` in IAM's or boto3's names; None: it is not denied."""
    for found, patterns in (*DENIED.items(), ("credentials", OPERATIONS)):
        if any(fnmatchcase(action.lower(), pattern.lower()) for pattern in patterns):
            return found
    return None
