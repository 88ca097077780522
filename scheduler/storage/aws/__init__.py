"""The ports on AWS: DynamoDB, SQS, SNS, Lambda and Cognito. The only package that imports botocore.

Every adapter takes a ready client (`clients`) and translates what botocore raises (`errors`); every key, index and
condition is named in `keys`.
"""
