"""Punctual on one machine: the real stack, deployed by the CDK onto a local AWS (MiniStack). Each command has a file:

python -m local.run     start, deploy, post sample jobs and show them live (`make run`)
python -m local.demo    the same as a script, with a verdict at the end (`make demo`)
python -m local.stop    stop runs, and clean up after runs that were killed (`make stop`)
python -m local.rollout deploy a stage to AWS with the options of its file (`make deploy`)
python -m local.doctor  check a deployed stage (`make doctor`)
python -m local.destroy delete a stage, and list what stays (`make destroy`)
python -m local.user    create the first administrator of a stage on AWS (`make admin`)
"""
