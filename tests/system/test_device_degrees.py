"""Devices with fewer degrees of freedom than six at whole daemons: what is rendered, and what the log says of it.

Triggered, one tick per sample, over the real sockets by a client that knows nothing of the project's own.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from daemons import DaemonProcess, RawClient
from scipy.spatial.transform import Rotation

from bridge.log.reader import Log, read_log
from bridge.log.reexec import reexecute
from bridge.verify.judgement import verify
from haptics.pointing import Increments, Rate
from haptics.states import EngagementState, Reason

pytestmark = pytest.mark.slow

HALF = 0.01
"""Half an edge of the cube that is the tool, m."""
START = (0.0, 0.0, HALF + 0.004)
DOWN = np.array((0.0, 0.0, -1.0))
TICK_NS = 1_000_000

SCENE = f"""
[scene]
eps_alert = 3e-5
eps_safety = 7e-5
eps_break = 1.6e-4

[[scene.body]]
name = "plate"
primitive = "plate"
size = [0.2, 0.2, 0.01]
pose = {{ position = [0.0, 0.0, -0.005] }}

[tool]
primitive = "box"
size = [{2 * HALF}, {2 * HALF}, {2 * HALF}]
start = {list(START)}

[rates]
clocking = "triggered"
"""
FAST = "\n[coupling]\nramp_up_ms = 20.0\n"


class Owner:
    """A client that owns the device; its clock is that of its samples, one tick apart."""

    def __init__(self, daemon: DaemonProcess) -> None:
        self.raw = RawClient(daemon.wait_ready().facts["endpoints"])
        self.greeting = self.raw.hello()
        self.now_ns = 0
        self.pose: tuple[Any, Any] = (START, (0.0, 0.0, 0.0, 1.0))
        self.renders: list[dict[str, Any]] = []

    def __enter__(self) -> "Owner":
        return self

    def __exit__(self, *_: object) -> None:
        self.raw.close()

    def leave(self) -> None:
        """Ramp down where the device is, and give it back."""
        if self.renders[-1]["state"] != EngagementState.FAULT:
            self.raw.own("disarm")
            while self.send(*self.pose)["state"] != EngagementState.IDLE:
                pass
        self.raw.own("release")

    def send(self, position: Any, orientation: Any = (0.0, 0.0, 0.0, 1.0)) -> dict[str, Any]:
        """One sample and the render of its tick."""
        self.now_ns += TICK_NS
        self.pose = (position, orientation)
        said = [float(value) for value in orientation]
        self.raw.sample(position, orientation=said, t_sample=self.now_ns, deadman=1)
        render = self.raw.render(5000)
        assert render is not None
        self.renders.append(render)
        return render

    def engage(self, pose: tuple) -> None:
        """Lease, arm, ramp up."""
        self.raw.own("lease")
        self.send(*pose)
        self.raw.own("arm", reanchor=True)
        for _ in range(100):
            if self.send(*pose)["state"] == EngagementState.ACTIVE:
                return
        raise AssertionError("forces were not given")


def run(base: Path, card: str, path: Path, use: Any, extra: str = FAST) -> tuple[Log, list[dict[str, Any]]]:
    """A daemon on this card, used by an owner; its log, which is certified and gives the same bits again."""
    scene = SCENE + f'\n[device]\ncard = "{card}"\n' + extra
    with DaemonProcess(scene=scene, base=base, log=str(path)) as daemon:
        with Owner(daemon) as owner:
            use(owner)
            renders = list(owner.renders)
            owner.leave()
        assert daemon.stop() == 0
        assert daemon.summary()["compiles"] == 0
    judged = verify(path)
    assert judged.passed, str(judged)
    again = reexecute(path)
    assert (again.ticks_differing, again.bytes_differing) == (0, 0) and again.ticks > 100
    return read_log(path), renders


def wrenches(renders: list[dict[str, Any]]) -> np.ndarray:
    return np.array([render["wrench"] for render in renders])


def logged(log: Log, renders: list[dict[str, Any]]) -> np.ndarray:
    """Rows of the log that the renders are of."""
    rows = np.searchsorted(log.records["tick"], [render["tick"] for render in renders])
    assert (log.records["tick"][rows] == [render["tick"] for render in renders]).all()
    return log.records[rows]


def test_five_degrees_in_and_out(tmp_path, short_base):
    """A rod of two SPIDAR points: any roll in a sample is ignored, and no torque is rendered about the rod."""
    random = np.random.default_rng(5)
    turns: list[Rotation] = []

    def use(owner: Owner) -> None:
        assert owner.greeting["card"]["sensed"] == 5 and owner.greeting["limits"]["torque_max"] == 0.55
        owner.engage((START,))
        for k in range(150):
            tilt = Rotation.from_rotvec((0.008 * min(k, 60), 0.0, 0.0))
            turn = Rotation.from_rotvec((0.0, 0.006 * max(k - 60, 0), 0.0)) * tilt
            roll = Rotation.from_rotvec((0.0, 0.0, random.uniform(-3.0, 3.0)))
            owner.send((0.0, 0.0, START[2] - 5e-5 * k), (turn * roll).as_quat())
            turns.append(turn)

    log, renders = run(short_base, "spidar55", tmp_path / "five.mcap", use)
    moved, felt = renders[-150:], wrenches(renders)[-150:]
    ahead = np.array([turn.apply(DOWN) for turn in turns])
    torque = np.linalg.norm(felt[:, 3:], axis=1)
    assert torque.max() > 0.03 and np.linalg.norm(felt[:, :3], axis=1).max() > 0.3
    # The wanted torque is square to the handle in every tick; the sent one lags behind by its slew limit at most.
    rows = logged(log, moved)
    wanted = rows["output"]["coupling_wrench"][:, 3:]
    assert np.abs(np.sum(wanted * ahead, axis=1)).max() < 1e-12
    assert np.array_equal(rows["output"]["wrench"], felt)
    # The tool never turns with the rolls.
    tools = Rotation.from_quat(rows["output"]["device_orientation"])
    assert np.allclose(tools.apply(DOWN), ahead, atol=1e-9)
    steps = (tools[1:] * tools[:-1].inv()).as_rotvec()
    assert np.abs(np.sum(steps * ahead[:-1], axis=1)).max() < 1e-9
    assert (int(log.settings["sensed"][0]), int(log.settings["actuated"][0])) == (5, 5)
    assert (rows["output"]["state"] == EngagementState.ACTIVE).all()


def test_six_in_three_out_with_a_virtual_sphere(tmp_path, short_base):
    """A Phantom that shows torque as force: more force than the spring makes, and never a torque on the wire."""
    radius = 0.04

    def use(owner: Owner) -> None:
        # The cube reaches 17 mm from the coupling point: room for that is left under the card's 400 N/m.
        lever = np.sqrt(3.0) * HALF / radius
        assert owner.greeting["limits"]["stiffness_max"] == pytest.approx(400.0 / (1.0 + lever))
        owner.engage((START,))
        for k in range(150):
            turn = Rotation.from_rotvec((0.005 * k, 0.0, 0.0))
            owner.send((0.0, 0.0, START[2] - 5e-5 * k), turn.as_quat())
        for _ in range(20):
            owner.send((0.0, 0.0, START[2] - 5e-5 * 149), turn.as_quat())

    extra = FAST + f"virtual_sphere = 1.0\nsphere_radius = {radius}\n"
    log, renders = run(short_base, "touch", tmp_path / "sphere.mcap", use, extra)
    felt = wrenches(renders)
    assert not felt[:, 3:].any()
    assert np.linalg.norm(felt[:, :3], axis=1).max() <= 3.3 * (1.0 + 1e-12)
    assert np.linalg.norm(np.diff(felt[:, :3], axis=0), axis=1).max() <= log.settings["force_slew"][0] * (1.0 + 1e-12)
    # At the end, at rest: spring by the rendered impedance, sphere by the two poses of the render.
    last = renders[-1]
    ahead = Rotation.from_rotvec((0.005 * 149, 0.0, 0.0))
    spring = np.array(last["stiffness"][:3]) * (np.array(last["proxy_position"]) - (0.0, 0.0, START[2] - 5e-5 * 149))
    back = (Rotation.from_quat(last["proxy_orientation"]) * ahead.inv()).as_rotvec()
    torque = 0.5 * back
    sphere = np.cross(torque, ahead.apply(DOWN)) / radius
    assert np.linalg.norm(sphere) > 0.2
    wanted = spring + sphere
    wanted *= min(1.0, 3.3 / np.linalg.norm(wanted))
    assert np.allclose(felt[-1, :3], wanted, atol=1e-9)
    assert np.array_equal(logged(log, [last])[0]["output"]["wrench"], felt[-1])


def test_an_input_device_is_a_device_that_feels_nothing(tmp_path, short_base):
    """A sprung cap steers the tool onto the plate and along it by speed; no number that comes back is a force."""
    steering = Rate(START, speed=0.05, turn_speed=0.5)

    def use(owner: Owner) -> None:
        assert owner.greeting["card"]["actuated"] == 0 and owner.greeting["limits"]["force_max"] == 0.0
        owner.engage((START,))
        refused = owner.raw.request("set", session=owner.raw.session, stiffness=100.0, damping=1.0)
        assert refused["error"]["code"] == "bad_value" and "input only" in refused["error"]["text"]
        for push in [(0.0, 0.0, -1.0, 0.0, 0.0, 0.0)] * 250 + [(1.0, 0.0, 0.0, 0.0, 0.0, 0.2)] * 250:
            render = owner.send(*steering.step(1e-3, push))
            assert render["state"] == EngagementState.ACTIVE
            steering.hold_near(render["proxy_position"], render["proxy_orientation"], 0.005)

    log, renders = run(short_base, "spacemouse", tmp_path / "input.mcap", use)
    for name in ("wrench", "stiffness", "damping", "feed_forward"):
        assert not np.array([render[name] for render in renders]).any(), name
    output = logged(log, renders)["output"]
    assert not output["wrench"].any() and not output["coupling_wrench"].any()
    # The tool went down to the plate, no farther, and then along it for what is left of 0.25 s at 0.05 m/s.
    assert output["proxy_position"][-1, 2] == pytest.approx(HALF + 7e-5, abs=3e-5)
    assert output["proxy_position"][-1, 0] == pytest.approx(0.05 * 0.25, rel=0.25)
    assert output["report"]["contact_count"].max() > 0
    assert log.card["actuated"] == 0 and "force_max" in log.card


def test_a_mouse_that_jumps_is_a_jump(tmp_path, short_base):
    """Moves of a mouse add up to a pose that never jumps; a pose that does is judged as of any device."""
    moves = Increments(START, gain=1e-4)

    def use(owner: Owner) -> None:
        owner.engage((START,))
        for _ in range(20):
            render = owner.send(moves.step(1e-3, (300.0, 0.0, 0.0)).position)
            assert render["state"] == EngagementState.ACTIVE
        for _ in range(40):
            render = owner.send(moves.position + (0.3, 0.0, 0.0))
        assert (render["state"], render["reason"]) == (EngagementState.FAULT, Reason.DEVICE_JUMP)
        for _ in range(40):
            owner.send(START)

    log, renders = run(short_base, "mouse", tmp_path / "mouse.mcap", use)
    assert not wrenches(renders).any()
    tools = logged(log, renders)["output"]["proxy_orientation"]
    assert np.allclose(tools, (0.0, 0.0, 0.0, 1.0), atol=1e-12)
