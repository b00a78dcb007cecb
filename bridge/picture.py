"""A still picture of the scene: bodies, the way the tip went, coloured by force, and what the hand feels now.

Drawn with :mod:`bridge.raster`, so it needs no display. What is hidden behind a surface shows through faintly.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bridge import raster
from bridge.moment import Moment, body_triangles, moment, moved_poses, placed_triangles, tool_triangles
from bridge.raster import Camera, Surface, encode, linear
from haptics.tables import RECORD
from rtcore.model import Model

BODY_COLOURS = (
    (0.87, 0.85, 0.81),
    (0.62, 0.71, 0.79),
    (0.78, 0.70, 0.62),
    (0.66, 0.74, 0.66),
    (0.76, 0.67, 0.74),
    (0.72, 0.72, 0.75),
)
TIP = (0.93, 0.30, 0.16)
DEVICE = (0.16, 0.55, 0.86)
TOOL = (0.95, 0.55, 0.30)
FORCE = (0.05, 0.50, 0.36)
INK = (38, 44, 52)
FAINT_INK = (112, 122, 134)
SKY = (0.985, 0.988, 0.992)
GROUND = (0.86, 0.885, 0.91)
THROUGH = 0.22
"""How strongly what lies behind a surface shows through it."""
OVERSAMPLE = 2


def force_colours(newtons: np.ndarray, strongest: float) -> np.ndarray:
    """(n, 3) linear colours of forces 0 .. ``strongest`` (N): blue, violet, red, orange."""
    stops = np.array([[0.16, 0.33, 0.76], [0.46, 0.20, 0.68], [0.83, 0.16, 0.38], [0.98, 0.55, 0.10]])
    at = np.clip(np.asarray(newtons, dtype=float) / max(strongest, 1e-9), 0.0, 1.0) * (len(stops) - 1)
    return linear(np.column_stack([np.interp(at, np.arange(len(stops)), stops[:, c]) for c in range(3)]))


@dataclass(frozen=True)
class Trail:
    """Where the tip went."""

    points: np.ndarray
    """(n, 3) scene, m"""
    forces: np.ndarray
    """(n,) N"""

    @staticmethod
    def of(points: np.ndarray, forces: np.ndarray, spacing: float) -> "Trail":
        """Thin a path out to points at least ``spacing`` apart (each with the largest force since the last)."""
        keep, largest, since = [0], [float(forces[0])], 0.0
        for i in range(1, len(points)):
            since = max(since, float(forces[i]))
            if np.linalg.norm(points[i] - points[keep[-1]]) >= spacing:
                keep.append(i)
                largest.append(since)
                since = 0.0
        if keep[-1] != len(points) - 1:
            keep.append(len(points) - 1)
            largest.append(max(since, float(forces[-1])))
        return Trail(np.array(points)[keep], np.array(largest))


def subject(model: Model, bodies: list[np.ndarray], now: Moment | None, trail: Trail | None) -> np.ndarray:
    """(n, 3) points that the picture has to show: the way of the tip, a whole tool, and the bodies near it.

    Of a body many times larger than the way only what is around the way counts.
    """
    way = [] if trail is None else [trail.points]
    if now is not None:
        way.append(np.array([now.proxy, now.device]))
        tool = tool_triangles(model)
        if tool is not None:
            way.append(placed_triangles(tool, now.proxy, now.proxy_turn).reshape(-1, 3))
            way.append(placed_triangles(tool, now.device, now.device_turn).reshape(-1, 3))
    if not way:
        return np.concatenate([b.reshape(-1, 3) for b in bodies])
    points = np.concatenate(way)
    centre, radius = _sphere(points)
    radius = max(radius, 4.0 * float(model.world[0]["tip_radius"]), 1e-6)
    near = [points]
    for body in bodies:
        corners = body.reshape(-1, 3)
        _, size = _sphere(corners)
        if size < 12.0 * radius and np.min(np.linalg.norm(corners - centre, axis=1)) < 2.0 * radius + 1e-9:
            near.append(corners)
    if len(near) == 1:
        near.append(centre + 2.0 * radius * np.concatenate([np.eye(3), -np.eye(3)]))
    return np.concatenate(near)


def _sphere(points: np.ndarray) -> tuple[np.ndarray, float]:
    centre = 0.5 * (points.min(axis=0) + points.max(axis=0))
    return centre, float(np.linalg.norm(points - centre, axis=1).max())


def choose_camera(
    triangles: np.ndarray, centre: np.ndarray, radius: float, points: np.ndarray, force: np.ndarray, aspect: float
) -> Camera:
    """The view from above the horizon that shows most of ``points`` (n, 3), and a force arrow from the side."""
    best, best_score = None, -1.0
    width, height = 160, round(160 / aspect)
    for pitch in (0.30, 0.50, 0.75):
        for step in range(24):
            yaw = 2.0 * math.pi * step / 24
            camera = aim(centre, radius, yaw, pitch)
            image = camera.project(points, width, height)
            depth = raster.look(triangles, camera, width, height).depth
            column = np.clip(image[:, 0].astype(int), 0, width - 1)
            row = np.clip(image[:, 1].astype(int), 0, height - 1)
            visible = float(np.mean(image[:, 2] <= depth[row, column] + 0.02 * radius))
            sight = (centre - camera.eye) / np.linalg.norm(centre - camera.eye)
            length = np.linalg.norm(force)
            side = 0.0 if length < 1e-9 else float(np.linalg.norm(np.cross(force / length, sight)))
            spread = float(np.prod(np.ptp(image[:, :2], axis=0) / (width, height))) ** 0.5
            score = visible + 0.15 * side + 0.35 * spread - 0.1 * abs(pitch - 0.45)
            if score > best_score:
                best, best_score = camera, score
    assert best is not None
    return best


def aim(centre: np.ndarray, radius: float, yaw: float, pitch: float, field_of_view: float = 0.55) -> Camera:
    """A camera that sees the whole sphere, from ``yaw`` around and ``pitch`` above the horizon (rad)."""
    distance = 1.02 * radius / math.sin(0.5 * field_of_view)
    out = np.array([math.cos(pitch) * math.cos(yaw), math.cos(pitch) * math.sin(yaw), math.sin(pitch)])
    return Camera(np.asarray(centre) + distance * out, np.asarray(centre, dtype=float), field_of_view)


def fit(camera: Camera, points: np.ndarray, width: int, height: int) -> Camera:
    """Move a camera along and across its sight until (n, 3) points fill the picture, with margins for the lettering."""
    left, right, top, bottom = 0.05 * width, 0.95 * width, 0.13 * height, 0.91 * height
    for _ in range(6):
        image = camera.project(points, width, height)
        low, high = image[:, :2].min(axis=0), image[:, :2].max(axis=0)
        distance = float(np.linalg.norm(camera.target - camera.eye))
        forward = (camera.target - camera.eye) / distance
        matrix = camera.matrix(width, height)[:, :3]
        focal = 0.5 * height / math.tan(0.5 * camera.field_of_view)
        across = (matrix[0] - 0.5 * width * forward) / focal
        down = (matrix[1] - 0.5 * height * forward) / focal
        middle = 0.5 * (low + high) - 0.5 * np.array([left + right, top + bottom])
        shift = distance / focal * (middle[0] * across + middle[1] * down)
        zoom = max((high[0] - low[0]) / (right - left), (high[1] - low[1]) / (bottom - top))
        target = camera.target + shift
        camera = Camera(target - forward * distance * zoom, target, camera.field_of_view)
    return camera


def draw(
    model: Model,
    now: Moment | None = None,
    trail: Trail | None = None,
    *,
    poses: np.ndarray | None = None,
    title: str = "",
    force_full: float = 5.0,
    width: int = 1280,
    height: int = 720,
    yaw: float | None = None,
    pitch: float | None = None,
) -> np.ndarray:
    """Draw the scene: (height, width, 3) u1.

    ``now`` adds the tool, what the device asks for (of a whole tool a transparent copy) and the force arrow; ``trail``
    the way of the tip, coloured up to its strongest force. ``force_full`` is the force (N) whose arrow is a third of
    the picture. The view is chosen unless ``yaw`` or ``pitch`` (rad) is given.
    """
    bodies = body_triangles(model, poses)
    shown = subject(model, bodies, now, trail)
    centre, radius = _sphere(shown)
    if now is not None:
        shown = np.concatenate([shown, _arrow_end(now, radius, force_full)[None]])
    everything = np.concatenate(bodies)
    points = trail.points if trail is not None else np.array([now.proxy if now is not None else centre])
    if yaw is None or pitch is None:
        force = now.force if now is not None else np.zeros(3)
        camera = choose_camera(everything, centre, radius, points, force, width / height)
        if yaw is not None or pitch is not None:
            out = camera.eye - centre
            seen_yaw = math.atan2(out[1], out[0])
            seen_pitch = math.atan2(out[2], math.hypot(out[0], out[1]))
            camera = aim(centre, radius, seen_yaw if yaw is None else yaw, seen_pitch if pitch is None else pitch)
    else:
        camera = aim(centre, radius, yaw, pitch)
    camera = fit(camera, shown, width, height)

    surfaces = [raster.flat(t, BODY_COLOURS[i % len(BODY_COLOURS)], 0.10) for i, t in enumerate(bodies)]
    tool = tool_triangles(model)
    if tool is not None and now is not None:
        surfaces.append(raster.flat(placed_triangles(tool, now.proxy, now.proxy_turn), TOOL, 0.15))
    solid = Surface.join(surfaces)
    over = _marks(model, now, trail, radius, force_full)
    ghost = _ghost(model, now, radius)

    big_width, big_height = OVERSAMPLE * width, OVERSAMPLE * height
    floor = float(everything[:, :, 2].min())
    reach = 1.25 * radius
    opaque = solid.triangles if over is None else np.concatenate([solid.triangles, over.triangles])
    out = camera.eye - camera.target
    sun_yaw = math.atan2(out[1], out[0]) - 0.9  # over the left shoulder of whoever looks
    lights = raster.cast(opaque, centre, reach, sun_yaw)
    colour, depth = backdrop(camera, lights, centre, radius, floor, big_width, big_height)
    lay(colour, depth, raster.shade(solid, lights, camera, big_width, big_height), 1.0, 0.0)
    if ghost is not None:
        lay(colour, depth, raster.shade(ghost, None, camera, big_width, big_height), 0.60, 0.38, keep_depth=True)
    if over is not None:
        lay(colour, depth, raster.shade(over, lights, camera, big_width, big_height), 1.0, THROUGH)
    pixels = finish(colour, width, height)
    keys = [(TIP, "tip") if tool is None else (TOOL, "tool"), (DEVICE, "device"), (FORCE, "force on the hand")]
    keys = keys if now is not None else []
    text = "" if now is None else " · ".join(part.strip() for part in now.text.strip().split("   "))
    pixels = letter(pixels, title=title, text=text, keys=keys, spacing=grid_spacing(radius))
    return pixels if trail is None or len(trail.points) < 2 else _scale_of_forces(pixels, float(trail.forces.max()))


def finish(light: np.ndarray, width: int, height: int) -> np.ndarray:
    """The picture (height, width, 3) u1 of linear light drawn OVERSAMPLE times as wide and high."""
    small = light.reshape(height, OVERSAMPLE, width, OVERSAMPLE, 3).mean(axis=(1, 3))
    return np.round(255.0 * encode(_tone(small))).astype(np.uint8)


def _tone(light: np.ndarray) -> np.ndarray:
    """Roll bright light off softly instead of clipping it."""
    knee = 0.8
    over = np.maximum(light - knee, 0.0)
    return np.where(light > knee, knee + (1.0 - knee) * (1.0 - np.exp(-over / (1.0 - knee))), light)


def _marks(model: Model, now: Moment | None, trail: Trail | None, radius: float, force_full: float) -> Surface | None:
    parts = []
    tip_radius = float(model.world[0]["tip_radius"])
    thick = 0.010 * radius
    if trail is not None and len(trail.points) > 1:
        colours = force_colours(trail.forces, float(trail.forces.max()))
        parts.append(raster.tube(trail.points, np.full(len(trail.points), thick), colours, gloss=0.15))
    if now is not None:
        if int(model.world[0]["tool_mesh_id"]) < 0:
            parts.append(raster.ball(now.proxy, max(tip_radius, 1.6 * thick), TIP, 0.5))
        strength = float(np.linalg.norm(now.force))
        if strength > 1e-3:
            end = _arrow_end(now, radius, force_full)
            parts.append(raster.arrow(now.proxy, end, 1.4 * thick, FORCE))
        for point, normal, _, _ in now.contacts:
            parts.append(raster.arrow(point, point + 0.10 * radius * normal, 0.5 * thick, (0.20, 0.22, 0.25)))
    return Surface.join(parts) if parts else None


def _arrow_end(now: Moment, radius: float, force_full: float) -> np.ndarray:
    """Where the force arrow ends; it never grows beyond one and a half times its full length."""
    strength = float(np.linalg.norm(now.force))
    return now.proxy + 0.66 * radius * min(strength / force_full, 1.5) * now.force / max(strength, 1e-12)


def _ghost(model: Model, now: Moment | None, radius: float) -> Surface | None:
    if now is None:
        return None
    size = max(float(model.world[0]["tip_radius"]), 0.016 * radius)
    tool = tool_triangles(model)
    if tool is None:
        parts = [raster.ball(now.device, size, DEVICE, 0.2)]
    else:
        parts = [raster.flat(placed_triangles(tool, now.device, now.device_turn), DEVICE)]
    if np.linalg.norm(now.device - now.proxy) > 1e-4 * radius:
        ends = np.array([now.device, now.proxy])
        parts.append(raster.tube(ends, np.full(2, 0.005 * radius), np.tile(linear(DEVICE), (2, 1))))
    return Surface.join(parts)


def lay(
    colour: np.ndarray, depth: np.ndarray, layer: raster.Shaded, front: float, through: float, keep_depth: bool = False
) -> None:
    """Lay a shaded layer over the picture: ``front`` opaque where nearest, ``through`` where something hides it."""
    drawn = np.isfinite(layer.depth)
    nearer = layer.depth <= depth
    alpha = np.where(drawn, np.where(nearer, front, through), 0.0)[:, :, None]
    colour *= 1.0 - alpha
    colour += alpha * layer.colour
    if not keep_depth:
        np.copyto(depth, layer.depth, where=drawn & nearer)


def grid_spacing(radius: float) -> float:
    """A round length (1, 2 or 5 times a power of ten) of about a quarter of the radius, m."""
    power = 10.0 ** math.floor(math.log10(radius / 4.0))
    return max((m * power for m in (1.0, 2.0, 5.0) if m * power <= radius / 4.0), default=power)


def backdrop(
    camera: Camera, lights: raster.Lights, centre: np.ndarray, radius: float, floor: float, width: int, height: int
) -> tuple[np.ndarray, np.ndarray]:
    """Background with a floor that only catches shadows and a grid, and fades out: it is not part of the scene."""
    sky = linear(SKY) + (linear(GROUND) - linear(SKY)) * np.linspace(0.0, 1.0, height)[:, None] ** 1.3
    colour = np.repeat(sky[:, None, :], width, axis=1)
    depth = np.full((height, width), np.inf)
    matrix = camera.matrix(width, height)
    rows, columns = np.mgrid[0:height, 0:width]
    rays = np.column_stack([columns.ravel() + 0.5, rows.ravel() + 0.5, np.ones(height * width)])
    rays = np.linalg.solve(matrix[:, :3], rays.T).T  # directions whose view depth is 1 m
    with np.errstate(divide="ignore", invalid="ignore"):
        along = (floor - 1e-4 * radius - camera.eye[2]) / rays[:, 2]
    points = camera.eye + along[:, None] * rays
    fade = 1.0 - np.linalg.norm(points[:, :2] - centre[:2], axis=1) / (2.6 * radius)
    hit = np.nonzero(np.isfinite(along) & (along > 0.0) & (fade > 0.0))[0]
    fade = np.clip(fade[hit] * 1.6, 0.0, 1.0)
    fade = (fade * fade * (3.0 - 2.0 * fade))[:, None]
    open_light = np.sum(lights.radiance * np.maximum(lights.directions[:, 2:3], 0.0), axis=0)
    # shadows on the floor are soft: computed on a coarse grid and interpolated
    cells = 360
    line_of_cells = np.linspace(-2.6 * radius, 2.6 * radius, cells)
    grid = np.stack(np.meshgrid(centre[0] + line_of_cells, centre[1] + line_of_cells, [floor], indexing="ij"), -1)
    grid = grid.reshape(-1, 3)
    up = np.tile([0.0, 0.0, 1.0], (len(grid), 1))
    on_grid, _ = raster.illuminate(grid, up, camera.eye, np.zeros(len(grid)), lights)
    at = (points[hit, :2] - centre[:2] + 2.6 * radius) * ((cells - 1) / (5.2 * radius))
    light = _interpolate((on_grid / open_light).reshape(cells, cells, 3), at)
    spacing = grid_spacing(radius)
    offset = points[hit, :2] / spacing
    # half a line's width in cells, never thinner than the pixel seen there
    pixel = along[hit] / (0.5 * height / math.tan(0.5 * camera.field_of_view)) / spacing
    line = np.abs(offset - np.round(offset)) / np.maximum(0.012, 0.9 * pixel)[:, None]
    drawn = np.clip(1.6 - line, 0.0, 1.0).max(axis=1)[:, None]
    shadow = 1.0 + fade * (light - 1.0) * 0.85
    colour.reshape(-1, 3)[hit] *= shadow * (1.0 - 0.13 * fade * drawn)
    # the floor hides nothing, so that a look from below still shows everything
    return colour, depth


def _interpolate(grid: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Bilinear values of a (m, m, 3) grid at (n, 2) positions in cells."""
    at = np.clip(at, 0.0, len(grid) - 1.001)
    i, j = at[:, 0].astype(int), at[:, 1].astype(int)
    u, v = (at[:, 0] - i)[:, None], (at[:, 1] - j)[:, None]
    low = (1.0 - v) * grid[i, j] + v * grid[i, j + 1]
    high = (1.0 - v) * grid[i + 1, j] + v * grid[i + 1, j + 1]
    return (1.0 - u) * low + u * high


def letter(
    pixels: np.ndarray, *, title: str, text: str, keys: list[tuple[tuple[float, float, float], str]], spacing: float
) -> np.ndarray:
    """Write a title, a line of text, what colours (sRGB, 0..1) mean and the spacing of the grid (m) on a picture."""
    from PIL import Image, ImageDraw

    height, width = pixels.shape[:2]
    unit = height / 720.0
    small, large = _fonts(unit)
    image = Image.fromarray(pixels)
    pen = ImageDraw.Draw(image)
    left, top = 28 * unit, 24 * unit
    if title:
        pen.text((left, top), title, INK, font=large)
    if text:
        pen.text((left, top + 32 * unit), text, FAINT_INK, font=small)
    y = height - 34 * unit
    x = left
    for colour, name in keys:
        size = 6 * unit
        middle = y + 9 * unit
        pen.ellipse((x, middle - size, x + 2 * size, middle + size), fill=tuple(round(255 * c) for c in colour))
        pen.text((x + 19 * unit, y), name, FAINT_INK, font=small)
        x += 19 * unit + pen.textlength(name, font=small) + 26 * unit
    note = f"grid {1e3 * spacing:g} mm"
    pen.text((width - 28 * unit - pen.textlength(note, font=small), y), note, FAINT_INK, font=small)
    return np.asarray(image)


def _fonts(unit: float) -> tuple[Any, Any]:
    """A small and a large font for a picture `unit` times 720 pixels high."""
    from matplotlib import get_data_path
    from PIL import ImageFont

    fonts = Path(get_data_path()) / "fonts" / "ttf"
    small = ImageFont.truetype(str(fonts / "DejaVuSans.ttf"), round(15 * unit))
    return small, ImageFont.truetype(str(fonts / "DejaVuSans-Bold.ttf"), round(21 * unit))


def _scale_of_forces(pixels: np.ndarray, strongest: float) -> np.ndarray:
    """Add what the colours of the way mean, 0 .. strongest (N)."""
    from PIL import Image, ImageDraw

    height, width = pixels.shape[:2]
    unit = height / 720.0
    small, _ = _fonts(unit)
    image = Image.fromarray(pixels)
    pen = ImageDraw.Draw(image)
    right = width - 28 * unit
    bar_width, bar_height = round(170 * unit), round(9 * unit)
    colours = encode(force_colours(np.linspace(0.0, strongest, bar_width), strongest))
    bar = np.round(255 * np.tile(colours[None], (bar_height, 1, 1))).astype(np.uint8)
    x, y = round(right - bar_width), round(48 * unit)
    image.paste(Image.fromarray(bar), (x, y))
    pen.text((x, y - 23 * unit), "way of the tip", FAINT_INK, font=small)
    pen.text((x, y + 13 * unit), "0", FAINT_INK, font=small)
    end = f"{strongest:.2g} N"
    pen.text((right - pen.textlength(end, font=small), y + 13 * unit), end, FAINT_INK, font=small)
    return np.asarray(image)


def save(pixels: np.ndarray, path: str | Path) -> Path:
    """Write a (height, width, 3) u1 picture as PNG."""
    from PIL import Image

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)
    return path


def draw_log(
    path: str | Path,
    output: str | Path | None = None,
    *,
    at: float | None = None,
    way: float | None = None,
    title: str | None = None,
    width: int = 1280,
    height: int = 720,
    yaw: float | None = None,
    pitch: float | None = None,
) -> Path:
    """Draw a log at one moment into a PNG and return its path.

    ``at``: seconds from the first tick (the end when absent); ``way``: how many seconds of the tip's way before it are
    drawn (all when absent); ``output``: by default beside the log, named after the moment. Raises LogError when the log
    cannot be read, holds no tick, or does not reach to that moment; ValueError for a negative moment.
    """
    if at is not None and at < 0.0:
        raise ValueError(f"a moment {at:g} s before the first tick cannot be drawn")
    from bridge.log.reader import LogError, LogReader

    log = LogReader(path)
    model, row = log.model, log.settings[0]
    poses = moved_poses(model, np.zeros(0, RECORD))
    points: list[np.ndarray] = []
    forces: list[np.ndarray] = []
    times: list[np.ndarray] = []
    last: np.ndarray | None = None
    origin, reached = 0, 0.0
    for records in log.batches():
        if last is None:
            origin = int(records["timing"]["started_ns"][0])
        seconds = (records["timing"]["started_ns"] - origin) * 1e-9
        reached = float(seconds[-1])
        if at is not None:
            keep = seconds <= at
            records, seconds = records[keep], seconds[keep]
            if not len(records):
                break
        poses = moved_poses(model, records, poses)
        last = records[-1]
        points.append(records["output"]["proxy_position"].copy())
        forces.append(np.linalg.norm(records["output"]["wrench"][:, :3], axis=1))
        times.append(seconds)
    if last is None:
        raise LogError(log.explanation or f"{path} holds no ticks")
    if at is not None and at > reached + 0.1:
        raise LogError(f"{path} ends {reached:.3f} s after its first tick, before the moment asked for ({at:g} s)")
    when = np.concatenate(times)
    drawn = np.ones(len(when), bool) if way is None else when >= when[-1] - way
    now = moment(last, float(row["dt"]))
    extent = float(np.linalg.norm(np.ptp(np.concatenate(points)[drawn], axis=0)))
    trail = None
    if extent > 0.0:
        trail = Trail.of(np.concatenate(points)[drawn], np.concatenate(forces)[drawn], extent / 600.0)
    pixels = draw(
        model,
        now,
        trail,
        poses=poses,
        title=title if title is not None else str(log.config.get("scene", {}).get("name", Path(path).stem)),
        force_full=max(float(np.max(np.concatenate(forces))), 0.2 * float(row["force_max"]), 1e-9),
        width=width,
        height=height,
        yaw=yaw,
        pitch=pitch,
    )
    target = Path(output) if output else Path(path).with_suffix(f".at-{when[-1]:.3f}s.png")
    return save(pixels, target)
