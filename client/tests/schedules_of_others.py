"""Expressions that nobody wrote for this importer."""

# The examples of https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-scheduled-rule-pattern.html and of the page schedule-types
# of EventBridge Scheduler, and the fields and wildcards that these pages describe.
DOCUMENTED = (
    *("0 10 * * ? *", "15 12 * * ? *", "0 18 ? * MON-FRI *", "0 8 1 * ? *", "0/15 * * * ? *", "0/10 * ? * MON-FRI *"),
    *("0/5 8-17 ? * MON-FRI *", "0/30 20-2 ? * MON-FRI *", "15 10 ? * 6L 2022-2030", "15 10 ? * 6L 2026-2028", "0 9 ? * 2#1 *"),
    *("1/10 * * * ? *", "0 0 1-15 * ? *", "0 0 1 JAN,FEB,MAR ? *", "0 0 L * ? *", "0 0 ? * L *", "0 0 ? * 3#2 *", "0 12 ? * SUN,WED *"),
    *("0 0 7 * ? *", "30 6 ? * THUL *", "0 0 ? * 1#5 *", "0 9 ? * TUE#1 2027", "0 9 1 1 ? 2027-2199", "0 9 L FEB ? *"),
)
# Forms of the list that LocalStack holds against AWS, and variants: ranges over the end of a field, ranges of one, steps of one.
VALIDATED = (
    *("0 8 ? * * *", "0-59/10 0-23/2 ? * * *", "0-15/1 8-8 ? * MON-FRI *", "*/5 * ? * * *", "* * ? * * *", "* * * * ? *"),
    *("0 9 ? * 2/2 *", "0 9 ? * MON-FRI/2 *", "0 9 ? * */2 *", "0 9 ? * 1/1 *", "0 23-2 * * ? *", "0 22-0 * * ? *", "58-3 0 * * ? *"),
    *("0 6 ? NOV-FEB MON *", "0/60 * * * ? *", "0 0/24 * * ? *", "0 0 1 1/12 ? *", "0 9 1 * ? 1970-2199", "0 0/2 * * ? *"),
    *("0/30 2 * * ? *", "0 22-4/2 * * ? *", "0 9 ? * FRI-SUN,3 *", "0 9 ? * 7-1 *", "0 9 28-2 * ? *", "5/15 2/6 3/7 1/3 ? *"),
    *("0 0 15,L * ? *", "30 2 31 MAR,OCT ? *", "15 2 ? * 1 *", "0 2 ? MAR 1L *", "0,30 0-3 ? * SUN *", "59 23 * * ? *"),
    *("0 9 15W * ? *", "0 9 1W * ? *", "0 9 31W * ? *", "0 9 LW * ? *", "0 9 L-3 * ? *", "0 9 L-30,L * ? *", "0 9 1,16W,LW 2,5 ? 2027"),
    *("0 9 29 2 ? *", "0 9 1 * ? 2025/2,2026/2", "0 9 1 * ? 2027/1", "05 04 01 01 ? *", "0 9 ? 1-12 SUN-SAT *", "0 9 1 */2 ? *"),
)
REFUSED = {
    "0 9 32W * ? *": "has a day of the month that does not exist: 32",
    "0 9 L-31 * ? *": "has a day of the month in a form that AWS does not document: 'L-31'",
    "0 9 L-3W * ? *": "has a day of the month in a form that AWS does not document: 'L-3W'",
    "0 9 W * ? *": "has a day of the month in a form that AWS does not document: 'W'",
    "0 9 31W 4 ? *": "never runs: no date matches",
    "0 9 ? * 2#1,6#3 *": "AWS documents only one expression with it",
    "0 9 ? * 9 *": "has a day of the week that does not exist: 9",
    "0 9 ? * MONDAY *": "has a day of the week in a form that AWS does not document",
    "0 9 ? * MON,FRIL *": "has a day of the week in a form that AWS does not document",
    "0 9 ? * FOO *": "has a day of the week that does not exist: FOO",
    "0 9 * * * *": "has no ? or two",
    "0 9 ? * ? *": "has no ? or two",
    "0 9 1 * MON *": "has no ? or two",
    "0 9 * * ?": "has a cron expression without six fields",
    "0 0 9 * * ? *": "has a cron expression without six fields",
    "60 9 * * ? *": "has a minute that does not exist: 60",
    "0 24 * * ? *": "has a hour that does not exist: 24",
    "0 9 0 * ? *": "has a day of the month that does not exist: 0",
    "0 9 * 13 ? *": "has a month that does not exist: 13",
    "0/0 9 * * ? *": "has a minute in a form that AWS does not document",
    "1,,2 9 * * ? *": "has a minute in a form that AWS does not document",
    "0 9 * * ? 1969": "has a year that does not exist: 1969",
    "0 9 * * ? 2030-2028": "has years that go backwards",
    "0 9 * * ? 2027,2029": "runs in years that are not in a row",
    "0 9 * * ? 2025": "has ended at 2026-01-01T00:00:00Z",
    "0 9 * * ? 2040-2050": "starts at 2040-01-01T00:00:00Z, and a task starts within ten years",
    "0 9 30 2 ? *": "never runs: no date matches",
    "0 9 29 2 ? 2027": "has no further run before its end",
}
# Of public Terraform files, SAM templates and serverless.yml: expression, time zone.
PUBLIC = (
    ("cron(0 * * * ? *)", "UTC"),
    ("cron(0 20 ? * MON-FRI *)", "UTC"),
    ("cron(0 10 * * ? *)", "UTC"),
    ("cron(0/10 * * * ? *)", "UTC"),
    ("cron(0 0 25 * ? *)", "UTC"),
    ("cron(0 */6 * * ? *)", "UTC"),
    ("cron(0 9,21 * * ? *)", "UTC"),
    ("cron(0,30 11,12,13,14 ? APR,MAY,JUN,JUL,AUG,SEP SAT,SUN *)", "UTC"),
    ("cron(0 5 ? * * *)", "UTC"),
    ("cron(0 8 ? * 4 *)", "UTC"),
    ("cron(0 16 * * ? *)", "Europe/Budapest"),
    ("cron(05 14 * * ? *)", "America/Puerto_Rico"),
    ("cron(0 15 ? * MON-FRI *)", "America/Los_Angeles"),
    ("cron(0 7 * * ? *)", "Pacific/Auckland"),
    ("cron(* 8-23,0-1 * * ? *)", "America/Los_Angeles"),
    ("cron(0 0 ? * MON,WED,FRI *)", "America/Los_Angeles"),
    ("cron(0 8 * * ? *)", "Europe/London"),
    ("cron(0 0,1,2,3,4,5,6,7,8,9,10,11,12,17 * * ? *)", "UTC"),
    ("cron(0/3 * * * ? *)", "UTC"),
    ("cron(0 6 * * ? *)", "Etc/UTC"),
)
