"""Commands that deploy a stage, check it and delete it. Each has a file, and a target of the Makefile:

python -m ops.rollout   deploy a stage to AWS with the options of its file (`make deploy`)
python -m ops.versions  let all functions of a stage run the version before (`make rollback`)
python -m ops.user      create the first administrator of a stage on AWS (`make admin`)
python -m ops.doctor    check a deployed stage (`make doctor`)
python -m ops.recount   count all jobs and tasks of a stage, and correct its counters (`make recount`)
python -m ops.destroy   delete a stage, and list what stays (`make destroy`)
python -m ops.sbom      write the bills of materials (`make sbom`)
"""
