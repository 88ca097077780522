"""The ports in memory, for tests and the simulation, with the same contract as on AWS."""
