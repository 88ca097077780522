"""The records and pure rules that everything else uses: jobs and their life cycle, retries, slots, ids, instants, errors."""
