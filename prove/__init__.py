"""`make prove`: measures a deployed stage, or the local one, against its promises, beside EventBridge Scheduler and SQS.

__main__    arguments, the question before the run, the result
plan        the parts of a run, their instants and their duration
place       the stage: its address, its AWS clients, a user of the run's own
course      the course of a run: posts the jobs, waits, reads them
behaviour   jobs whose course is judged: cron, order, killed, cancelled, http
first_hour  the rows in which AWS may differ from its documentation
answers     rows that run by themselves, on things of the run's own
guided      rows that need a deployment, or burden the stage
peers       the schedules of EventBridge Scheduler and the delayed messages of SQS
judging     figures and complaints of each part
costs       dollars, from the figures of docs/concepts/cost.md and the peers' list prices
cleanup     deletes what the run has made
report      the table, the line of JSON, the block for an issue
"""
