"""Why somebody is left out of a retry or an undo, or needs nothing to run, as the command line and pages say it."""

from collections.abc import Mapping
from types import MappingProxyType

from matoolkit.domain.retrying import LeftOutBecause
from matoolkit.domain.undoing import NothingToRun, NotUndoneBecause

NOT_RETRIED: Mapping[str, str] = MappingProxyType(
    {
        LeftOutBecause.IN_ANOTHER_BATCH: "they are in another batch",
        LeftOutBecause.EXCLUDED: "they are excluded",
        LeftOutBecause.NO_ROW: "there is no row for them",
        LeftOutBecause.SET_ASIDE: "their rows were set aside",
        LeftOutBecause.ANOTHER_TIME: "their rows have another time than the batch",
    }
)
NOTHING_RUNS: Mapping[str, str] = MappingProxyType(
    {
        NothingToRun.NOTHING_DONE: "nothing was done for them yet",
        NothingToRun.NO_STEPS: "the version has no steps in `on_member_removed`",
    }
)
NOT_UNDONE: Mapping[str, str] = MappingProxyType(
    {
        NotUndoneBecause.UNDONE_BEFORE: "they were undone before",
        NotUndoneBecause.LEFT: "they have left the batch",
        NotUndoneBecause.ROLLBACK_RUNS: "their rollback has not ended; undo them when it has",
        NotUndoneBecause.IN_ANOTHER_BATCH: "another batch has them, or still runs something for them",
        NotUndoneBecause.DONE_SINCE: "they are done in a later batch; undo them there",
    }
)
ROLLED_BACK = "what a failure undid is undone once more"
STAYS = "its open steps are cancelled, and what was done stays"
NOBODY_HAS_KEY = "neither the last reading of the source nor any batch has this key"
