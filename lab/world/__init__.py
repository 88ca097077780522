"""One virtual AWS: events in virtual time, over the ports in memory.

A set-up takes the hub, or a stage without one, and puts on it the layers that it wants:

    hub       virtual time: a heap of events, and a greenlet for each invocation that may wait
    events    events of Lambda, and the context of an invocation
    answered  AWS below boto3: calls are answered in process, from prepared bodies
    gateway   API Gateway in front of the api handler
    stage     the world without a hub, for one invocation after the other
    clock     the clocks of invocations
    tables    the jobs table, whose due index lags
    queues    lanes, topic and work queue, which wake what polls them
    pools     the pools of executors
    layers    what surrounds the verbs of a port
    faults    a layer: calls take time and are refused, and invocations die between any two effects
    costs     a layer: calls take the time of what they move, and invocations hold what they were given
    calls     what the use of a port costs: the one table
    limits    the limits of AWS: rates of partitions and of the topic, executors, executions
    meter     a layer that counts what AWS would bill

The simulation, the bench and the tests of services build on it. It imports nothing of them.
"""
