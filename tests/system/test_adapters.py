"""The conformance test passes for the reference adapter, and finds what broken ones do wrong.

All at one daemon. That it passes for the others too takes longer: `make adapters`.
"""

from pathlib import Path

import pytest

from bridge.adapters.benches import bench_for
from bridge.adapters.conformance import Trial

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

BROKEN = Path(__file__).resolve().parents[1] / "bridge" / "broken_adapters.py"


def test_the_reference_passes_and_broken_adapters_do_not():
    checks = []
    with Trial("simulated", bench_for("simulated", {}), checks.append, 0.3) as trial:
        trial.run(short=True, only=())
        assert [str(check) for check in checks if not check.passed] == []
        names = {check.name for check in checks}
        assert {"slew", "norm of forces", "norm of torques", "NaN", "late renders", "lying clock", "SIGTERM"} <= names

        for broken, part, wrong in (
            ("KeepsTheLast", "late renders", "are left for good"),
            ("EachAxisByItself", "norm", "degrees off"),
            ("LetsGoAtOnce", "late renders", "largest step"),
        ):
            checks.clear()
            what = f"{BROKEN}:{broken}"
            trial.change(what, bench_for(what, {}))
            trial.run(short=True, only=(part,))
            hello, found = checks
            assert hello.passed, str(hello)
            assert found.passed is False and wrong in found.text, str(found)
            trial.end_adapter()
