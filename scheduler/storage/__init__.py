"""The ports that the services need, and their implementations: `aws` (the only boto3) and `memory` (tests and simulation)."""
