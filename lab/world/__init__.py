"""One virtual AWS: events in virtual time, over the ports in memory. A set-up puts on it the layers that it wants.

hub       virtual time: a heap of events, and a greenlet for each invocation that may wait
clock     the clocks of invocations
faults    a layer around a port: calls take time, are refused, and their invocation may die between any two effects
tables    the jobs table, whose due index lags
queues    lanes, topic and work queue, which wake what polls them
pools     the pools of executors
"""
