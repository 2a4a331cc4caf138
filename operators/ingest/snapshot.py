"""`merge: snapshot`: the files are the whole truth; by key where there is one, else like a text (DESIGN section 6)."""

from operators.ingest import keyed, unkeyed
from operators.ingest.intake import Ingested, Intake, merge_strategy


@merge_strategy("snapshot")
def ingest(intake: Intake) -> Ingested:
    """The delta from what stood to what the files say now."""
    return keyed.ingest(intake) if intake.source.keyed else unkeyed.ingest(intake)
