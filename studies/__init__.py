"""Studies: the programs behind the numbers in docs/, one command each, such as ``python -m studies.marking``.

    walks          which modules one job walks through           CONTRIBUTING.md
    versions       is another version as fast as this one        CONTRIBUTING.md
    marking        the speed of marking and of fitting           docs/results/performance.md
    bulk           speed, memory, kills of bulk jobs             docs/results/bulk-performance.md
    gateway        latency, throughput, overload, timing         docs/results/gateway-performance.md
    verdict        what a verdict costs                          docs/results/detection.md
    innocents      is anybody convicted who is innocent          docs/results/false-positives.md
    detection      which copies are caught; power of decoy-1     docs/results/detection.md, statistic.md
    subspace       which k a key should have                     docs/results/subspace.md
    utility        what marking costs customers                  docs/results/utility.md
    paraphrases    do paraphrases stay in their region           docs/results/paraphrases.md
    rivals         decoy tests of all defenses                   docs/results/defense-tests.md
    defense_costs  seconds of every defense                      docs/results/timing.md
    cse, detectors what attacks cost and find                    docs/results/detectors.md
    drift          distances behind the drift alarm              docs/how-to/roll-out.md
    grid_runs      interrupted and parallel grids                docs/how-to/run-the-benchmark.md
    screenshots    pictures of screens                           docs/images/
    notebooks      runs the notebooks                            examples/
    grids/         grid files for ``regionmarker bench``         docs/results/

Every command takes ``--smoke``: the same program on the embedded corpus, seconds long, to see that it runs.
"""

from __future__ import annotations

import os

# One thread, unless you say otherwise: before NumPy loads, and this file is loaded first.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
