"""List prices in dollars, us-east-1, November 2026, without free tiers, from the services' pricing pages on aws.amazon.com.

DynamoDB: on demand, as since November 2024. SQS: a request with a message group costs a quarter more; all requests are counted
with one. SNS bills a batch by 64 KB; its deliveries to SQS are free.
"""

MILLION = 1_000_000
WRITE_UNIT = 0.625 / MILLION
READ_UNIT = 0.125 / MILLION  # 4 KB, strongly consistent; eventually consistent half
HTTP_API = 1.00 / MILLION
SNS_PUBLISH = 0.50 / MILLION
SQS_REQUEST = (0.40 + 0.10) / MILLION
INVOCATION = 0.20 / MILLION
GB_SECOND = 0.0000133334  # arm64
LOG_GB = 0.50
STORED_GB_MONTH = 0.25
SQS_POLL = 0.40 / MILLION  # an empty receive has no message group
ALARM_MONTH = 0.10
METRIC_MONTH = 0.30
SECRET_MONTH = 0.40
