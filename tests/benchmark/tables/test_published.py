"""The paper's own numbers."""

from __future__ import annotations

from regionmarker.benchmark.tables import make_tables


def test_the_papers_numbers_make_no_table_of_their_own(result_row):
    names = {table.name for table in make_tables([result_row("wet"), result_row("wet", "shift:100")])}
    assert "main-sst2" in names
    assert not names & {"dimension-wise", "ablations", "reducers", "fine-tuning", "stealers"}
