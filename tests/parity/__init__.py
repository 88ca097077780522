"""`make parity`: the contract tests on three implementations of DynamoDB. A difference that is not explained is red."""
