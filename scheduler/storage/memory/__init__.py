"""The ports in memory, for tests and for the simulation: the same contract as on AWS."""
