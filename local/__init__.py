"""Punctual on one machine: the real stack, deployed by the CDK onto a local AWS (MiniStack). One verb, one file:

python -m local.run     start, deploy, post sample jobs and show them live (`make run`)
python -m local.demo    the same, scripted and judged (`make demo`)
python -m local.stop    stop what a run left behind
python -m local.user    the first administrator, here or on AWS (`make admin`)
"""
