"""Everything Punctual decides, by feature, in the order of a job's life. Start with `docs/internals/architecture.md`.

    model         jobs and their life cycle, retries, slots, ids, instants, errors, and all records that are stored
    storage       ports (what the services need), their implementations `aws` (the only boto3) and `memory`
    targets       what a job calls: one module per target type, named targets, payload schemas
    sharing       fair shares: who goes next when more is due than can run, and how much a lane may hold
    groups        jobs with common call-backs: how their ends are counted, and what follows
    admission     may this job start now? overlap, ordering, limits, breakers, paused lanes: each rule beside its gate
    pipeline      the engine: submit, tick, worker, dispatch, overflow, execute, closing, reconcile, later checks, bury
    dead_letters  jobs that failed or were killed: groups by error, how one of them is redriven
    jobs          what an owner does with a job: cancel, change, retry, history
    callbacks     jobs that report by call-back
    tasks         schedules, planning, and what people do with a task
    operations    one action on many jobs or tasks, at a rate
    notify        notifications of the runs of tasks
    monitors      work that runs elsewhere and pings: deadlines, and what silence means
    insight       counters, forecast, statistics, archive, scaling
    accounts      users, roles, quotas, sign-in, audit trail
    intake        messages of other systems that become jobs, and the dead letters of those that do not
    declarations  what stacks of CloudFormation declare: tasks, named targets, calendars, monitors

A package imports only from those above it, also for annotations; no modules import each other in a circle. `storage.aws` and
`storage.memory` may import all packages, and only `storage.aws` may import boto3. `tests/test_architecture.py` checks this.
"""

VERSION = "0.2.0"  # as in pyproject.toml
