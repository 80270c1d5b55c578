"""What Dagster loads; `workspace.yaml` names this module, and nothing else imports it.

The settings are read here, for clusters and groups are what is declared: a changed file needs a reload of the code
location, in Dagster's UI under Deployment.
"""

from pipelines.defs.build import build_defs
from resources.settings import Settings

defs = build_defs(Settings.path())
