"""Configuration: TOML validated by pydantic. Unknown keys are errors; paths are relative to the file."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Vector3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]
Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Pose(Section):
    position: Vector3 = (0.0, 0.0, 0.0)
    """m"""
    orientation: Quaternion = (0.0, 0.0, 0.0, 1.0)
    """[x, y, z, w]; normalised, norm within 1e-3 of 1"""


class Body(Section):
    """One body: exactly one of `mesh`, `urdf` or `primitive`."""

    name: str
    mesh: str | None = None
    """Mesh file (OBJ, STL, DAE, PLY, GLB). `pybullet_data:duck.obj` names a file shipped with pybullet."""
    urdf: str | None = None
    """URDF, SDF or MJCF file; each link becomes a body `name/link`."""
    primitive: Literal["box", "sphere", "cylinder", "plate", "plane"] | None = None
    size: tuple[float, ...] | None = None
    """box and plate: x y z edge lengths; sphere: radius; cylinder: radius, length; plane: x y edge lengths. m"""
    subdivisions: Annotated[int, Field(ge=0, le=8)] = 0
    """Primitive: each triangle is split into four this many times (sphere: on top of the icosphere's 3)."""
    pose: Pose = Pose()
    scale: Positive | tuple[Positive, Positive, Positive] = 1.0
    motion: Literal["static", "held"] = "static"
    friction_static: NonNegative = 0.4
    friction_kinetic: NonNegative = 0.3
    """Not above friction_static."""
    density: Positive = 1000.0
    """kg/m3, for the mass that `inspect` reports"""
    joints: dict[str, float] = {}
    """URDF: joint positions by name, rad or m; 0 where absent"""


class Scene(Section):
    name: str = "scene"
    bodies: Annotated[list[Body], Field(min_length=1, alias="body")]
    eps_alert: Positive | None = None
    """Distances in m; by default 8.8e-5, 2e-4 and 4.6e-4 times the scene's box diagonal (Redon 2002)."""
    eps_safety: Positive | None = None
    eps_break: Positive | None = None


class Tool(Section):
    tip_radius: NonNegative = 0.005
    tip_offset: Vector3 = (0.0, 0.0, 0.0)
    """Tip centre in tool coordinates; the coupling point is the origin"""
    start: Vector3 = (0.0, 0.0, 0.0)
    """Tip centre at start, scene; must be free"""


class Coupling(Section):
    stiffness: Positive = 400.0
    """N/m at the device; capped by the card"""
    damping: NonNegative = 1.0
    """N·s/m at the device"""
    ramp_up_ms: Positive = 500.0
    ramp_down_ms: Positive = 100.0
    ramp_fault_ms: Annotated[float, Field(gt=0, le=20)] = 15.0
    velocity_window_ms: Positive = 12.0
    valid_for_ms: Positive = 10.0


class Workspace(Section):
    """Device frame into scene: x = position + R (scale * x_device)."""

    scale: Positive = 1.0
    pose: Pose = Pose()


class Safety(Section):
    hold_after_ms: Positive = 5.0
    stale_after_ms: Positive = 20.0
    lease_ms: Positive = 2000.0
    engage_distance: Positive = 0.005
    jump_margin: Positive = 0.005
    require_deadman: bool = False


class Device(Section):
    card: str = "simulated"
    """Name of a card in configs/devices or a path to one"""


class Budget(Section):
    """Work per tick, in units of work (never in time)."""

    units: Annotated[int, Field(ge=100)] = 20000
    passes: Annotated[int, Field(ge=1, le=8)] = 8
    sweeps: Annotated[int, Field(ge=1)] = 50


class Rates(Section):
    tick_hz: Annotated[float, Field(ge=50, le=4000)] = 1000.0
    clocking: Literal["free", "triggered"] = "free"
    publish_hz: Annotated[float, Field(gt=0, le=1000)] = 60.0


class Log(Section):
    directory: str = "out"
    record: bool = False


class Sockets(Section):
    transport: Literal["ipc", "tcp"] = "ipc"
    host: str = "127.0.0.1"
    """tcp only; loopback only"""
    port: Annotated[int, Field(ge=1024, le=65531)] = 5550
    """tcp: device, control, state, events take port .. port+3"""


class Config(Section):
    scene: Scene
    tool: Tool = Tool()
    coupling: Coupling = Coupling()
    workspace: Workspace = Workspace()
    safety: Safety = Safety()
    device: Device = Device()
    budget: Budget = Budget()
    rates: Rates = Rates()
    log: Log = Log()
    sockets: Sockets = Sockets()
