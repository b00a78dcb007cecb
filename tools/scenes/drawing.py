"""Pictures of generated scenes."""

import math

import numpy as np

from bridge import picture, raster
from tools.scenes.clearance import placed
from tools.scenes.scene import Scene

_MOVING = (0.93, 0.45, 0.16)
VIEWS = {
    "door_in_body": (1.05, 0.30),
    "motor_in_door": (-1.15, 0.35),
    "two_doors": (0.75, 0.35),
    "pylon_part": (-0.9, 0.45),
}
"""Yaw and pitch (rad) from which a scene is best seen."""


def draw(
    scene: Scene,
    poses: dict[str, np.ndarray] | None = None,
    width: int = 1280,
    height: int = 720,
    view: tuple[float, float] | None = None,
    only: tuple[str, ...] = (),
) -> np.ndarray:
    """(height, width, 3) u1: the parts at their poses, or at ``poses`` (part name -> (7,)); the moving one is orange.

    ``view``: yaw and pitch in rad; ``only``: names of the parts to show, all when empty.
    """
    shown = [part for part in scene.parts if not only or part.name in only]
    bodies = [placed(part, (poses or {}).get(part.name)) for part in shown]
    points = np.concatenate(bodies).reshape(-1, 3)
    centre = 0.5 * (points.min(axis=0) + points.max(axis=0))
    radius = float(np.linalg.norm(points - centre, axis=1).max())
    yaw, pitch = view or VIEWS.get(scene.name, (0.8, 0.5))
    camera = picture.fit(picture.aim(centre, radius, yaw, pitch), points, width, height)
    surfaces = []
    grey = 0
    for part, triangles in zip(shown, bodies, strict=True):
        if part.moving:
            colour = _MOVING
        else:
            colour = picture.BODY_COLOURS[grey % len(picture.BODY_COLOURS)]
            grey += 1
        surfaces.append(raster.flat(triangles, colour, 0.1))
    solid = raster.Surface.join(surfaces)
    wide, high = picture.OVERSAMPLE * width, picture.OVERSAMPLE * height
    out = camera.eye - camera.target
    lights = raster.cast(solid.triangles, centre, 1.25 * radius, math.atan2(out[1], out[0]) - 0.9)
    layer = raster.shade(solid, lights, camera, wide, high)
    colour = np.where(np.isfinite(layer.depth)[:, :, None], layer.colour, raster.linear(picture.SKY))
    small = colour.reshape(height, picture.OVERSAMPLE, width, picture.OVERSAMPLE, 3).mean(axis=(1, 3))
    return np.round(255.0 * raster.encode(np.clip(small, 0.0, 1.0))).astype(np.uint8)
