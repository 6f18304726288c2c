"""Enforces limits as an OpenStack service does: with oslo.limit, unchanged, and a new Enforcer for each request.

usage: enforce.py CONFIGURATION, with a request "PROJECT RESOURCE USED DELTA" on each line of standard input
"""
import sys

from oslo_config import cfg
from oslo_limit import exception, limit, opts

cfg.CONF(["--config-file", sys.argv[1]], project="enforce")
opts.register_opts(cfg.CONF)
for line in sys.stdin:
    project, resource, used, delta = line.split()
    try:
        enforcer = limit.Enforcer(lambda _, names: {name: int(used) for name in names})
        enforcer.enforce(project, {resource: int(delta)})
        print("ok", flush=True)
    except exception.ProjectOverLimit as over:
        print("over", over.over_limit_info_list[0].limit, flush=True)
    except Exception as failed:  # a service answers these with an error, and does not create anything
        print("failed", type(failed).__name__, flush=True)
