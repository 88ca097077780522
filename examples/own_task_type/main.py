"""Run jobs of a type of your own, which computes in the executor.

cp examples/own_task_type/word_count.py scheduler/targets/types/      # then: make run, or make deploy
python -m examples.own_task_type.main
"""

import json

from punctual import InvalidRequest, Punctual

TEXT = "the quick brown fox jumps over the lazy dog, and the dog sleeps"


def main() -> int:
    with Punctual() as punctual:
        types = {one.type: one for one in punctual.types()}
        if "word_count" not in types:
            print("this stage has no type word_count: see examples/own_task_type/README.md")
            return 1
        print(f"fields of its payload: {', '.join(types['word_count'].payload_schema['properties'])}")
        try:
            punctual.jobs.create("word_count", {"text": TEXT, "most": 0})
        except InvalidRequest as refused:
            print(f"refused: {refused.details[0]}")
        job = punctual.jobs.wait(punctual.jobs.create("word_count", {"text": TEXT, "most": 2}).id, timeout=120)
        print(f"{job.status}: {job.output}")
        return 0 if job.output and json.loads(job.output) == {"the": 3, "dog": 2} else 1


if __name__ == "__main__":
    raise SystemExit(main())
