"""Objects that stacks of CloudFormation declare: tasks, named targets, calendars and monitors as custom resources."""
