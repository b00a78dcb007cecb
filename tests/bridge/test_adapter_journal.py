"""The journal of what a device felt."""

import numpy as np

from bridge.adapters.journal import READ, ROWS, WRITTEN, Journal
from haptics.last_line import NO_WRENCH


def test_a_journal_keeps_the_newest_rows(tmp_path):
    journal = Journal.make(tmp_path / "journal")
    other = Journal(journal.path)
    for k in range(5):
        journal.note(READ if k % 2 else WRITTEN, k, np.array((k, 0.0, 0.0)), NO_WRENCH)
    assert other.rows()["t"].tolist() == [0, 1, 2, 3, 4] and other.rows(2, READ)["t"].tolist() == [3]
    journal._header["count"][0] = ROWS + 5
    assert len(other.rows()) == ROWS - 1
