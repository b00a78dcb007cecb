"""A picture of two meshes at a contact: the way of the moving one, where it began, touches and would have ended."""

import math

import numpy as np

from bridge import picture, raster
from bridge.raster import Surface, linear
from bridge.scene.frames import Pose, place

FIRST = (0.85, 0.84, 0.81)
SECOND = (0.93, 0.52, 0.20)
BEGIN = (0.22, 0.50, 0.88)
END = (0.66, 0.34, 0.72)
CONTACT = (0.80, 0.08, 0.16)
NORMAL = (0.05, 0.45, 0.34)
WAY = (0.35, 0.38, 0.44)
ARROW = 0.3
"""Length of the normal, as a share of the radius of all that is shown."""
GHOST = 0.55
"""How strongly the poses at both ends are drawn."""
GHOST_THROUGH = 0.13
"""And where something is before them."""


def draw_contact(
    first: np.ndarray,
    second: np.ndarray,
    start: Pose,
    end: Pose,
    contact: Pose,
    way: np.ndarray,
    point: np.ndarray | None,
    normal: np.ndarray | None,
    *,
    names: tuple[str, str] = ("A", "B"),
    title: str = "",
    note: str = "",
    width: int = 1280,
    height: int = 720,
    yaw: float | None = None,
    pitch: float | None = None,
) -> np.ndarray:
    """Draw (height, width, 3) u1: the first mesh, the second at three poses, and the contact.

    first, second: (n, 3, 3) triangles in their own frames, m; start, end, contact: poses of the second in the frame of
    the first; way: (k, 3) places of its centre in between; point, normal: of the contact, None for none. The view is
    chosen unless yaw or pitch (rad) is given.
    """
    began, ended, touching = (place(pose, second.reshape(-1, 3)).reshape(-1, 3, 3) for pose in (start, end, contact))
    shown = np.concatenate([part.reshape(-1, 3) for part in (first, began, ended, touching)])
    low, high = shown.min(axis=0), shown.max(axis=0)
    centre, radius = 0.5 * (low + high), 0.5 * float(np.linalg.norm(high - low))
    if point is not None and normal is not None:
        shown = np.concatenate([shown, [point + ARROW * radius * normal]])
    everything = np.concatenate([first, touching])
    size = min(radius, 0.5 * float(np.linalg.norm(np.ptp(second.reshape(-1, 3), axis=0))))
    arrow = np.zeros(3) if normal is None else normal
    if yaw is None or pitch is None:
        of_interest = way if point is None else np.concatenate([way, np.tile(point, (3 * len(way), 1))])
        chosen = picture.choose_camera(everything, centre, radius, of_interest, arrow, width / height)
        out = chosen.eye - centre
        yaw = math.atan2(out[1], out[0]) if yaw is None else yaw
        pitch = math.atan2(out[2], math.hypot(out[0], out[1])) if pitch is None else pitch
    camera = picture.fit(picture.aim(centre, radius, yaw, pitch), shown, width, height)

    solid = Surface.join([raster.flat(first, FIRST, 0.10), raster.flat(touching, SECOND, 0.15)])
    marks = _marks(way, point, normal, radius, size)
    out = camera.eye - camera.target
    lights = raster.cast(solid.triangles, centre, 1.25 * radius, math.atan2(out[1], out[0]) - 0.9)
    big_width, big_height = picture.OVERSAMPLE * width, picture.OVERSAMPLE * height
    floor = float(shown[:, 2].min())
    colour, depth = picture.backdrop(camera, lights, centre, radius, floor, big_width, big_height)
    picture.lay(colour, depth, raster.shade(solid, lights, camera, big_width, big_height), 1.0, 0.0)
    for triangles, tint in ((began, BEGIN), (ended, END)):
        ghost = raster.shade(raster.flat(triangles, tint), lights, camera, big_width, big_height)
        picture.lay(colour, depth, ghost, GHOST, GHOST_THROUGH, keep_depth=True)
    picture.lay(colour, depth, raster.shade(marks, None, camera, big_width, big_height), 1.0, 0.45)
    pixels = picture.finish(colour, width, height)
    keys = [
        (FIRST, names[0]),
        (SECOND, f"{names[1]} at the contact" if point is not None else f"{names[1]} as far as free"),
    ]
    keys += [(BEGIN, "start"), (END, "end asked for")]
    if point is not None:
        keys += [(CONTACT, "contact"), (NORMAL, "normal")]
    return picture.letter(pixels, title=title, text=note, keys=keys, spacing=picture.grid_spacing(radius))


def _marks(way: np.ndarray, point: np.ndarray | None, normal: np.ndarray | None, radius: float, size: float) -> Surface:
    """The way of the second's centre, the contact point and its normal."""
    thick = 0.006 * radius
    parts = [raster.tube(way, np.full(len(way), 0.5 * thick), np.tile(linear(WAY), (len(way), 1)))]
    if point is not None and normal is not None:
        parts.append(raster.ball(point, min(2.6 * thick, 0.2 * size), CONTACT))
        parts.append(raster.arrow(point, point + ARROW * radius * normal, 1.1 * thick, NORMAL))
    return Surface.join(parts)
