"""List prices in dollars, us-east-1, November 2026, without free tiers, from the services' pricing pages on aws.amazon.com.

DynamoDB: on demand, as since November 2024. SQS: a request with a message group costs a quarter more; all requests of the lanes are
counted with one, those of the work queue have none. SNS bills a batch by 64 KB; its deliveries to SQS are free. CloudWatch bills a
metric by the hours in which it is emitted, and up to three dashboards of 50 metrics each cost nothing. Lambda's reads of streams are free.
"""

MILLION = 1_000_000
WRITE_UNIT = 0.625 / MILLION
READ_UNIT = 0.125 / MILLION  # 4 KB, strongly consistent; eventually consistent half
WRITE_CAPACITY_HOUR = 0.00065  # a provisioned write unit a second
HTTP_API = 1.00 / MILLION
SNS_PUBLISH = 0.50 / MILLION
SQS_REQUEST = (0.40 + 0.10) / MILLION
SQS_PLAIN = 0.40 / MILLION  # without a message group: the work queue, and empty receives
SCHEDULE = 1.00 / MILLION  # an invocation by EventBridge Scheduler
INVOCATION = 0.20 / MILLION
GB_SECOND = 0.0000133334  # arm64
LOG_GB = 0.50
ALARM_MONTH = 0.10
METRIC_MONTH = 0.30
SECRET_MONTH = 0.40
TRACE = 5.00 / MILLION
