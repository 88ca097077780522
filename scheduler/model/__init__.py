"""The records and pure rules that all other packages use: jobs and their life cycle, retries, slots, ids, instants, errors."""
