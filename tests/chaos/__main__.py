"""``scripts/chaos --jobs 500 --faults 60 --seed 7``: exits with 0 if nothing was lost, stuck or doubled, else 1."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from chaos.auditor import table
from chaos.monkey import FAULTS
from chaos.run import chaos, kill_all_workers_repeatedly

WITHIN_S = 30.0


def main() -> int:
    words = argparse.ArgumentParser(prog="scripts/chaos", description=__doc__)
    words.add_argument("--jobs", type=int, default=500)
    words.add_argument("--faults", type=int, default=60)
    words.add_argument("--seed", type=int, default=7)
    words.add_argument("--gap", type=float, default=4.0, help="average seconds between two faults")
    words.add_argument("--only", action="append", choices=sorted(FAULTS), help="a kind of fault; repeatable")
    words.add_argument("--keep", type=Path, help="keep data and logs in this empty folder")
    words.add_argument("--no-worker-kills", action="store_true", help="skip the three kills of all workers")
    given = words.parse_args()
    with tempfile.TemporaryDirectory(prefix="stepladder-chaos-") as temporary:
        home = Path(given.keep or temporary).absolute()
        late = False
        if not given.no_worker_kills:
            (home / "worker-kills").mkdir(parents=True)
            took_s = kill_all_workers_repeatedly(home / "worker-kills", given.seed)
            late = took_s > WITHIN_S
            print(f"30 jobs of five slow turns, all workers killed three times: all succeeded {took_s:.1f} s later\n")
        (home / "chaos").mkdir(parents=True)
        kinds = given.only or tuple(FAULTS)
        outcome = chaos(home / "chaos", given.jobs, given.faults, given.seed, given.gap, kinds)
    print()
    print(table(outcome.report, outcome.hits, outcome.took_s, FAULTS))
    print(f"{outcome.settled} payments settled by the ledger; ended by SIGTERM: {outcome.exits}")
    return 0 if outcome.report.ok and not late and set(outcome.exits.values()) == {0} else 1


if __name__ == "__main__":
    sys.exit(main())
