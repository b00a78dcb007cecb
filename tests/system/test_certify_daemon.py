"""A sweep of stiffness at a daemon of its own: up step by step while the device is quiet, and back when it shakes.

Triggered, one tick per sample, as fast as it goes, and without the softening for slow samples: what is found does not
depend on how this machine keeps time.
"""

import time

import pytest
from daemons import DaemonProcess

from bridge.certify_device import measure
from bridge.client import Client
from bridge.motions import SceneView, make_motion
from haptics import certify_sweep
from haptics.cards import load_card
from haptics.hands import DeviceDynamics

pytestmark = pytest.mark.slow

SLICK = """
name = "slick"
model = "Reference device without dry friction"
sensed = 6
actuated = 6
force_max = 50.0
torque_max = 0.5
stiffness_max = 20000.0
damping_max = 10.0
mass = 0.15
viscous_friction = 0.1
coulomb_friction = 0.0
resolution = 1e-5
source = "this test"
conditions = "none"
"""
SCENE = """
[[scene.body]]
name = "plate"
primitive = "plate"
size = [0.2, 0.2, 0.01]
pose = { position = [0.0, 0.0, -0.005] }
friction_static = 0.0
friction_kinetic = 0.0

[tool]
tip_radius = 0.005
start = [0.0, 0.0, 0.02]

[device]
card = "devices/slick.toml"

[rates]
clocking = "triggered"

[safety]
require_deadman = true

[coupling]
stiffness = 300.0
damping = 0.0
ramp_up_ms = 20.0
passivity = false
"""
UNSOFTENED = "rate_adaptation = false\n"
LIMIT = 3980.0
"""N/m: of the matrix of a light hand without dry friction and delay, see tests/haptics/test_certify.py."""


@pytest.fixture
def device(tmp_path):
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices" / "slick.toml").write_text(SLICK)
    return DeviceDynamics.from_card(load_card(tmp_path / "devices" / "slick.toml"))


def swept(endpoints, device, pause=0.0, **how):
    """A light hand presses the device, and pauses (s) at each step."""

    def pressing(client):
        view = SceneView.of(client, endpoints)
        motion = make_motion(
            "sim", view, path="circle", point=(0.0, 0.0, 0.0), radius=1e-4, depth=0.003, grip="light", device=device
        )
        step = motion.step

        def slowly(*moved):
            time.sleep(pause)
            return step(*moved)

        motion.step = slowly
        return motion

    return measure(
        pressing, hand="light", daemon=endpoints, first=2500.0, last=20000.0, paced=False, resolution=1e-5, **how
    )


def test_a_device_is_swept_until_it_shakes(tmp_path, device):
    """Not before the limit of the linear loop, and not long after: an oscillation has to grow to be seen."""
    stages: list[float] = []
    with DaemonProcess(scene=SCENE + UNSOFTENED, base=tmp_path) as daemon:
        endpoints = daemon.wait_ready().facts["endpoints"]
        found = swept(endpoints, device, on_stage=stages.append)
        with Client(endpoints) as client:
            assert client.status()["owner"] is None
            assert client.status()["newest"]["wrench"] == [0.0] * 6
    limit = found.row.stiffness_limit[0]
    assert found.ended == "oscillation" and 0.85 * LIMIT < limit < 2.0 * LIMIT
    assert stages[0] == stages[-1] == 2500.0 and stages[1] == pytest.approx(1.12 * 2500.0)
    assert limit == pytest.approx(stages[-3]) and found.report.force_peak < 10.0


def test_slow_samples_are_no_finding(tmp_path, device, monkeypatch):
    """Less than half of the rate: the daemon softens the spring and says so, and the sweep gives up."""
    monkeypatch.setattr(certify_sweep, "SLOW_WITHIN_S", 0.5)
    with DaemonProcess(scene=SCENE, base=tmp_path) as daemon:
        found = swept(daemon.wait_ready().facts["endpoints"], device, pause=0.002)
    assert found.ended == "slow samples" and found.row.stiffness_limit == (0.0,) and found.report.ok
