"""A small off-screen renderer: triangles in, a shaded picture out. Needs no display and no graphics card.

PyBullet's software renderer draws large meshes flat and without shadows, so pictures are made here: a depth-buffer
rasteriser in homogeneous coordinates (Olano and Greer 1997: no clipping needed), and light from many directions, each
with a shadow map, which gives soft shadows and darkened creases in which a path on a surface is easy to read.
"""

import math
from dataclasses import dataclass

import numpy as np
from numba import njit

SHADOW_SIZE = 640
"""Pixels of a shadow map's side."""

CREASE_COSINE = 0.7
"""Faces whose normals differ by more than this keep a hard edge between them."""


@dataclass(frozen=True)
class Camera:
    """A pinhole camera."""

    eye: np.ndarray
    target: np.ndarray
    field_of_view: float = 0.6
    """vertical, rad"""
    up: tuple[float, float, float] = (0.0, 0.0, 1.0)

    def matrix(self, width: int, height: int) -> np.ndarray:
        """(3, 4) scene -> (x w, y w, w): pixels times view depth, view depth in m."""
        forward = self.target - self.eye
        forward = forward / np.linalg.norm(forward)
        right = np.cross(forward, np.asarray(self.up, dtype=float))
        if np.linalg.norm(right) < 1e-6:  # looking straight down: any direction will do for the picture's right
            right = np.array([1.0, 0.0, 0.0])
        right = right / np.linalg.norm(right)
        down = np.cross(forward, right)
        focal = 0.5 * height / math.tan(0.5 * self.field_of_view)
        rows = np.array([focal * right + 0.5 * width * forward, focal * down + 0.5 * height * forward, forward])
        return np.hstack([rows, -(rows @ self.eye)[:, None]])

    def project(self, points: np.ndarray, width: int, height: int) -> np.ndarray:
        """(n, 3) scene points -> (n, 3) pixel x, pixel y, view depth (m)."""
        matrix = self.matrix(width, height)
        image = np.asarray(points, dtype=float) @ matrix[:, :3].T + matrix[:, 3]
        return np.column_stack([image[:, :2] / image[:, 2:], image[:, 2]])


@dataclass
class Surface:
    """Triangles with what is needed to shade them."""

    triangles: np.ndarray
    """(n, 3, 3) m, scene"""
    normals: np.ndarray
    """(n, 3, 3) unit, one per corner"""
    colours: np.ndarray
    """(n, 3) linear light, 0..1"""
    gloss: np.ndarray
    """(n,) 0 matt .. 1 polished"""

    @staticmethod
    def join(surfaces: "list[Surface]") -> "Surface":
        """One surface from several."""
        return Surface(
            np.concatenate([s.triangles for s in surfaces]),
            np.concatenate([s.normals for s in surfaces]),
            np.concatenate([s.colours for s in surfaces]),
            np.concatenate([s.gloss for s in surfaces]),
        )


def linear(colour: tuple[float, float, float] | np.ndarray) -> np.ndarray:
    """sRGB (0..1) to linear light."""
    c = np.asarray(colour, dtype=float)
    return np.where(c <= 0.04045, c / 12.92, ((np.maximum(c, 0.0) + 0.055) / 1.055) ** 2.4)


def encode(light: np.ndarray) -> np.ndarray:
    """Linear light to sRGB (0..1)."""
    c = np.clip(light, 0.0, 1.0)
    return np.where(c <= 0.0031308, 12.92 * c, 1.055 * c ** (1 / 2.4) - 0.055)


def smooth_normals(triangles: np.ndarray) -> np.ndarray:
    """(n, 3, 3) corner normals of a triangle soup: averaged by area over neighbours across soft edges only."""
    face = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    length = np.linalg.norm(face, axis=1)
    unit = face / np.maximum(length, 1e-300)[:, None]
    corners = triangles.reshape(-1, 3)
    size = float(np.ptp(corners, axis=0).max()) or 1.0
    _, vertex = np.unique(np.round(corners / (size * 1e-6)).astype(np.int64), axis=0, return_inverse=True)
    vertex = vertex.reshape(-1)
    order = np.argsort(vertex, kind="stable")
    starts = np.concatenate([np.searchsorted(vertex[order], np.arange(vertex.max() + 1)), [len(order)]])
    return _average(face, unit, order, starts).reshape(-1, 3, 3)


@njit(cache=True, nogil=True, error_model="numpy")
def _average(face, unit, order, starts):
    normals = np.zeros((len(order), 3))
    for group in range(len(starts) - 1):
        for i in range(starts[group], starts[group + 1]):
            own = order[i] // 3
            x, y, z = unit[own, 0], unit[own, 1], unit[own, 2]
            sx, sy, sz = 0.0, 0.0, 0.0
            for j in range(starts[group], starts[group + 1]):
                other = order[j] // 3
                if x * unit[other, 0] + y * unit[other, 1] + z * unit[other, 2] >= CREASE_COSINE:
                    sx += face[other, 0]
                    sy += face[other, 1]
                    sz += face[other, 2]
            norm = math.sqrt(sx * sx + sy * sy + sz * sz)
            if norm < 1e-300:
                sx, sy, sz, norm = x, y, z, 1.0
            normals[order[i], 0] = sx / norm
            normals[order[i], 1] = sy / norm
            normals[order[i], 2] = sz / norm
    return normals


@njit(cache=True, nogil=True, error_model="numpy")
def rasterise(image, depths, width, height, depth, ids, weights):
    """Draw triangles into a depth buffer.

    ``image`` (n, 3, 3): per corner (x w, y w, w) in pixels; ``depths`` (n, 3): per corner, smaller is nearer. Fills
    ``depth`` (height, width), ``ids`` (height, width; the nearest triangle or what stood there) and ``weights``
    (height, width, 2; of its first two corners), all prepared by the caller.
    """
    for t in range(len(image)):
        x0, y0, w0 = image[t, 0, 0], image[t, 0, 1], image[t, 0, 2]
        x1, y1, w1 = image[t, 1, 0], image[t, 1, 1], image[t, 1, 2]
        x2, y2, w2 = image[t, 2, 0], image[t, 2, 1], image[t, 2, 2]
        # rows of the adjugate: edge functions e_i(x, y) = a_i x + b_i y + c_i, proportional to corner weight / w
        a0, b0, c0 = y1 * w2 - y2 * w1, x2 * w1 - x1 * w2, x1 * y2 - x2 * y1
        a1, b1, c1 = y2 * w0 - y0 * w2, x0 * w2 - x2 * w0, x2 * y0 - x0 * y2
        a2, b2, c2 = y0 * w1 - y1 * w0, x1 * w0 - x0 * w1, x0 * y1 - x1 * y0
        det = x0 * a0 + y0 * b0 + w0 * c0
        if det == 0.0:
            continue
        if det < 0.0:  # seen from behind: surfaces are drawn on both sides
            a0, b0, c0, a1, b1, c1, a2, b2, c2 = -a0, -b0, -c0, -a1, -b1, -c1, -a2, -b2, -c2
        left, right, top, bottom = 0, width - 1, 0, height - 1
        if w0 > 1e-9 and w1 > 1e-9 and w2 > 1e-9:
            left = max(left, math.floor(min(x0 / w0, x1 / w1, x2 / w2) - 0.5))
            right = min(right, math.ceil(max(x0 / w0, x1 / w1, x2 / w2)))
            top = max(top, math.floor(min(y0 / w0, y1 / w1, y2 / w2) - 0.5))
            bottom = min(bottom, math.ceil(max(y0 / w0, y1 / w1, y2 / w2)))
        elif w0 <= 1e-9 and w1 <= 1e-9 and w2 <= 1e-9:
            continue
        for row in range(top, bottom + 1):
            y = row + 0.5
            for column in range(left, right + 1):
                x = column + 0.5
                e0 = a0 * x + b0 * y + c0
                e1 = a1 * x + b1 * y + c1
                e2 = a2 * x + b2 * y + c2
                if e0 < 0.0 or e1 < 0.0 or e2 < 0.0:
                    continue
                total = e0 + e1 + e2
                if not total > 0.0:
                    continue
                u, v = e0 / total, e1 / total
                z = u * depths[t, 0] + v * depths[t, 1] + (1.0 - u - v) * depths[t, 2]
                if z < depth[row, column]:
                    depth[row, column] = z
                    ids[row, column] = t
                    weights[row, column, 0] = u
                    weights[row, column, 1] = v


@dataclass
class Buffer:
    """What a camera sees: per pixel view depth (inf: nothing), triangle (-1: nothing) and corner weights."""

    depth: np.ndarray
    ids: np.ndarray
    weights: np.ndarray


def look(triangles: np.ndarray, camera: Camera, width: int, height: int) -> Buffer:
    """Rasterise (n, 3, 3) triangles as seen by a camera."""
    matrix = camera.matrix(width, height)
    image = triangles @ matrix[:, :3].T + matrix[:, 3]
    return _draw(np.ascontiguousarray(image), np.ascontiguousarray(image[:, :, 2]), width, height)


def _draw(image: np.ndarray, depths: np.ndarray, width: int, height: int) -> Buffer:
    buffer = Buffer(
        np.full((height, width), np.inf), np.full((height, width), -1, np.int32), np.zeros((height, width, 2))
    )
    rasterise(image, depths, width, height, buffer.depth, buffer.ids, buffer.weights)
    return buffer


@dataclass
class Lights:
    """Directional lights with a shadow map each."""

    directions: np.ndarray
    """(n, 3) unit, towards the light"""
    radiance: np.ndarray
    """(n, 3) linear"""
    matrices: np.ndarray
    """(n, 3, 4) scene -> shadow map pixel x, pixel y, depth (m)"""
    maps: np.ndarray
    """(n, size, size) depth of the nearest surface, m"""
    texel: float
    """m"""


def light_directions(sun_yaw: float, sky: int = 56, sun: int = 14) -> tuple[np.ndarray, np.ndarray]:
    """A sky dome, a little brighter above and bluish, and a warm sun of some width: directions and radiance.

    ``sun_yaw``: where around the vertical the sun stands, rad.

    Together they light an unshaded horizontal white surface to about 1.
    """
    index = np.arange(sky) + 0.5
    height = index / sky
    angle = index * math.pi * (3.0 - math.sqrt(5.0))
    ring = np.sqrt(1.0 - height**2)
    dome = np.column_stack([ring * np.cos(angle), ring * np.sin(angle), height])
    dome_light = (0.55 + 0.45 * height)[:, None] * np.array([0.93, 0.97, 1.06])
    dome_light *= 0.52 / np.sum(dome_light.mean(axis=1) * dome[:, 2])
    middle = np.array([0.62 * math.cos(sun_yaw), 0.62 * math.sin(sun_yaw), 0.785])
    middle /= np.linalg.norm(middle)
    side = np.cross(middle, [0.0, 0.0, 1.0])
    side /= np.linalg.norm(side)
    other = np.cross(middle, side)
    spread = 0.075 * np.sqrt((np.arange(sun) + 0.5) / sun)
    turn = np.arange(sun) * math.pi * (3.0 - math.sqrt(5.0))
    disc = middle + (spread * np.cos(turn))[:, None] * side + (spread * np.sin(turn))[:, None] * other
    disc /= np.linalg.norm(disc, axis=1)[:, None]
    sun_light = np.tile(np.array([1.08, 1.0, 0.88]), (sun, 1))
    sun_light *= 0.52 / np.sum(sun_light.mean(axis=1) * disc[:, 2])
    return np.concatenate([dome, disc]), np.concatenate([dome_light, sun_light])


def cast(triangles: np.ndarray, centre: np.ndarray, radius: float, sun_yaw: float) -> Lights:
    """Shadow maps of (n, 3, 3) triangles inside a sphere, for all lights."""
    directions, radiance = light_directions(sun_yaw)
    size = SHADOW_SIZE
    texel = 2.0 * radius / size
    matrices = np.zeros((len(directions), 3, 4))
    maps = np.zeros((len(directions), size, size), np.float32)
    for i, direction in enumerate(directions):
        side = np.cross(direction, [0.0, 0.0, 1.0] if abs(direction[2]) < 0.99 else [1.0, 0.0, 0.0])
        side /= np.linalg.norm(side)
        rows = np.array([side / texel, np.cross(direction, side) / texel, -direction])
        matrix = np.hstack([rows, (np.array([0.5 * size, 0.5 * size, 0.0]) - rows @ centre)[:, None]])
        image = triangles @ matrix[:, :3].T + matrix[:, 3]
        depths = np.ascontiguousarray(image[:, :, 2])
        image[:, :, 2] = 1.0  # orthographic
        matrices[i] = matrix
        maps[i] = _draw(np.ascontiguousarray(image), depths, size, size).depth
    return Lights(directions, radiance, matrices, maps, texel)


@njit(cache=True, nogil=True, error_model="numpy")
def _illuminate(points, normals, eye, gloss, directions, radiance, matrices, maps, texel, out, shine):
    """Per point: irradiance from every light that no surface blocks, and its glossy reflection to the eye."""
    size = maps.shape[1]
    for i in range(len(points)):
        nx, ny, nz = normals[i, 0], normals[i, 1], normals[i, 2]
        vx, vy, vz = eye[0] - points[i, 0], eye[1] - points[i, 1], eye[2] - points[i, 2]
        length = math.sqrt(vx * vx + vy * vy + vz * vz)
        vx, vy, vz = vx / length, vy / length, vz / length
        # start a texel and a half off the surface so that it does not shade itself
        px = points[i, 0] + 1.5 * texel * nx
        py = points[i, 1] + 1.5 * texel * ny
        pz = points[i, 2] + 1.5 * texel * nz
        for k in range(len(directions)):
            lx, ly, lz = directions[k, 0], directions[k, 1], directions[k, 2]
            cosine = nx * lx + ny * ly + nz * lz
            if cosine <= 0.0:
                continue
            m = matrices[k]
            x = m[0, 0] * px + m[0, 1] * py + m[0, 2] * pz + m[0, 3] - 0.5
            y = m[1, 0] * px + m[1, 1] * py + m[1, 2] * pz + m[1, 3] - 0.5
            z = m[2, 0] * px + m[2, 1] * py + m[2, 2] * pz + m[2, 3] - texel
            column, row = math.floor(x), math.floor(y)
            lit = 1.0
            if 0 <= column < size - 1 and 0 <= row < size - 1:
                fx, fy = x - column, y - row
                lit = 0.0
                if z <= maps[k, row, column]:
                    lit += (1.0 - fx) * (1.0 - fy)
                if z <= maps[k, row, column + 1]:
                    lit += fx * (1.0 - fy)
                if z <= maps[k, row + 1, column]:
                    lit += (1.0 - fx) * fy
                if z <= maps[k, row + 1, column + 1]:
                    lit += fx * fy
            if lit == 0.0:
                continue
            for c in range(3):
                out[i, c] += lit * cosine * radiance[k, c]
            if gloss[i] > 0.0:
                hx, hy, hz = lx + vx, ly + vy, lz + vz
                half = math.sqrt(hx * hx + hy * hy + hz * hz)
                reflection = (nx * hx + ny * hy + nz * hz) / half
                if reflection > 0.0:
                    shine[i] += lit * gloss[i] * cosine * 6.0 * reflection**90 * radiance[k, 1]


@dataclass
class Shaded:
    """A shaded layer: linear colour and view depth per pixel; depth is inf where nothing was drawn."""

    colour: np.ndarray
    depth: np.ndarray


def shade(surface: Surface, lights: Lights | None, camera: Camera, width: int, height: int) -> Shaded:
    """Draw and light a surface (without ``lights``: evenly); colours are linear, (height, width, 3)."""
    buffer = look(surface.triangles, camera, width, height)
    colour = np.zeros((height, width, 3))
    rows, columns = np.nonzero(buffer.ids >= 0)
    ids = buffer.ids[rows, columns]
    first = buffer.weights[rows, columns]
    weight = np.column_stack([first, 1.0 - first.sum(axis=1)])
    points = np.einsum("nk,nkc->nc", weight, surface.triangles[ids])
    normals = np.einsum("nk,nkc->nc", weight, surface.normals[ids])
    normals /= np.maximum(np.linalg.norm(normals, axis=1), 1e-12)[:, None]
    behind = np.einsum("nc,nc->n", normals, camera.eye - points) < 0.0
    normals[behind] *= -1.0
    if lights is None:
        colour[rows, columns] = surface.colours[ids] * (1.0 + 0.25 * normals[:, 2:3])
        return Shaded(colour, buffer.depth)
    light, shine = illuminate(points, normals, camera.eye, surface.gloss[ids], lights)
    # a little light comes back from the ground and from the surfaces around
    bounce = 0.10 * (0.6 - 0.4 * normals[:, 2:3])
    colour[rows, columns] = surface.colours[ids] * (light + bounce) + shine[:, None]
    return Shaded(colour, buffer.depth)


def illuminate(
    points: np.ndarray, normals: np.ndarray, eye: np.ndarray, gloss: np.ndarray, lights: Lights
) -> tuple[np.ndarray, np.ndarray]:
    """Irradiance (n, 3) and glossy reflection (n,) at points (n, 3) with unit normals (n, 3)."""
    out, shine = np.zeros((len(points), 3)), np.zeros(len(points))
    _illuminate(
        np.ascontiguousarray(points),
        np.ascontiguousarray(normals),
        np.asarray(eye, dtype=float),
        np.ascontiguousarray(gloss, dtype=float),
        lights.directions,
        lights.radiance,
        lights.matrices,
        lights.maps,
        lights.texel,
        out,
        shine,
    )
    return out, shine


# ---- shapes to draw with ---------------------------------------------------------------------------------------------


def flat(triangles: np.ndarray, colour: tuple[float, float, float], gloss: float = 0.0) -> Surface:
    """A surface of one sRGB colour with smooth normals."""
    n = len(triangles)
    return Surface(triangles, smooth_normals(triangles), np.tile(linear(colour), (n, 1)), np.full(n, gloss))


def ball(centre: np.ndarray, radius: float, colour: tuple[float, float, float], gloss: float = 0.0) -> Surface:
    """A sphere."""
    stacks, slices = 24, 48
    theta = np.linspace(0.0, math.pi, stacks + 1)
    phi = np.linspace(0.0, 2.0 * math.pi, slices + 1)
    grid = np.stack(
        [
            np.outer(np.sin(theta), np.cos(phi)),
            np.outer(np.sin(theta), np.sin(phi)),
            np.outer(np.cos(theta), np.ones(slices + 1)),
        ],
        axis=-1,
    )
    normals = _quads(grid)
    n = len(normals)
    return Surface(np.asarray(centre) + radius * normals, normals, np.tile(linear(colour), (n, 1)), np.full(n, gloss))


def _quads(grid: np.ndarray) -> np.ndarray:
    """(a, b, 3) grid of points -> (2 (a-1) (b-1), 3, 3) triangles."""
    p, q, r, s = grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:]
    return np.concatenate([np.stack(half, axis=2).reshape(-1, 3, 3) for half in ([p, q, r], [p, r, s])])


def tube(points: np.ndarray, radii: np.ndarray, colours: np.ndarray, gloss: float = 0.0, sides: int = 10) -> Surface:
    """A tube along (n, 3) points with a radius and a linear colour (n, 3) at each; a cone where a radius goes to 0."""
    points = np.asarray(points, dtype=float)
    tangent = np.gradient(points, axis=0)
    tangent /= np.maximum(np.linalg.norm(tangent, axis=1), 1e-12)[:, None]
    # carry one normal along the curve (rotation-minimising frame by projection), so that the tube does not twist
    normal = np.zeros_like(points)
    start = np.eye(3)[int(np.argmin(np.abs(tangent[0])))]
    previous = start - tangent[0] * (start @ tangent[0])
    for i, t in enumerate(tangent):
        candidate = previous - t * (previous @ t)
        length = np.linalg.norm(candidate)
        if length < 1e-9:
            candidate = np.cross(t, np.eye(3)[int(np.argmin(np.abs(t)))])
            length = np.linalg.norm(candidate)
        previous = candidate / length
        normal[i] = previous
    binormal = np.cross(tangent, normal)
    angle = np.linspace(0.0, 2.0 * math.pi, sides + 1)
    ring = normal[:, None] * np.cos(angle)[None, :, None] + binormal[:, None] * np.sin(angle)[None, :, None]
    triangles = _quads(points[:, None] + np.asarray(radii, dtype=float)[:, None, None] * ring)
    corner_normals = _quads(ring)
    per_segment = 0.5 * (colours[:-1] + colours[1:])
    cells = np.repeat(per_segment, sides, axis=0)
    return Surface(
        triangles, corner_normals, np.concatenate([cells, cells]), np.full(len(triangles), gloss, dtype=float)
    )


def arrow(start: np.ndarray, end: np.ndarray, radius: float, colour: tuple[float, float, float]) -> Surface:
    """An arrow with a cone for its head."""
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    length = float(np.linalg.norm(end - start))
    head = min(4.2 * radius, 0.6 * length)
    along = np.array([0.0, 1e-6, length - head, length - head + 1e-6, length]) / max(length, 1e-12)
    points = start + along[:, None] * (end - start)
    radii = np.array([0.0, radius, radius, 2.3 * radius, 0.0])
    return tube(points, radii, np.tile(linear(colour), (5, 1)), gloss=0.25, sides=20)
