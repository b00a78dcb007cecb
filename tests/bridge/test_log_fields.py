"""Fields of records by their paths: columns by name, and where two records differ."""

from __future__ import annotations

import numpy as np
import pytest
from log_samples import plausible_records, random_records

from bridge.log.fields import byte_mask, column, column_names, first_difference
from haptics.tables import RECORD


def test_padding_is_not_compared_and_everything_else_is():
    mask = byte_mask(RECORD)
    record = random_records(1, 2)
    for byte in range(RECORD.itemsize):
        other = np.frombuffer(record.tobytes(), np.uint8).copy()
        other[byte] ^= 1
        other = other.view(RECORD)
        found = first_difference(record, other)
        assert (found is not None) == bool(mask[byte])
    assert mask.sum() < RECORD.itemsize


def test_a_difference_is_named_with_its_item():
    first, second = plausible_records(1), plausible_records(1)
    second["output"]["report"]["contacts"]["normal"][0, 3, 1] = -0.0
    found = first_difference(first, second)
    assert found is not None
    assert found.field == "output.report.contacts[3].normal[1]"
    assert (found.first, str(found.second)) == (0.0, "-0.0")


def test_columns_are_found_by_name():
    records = random_records(4, 9)
    assert (column(records, "output.wrench[2]") == records["output"]["wrench"][:, 2]).all()
    gaps = column(records, "output.report.contacts[1].gap")
    assert gaps.tobytes() == records["output"]["report"]["contacts"][:, 1]["gap"].tobytes()
    for name in column_names():
        assert len(column(records, name)) == 4
    for wrong in ("", "output.force", "output.wrench[6]", "tick[0]"):
        with pytest.raises(KeyError):
            column(records, wrong)
