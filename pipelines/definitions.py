"""What Dagster loads; `workspace.yaml` names this module, and nothing else imports it.

The settings are read here, for clusters and schedules are what is declared: a changed file needs a reload of the code
location, in Dagster's UI under Deployment.
"""

from penstock import check_packages

check_packages()

from resources.extras import check_extra  # noqa: E402 - another package `resources` gets a sentence of its own

check_extra("dagster", "a code location of Dagster")

import dagster as dg  # noqa: E402 - a missing extra gets a sentence of its own

from kafka_io.garbage import no_collections  # noqa: E402 - as above
from resources.machines import own_process  # noqa: E402 - as above

with no_collections():
    from pipelines.defs.build import build_defs
    from resources.settings.settings import Settings

# Code servers and runs of this location run nothing but Penstock.
own_process.declare()
own_process.keep_pandas_out()
# Runs execute in their own process: one JVM per run, and terminating the run cancels its Spark jobs. Other projects
# have an executor of their own, so build_defs sets none.
defs = dg.Definitions.merge(build_defs(Settings.path()), dg.Definitions(executor=dg.in_process_executor))
