"""Comparison: the first differing tick and field, and figures of the force that can be worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from log_samples import plausible_records, random_records, write_log

from bridge.log.diff import compare, compare_records, state_sequence
from bridge.log.reader import LogError


def test_equal_logs_are_equal_whatever_their_timing(tmp_path: Path):
    first, second = random_records(50, 1, special=True), random_records(50, 1, special=True)
    second["timing"]["started_ns"] += 1
    result = compare(write_log(tmp_path / "a.mcap", first), write_log(tmp_path / "b.mcap", second))
    assert result.same
    assert result.same_states
    assert result.difference is None
    assert result.ticks == 50
    assert "same to the bit" in str(result)


def test_energy_and_contacts_of_bodies_are_compared_where_there_are_any(tmp_path: Path):
    first, second = plausible_records(100), plausible_records(100)
    for records, energy, contacts in ((first, 2.0, 4), (second, 2.5, 6)):
        records["output"]["report"]["energy"], records["output"]["report"]["body_contacts"] = energy, contacts
    second["output"]["report"]["energy"][40] = 1.0
    result = compare_records(first, second, moving=True)
    assert result is not None and result.body_energy.first == 2.0
    assert result.body_energy.difference == pytest.approx(0.485)
    assert (result.body_energy_max_difference, result.body_contacts_mean.difference) == (1.0, 2.0)
    assert "body contacts  4 and 6 per tick (+2)" in str(result)
    assert "body energy    largest difference in a tick 1 J" in str(result)
    assert result.to_dict()["body_contacts_mean"] == {"first": 4.0, "second": 6.0, "difference": 2.0}
    result = compare_records(first, second)
    assert result is not None and result.body_energy.difference is None and "body" not in str(result).split("first")[1]


@pytest.mark.parametrize(
    ("path", "field"),
    [
        (("input", "age_ns"), "input.age_ns"),
        (("budget", "units"), "budget.units"),
        (("output", "report", "residual"), "output.report.residual"),
        (("input", "sample", "session"), "input.sample.session"),
    ],
)
def test_one_bit_is_found_with_tick_and_field(path: tuple[str, ...], field: str):
    first, second = random_records(40, 2), random_records(40, 2)
    value = second
    for name in path:
        value = value[name]
    value[[17, 30]] = np.bitwise_xor(value[[17, 30]].view(f"u{value.dtype.itemsize}"), 1).view(value.dtype)
    result = compare_records(first, second)
    assert result is not None and result.difference is not None
    assert (result.difference.tick, result.difference.field) == (18, field)
    assert result.ticks_differing == 2
    assert not result.same


def test_figures_of_the_force():
    """A hand that feels 2 N from tick 101 on, and one that feels 3 N from tick 111 on, over 200 ticks."""
    first, second = plausible_records(200), plausible_records(200)
    for records, force, onset in ((first, 2.0, 100), (second, 3.0, 110)):
        records["output"]["wrench"] = 0.0
        records["output"]["wrench"][onset:, 1] = force
    second["output"]["report"]["contact_count"][:50] += 1
    result = compare_records(first, second)
    assert result is not None
    assert result.force_rms.first == pytest.approx(2.0 * np.sqrt(100 / 200))
    assert result.force_rms.second == pytest.approx(3.0 * np.sqrt(90 / 200))
    assert result.force_rms_difference == pytest.approx(np.sqrt((10 * 2.0**2 + 90 * 1.0**2) / 200))
    assert result.force_max_difference == pytest.approx(2.0)
    assert result.force_peak.difference == pytest.approx(1.0)
    assert result.onset_s.first == pytest.approx(0.100)
    assert result.onset_s.difference == pytest.approx(0.010)
    assert result.ticks_with_other_contact_count == 50
    assert json.loads(json.dumps(result.to_dict()))["onset_s"]["difference"] == pytest.approx(0.010)
    assert "force onset" in str(result)


def test_a_force_that_never_comes_has_no_onset():
    first, second = plausible_records(20), plausible_records(20)
    second["output"]["wrench"] = 0.0
    second["output"]["wrench"][5:, 0] = 1.0
    first["output"]["wrench"] = 0.0
    result = compare_records(first, second)
    assert result is not None
    assert result.onset_s.first is None
    assert result.onset_s.difference is None
    assert "never" in str(result)


def test_ticks_are_aligned_by_number():
    records = plausible_records(100)
    result = compare_records(records[:80], records[20:])
    assert result is not None
    assert (result.ticks, result.ticks_only_first, result.ticks_only_second) == (60, 20, 20)
    assert result.difference is None
    assert not result.same


def test_state_sequences():
    first, second = plausible_records(100), plausible_records(100)
    assert [name for _, name in state_sequence(first)] == ["IDLE", "ARMED", "ENGAGING", "ACTIVE"]
    second["output"]["state"][90:] = 6
    result = compare_records(first, second)
    assert result is not None
    assert not result.same_states
    assert result.states_second[-1] == (91, "FAULT")


def test_logs_without_a_common_tick_are_refused(tmp_path: Path):
    records = plausible_records(60)
    first = write_log(tmp_path / "a.mcap", records[:30])
    second = write_log(tmp_path / "b.mcap", records[30:])
    with pytest.raises(LogError, match=r"no tick in common: a\.mcap holds ticks 1 to 30, b\.mcap holds ticks 31 to 60"):
        compare(first, second)
