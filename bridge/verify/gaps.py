"""Certificates of distances: no two bodies ever meet, none comes nearer than eps_alert, and what is reported is so."""

from typing import Any

import numpy as np

from bridge.separation import near_pairs, pair_distances, winding
from bridge.verify.certificate import Certificate
from bridge.verify.history import History
from bridge.verify.near import Meeting, Neighbours, Points
from rtcore.tables import DEGRADED_CONTACTS

TOLERANCE = 1e-3
"""Share of eps_alert by which the continuous test may let bodies come nearer."""
ROUNDING = 1e-13
"""m per m of coordinates."""
ENTRY = 0.75
"""What is nearer than this share of the way from eps_safety to eps_break is a contact."""
DEEPEST = 2e-4
"""Share of eps_safety within which a contact of the tool counts as the nearest one of its kind."""
CARRIED = 2e-3
"""The same for contacts of bodies, which are carried along for a while."""


class GapCertificates:
    """Judges the distances of a log row by row."""

    def __init__(self, history: History):
        self._history = history
        self.gap = Certificate("gap", "no two bodies are nearer than eps_alert, nor in one another", "m", least=True)
        self.between = Certificate("between ticks", "proven apart on the whole way of the tick", "m", least=True)
        self.told = Certificate("gap told", "the least gap is as reported", "m")
        self._begun: dict[tuple[int, int], float] = {}
        self._size = max(
            float(np.abs(history.model.bodies["position"]).max(initial=0.0)) + max(s.radius for s in history.shapes),
            1e-9,
        )
        self._neighbours = Neighbours(history)
        self._tip = _Tip(history) if not history.has_mesh else None

    def certificates(self) -> list[Certificate]:
        """In the order of the table."""
        return [self.gap, self.between, self.told]

    def judge(self, row: int, meetings: list[Meeting]) -> None:
        """The tick of a row that follows the one before."""
        for meeting in meetings:
            self._judge_pair(row, meeting, min(meeting.least, meeting.start))
            self.between.judge(self._history.ticks[row], meeting.proven, ROUNDING * self._size, self._names(meeting))
        if self._tip is not None:
            self._judge_tip(row)
        else:
            self._judge_told(row, meetings)

    def judge_standing(self, row: int, meetings: list[Meeting]) -> None:
        """The end of a tick of which the start is not known."""
        for meeting in meetings:
            self._judge_pair(row, meeting, meeting.start)
        if self._tip is not None:
            self._judge_tip(row)

    def _names(self, meeting: Meeting) -> str:
        names = self._history.names
        return f"{names[meeting.first]}, {names[meeting.second]}"

    def _judge_pair(self, row: int, meeting: Meeting, distance: float) -> None:
        alert = float(self._history.world["eps_alert"])
        key = (meeting.first, meeting.second)
        distance = 0.0 if meeting.inside else distance
        # What began nearer may stay as near as it began; what is seen first where bodies meet may not.
        floor = self._begun.get(key)
        if floor is None:
            began = meeting.start if 0.0 < meeting.start < alert else alert
            floor = self._begun[key] = began
        if not np.isfinite(distance):
            return
        bar = floor - TOLERANCE * alert - ROUNDING * self._size
        self.gap.judge(self._history.ticks[row], distance, bar, self._names(meeting) + (" (inside)" * meeting.inside))

    def _judge_told(self, row: int, meetings: list[Meeting]) -> None:
        history = self._history
        report: Any = history.report[row]
        world = history.world
        missing = bool(report["degraded"] & DEGRADED_CONTACTS)
        entry = float(world["eps_safety"] + ENTRY * (world["eps_break"] - world["eps_safety"]))
        free = set(history.free)
        for of_tool in (True, False):
            if of_tool:
                near = [each.start for each in meetings if each.second == history.tool]
                told, count = float(report["smallest_gap"]), int(report["contact_count"])
            else:
                near = [
                    each.start
                    for each in meetings
                    if each.second != history.tool and (each.first in free or each.second in free)
                ]
                told, count = float(report["body_gap"]), int(report["body_contacts"])
            found = min(near, default=np.inf)
            what = "tool" if of_tool else "bodies"
            if count == 0 and found >= entry:
                continue
            share = DEEPEST if of_tool else CARRIED
            off = abs(told - found) if count else entry - found
            if missing:  # what was listed is not nearer than the nearest
                if count == 0:
                    self.told.leave("contacts may be missing")
                    continue
                off = max(found - told, 0.0)
                if not of_tool and off > share * float(world["eps_safety"]):
                    waited = self._waited(row, told)
                    if waited is None:
                        self.told.leave("contacts may be missing")
                        continue
                    off = waited
            self.told.judge(history.ticks[row], off, share * float(world["eps_safety"]), what)

    def _waited(self, row: int, told: float) -> float | None:
        """How far the gap told is from that of a contact that waits for its turn to be listed, m; None: no telling.

        Such a contact keeps its points and its normal, which ride on the bodies: while they turn its gap may fall below
        their distance. All contacts were listed in the last tick that was not short of work, or after it.
        """
        history = self._history
        enough = CARRIED * float(history.world["eps_safety"])
        best = np.inf
        for k in range(row - 1, 0, -1):
            if not (history.follows[k + 1] and history.follows[k] and history.known[k] and history.known[k - 1]):
                return None
            for meeting in self._neighbours.moving(k, points=True):
                if meeting.points is not None and {meeting.first, meeting.second} & set(history.free):
                    best = min(best, float(np.abs(self._carried(meeting, meeting.points, k, row) - told).min()))
            if best <= enough or not history.report["degraded"][k] & DEGRADED_CONTACTS:
                return best
        return None

    def _carried(self, meeting: Meeting, points: Points, listed: int, row: int) -> np.ndarray:
        """(k,) gaps at the start of a row of contacts that were found at that of another: points ride on their bodies.

        So does the normal, on the first one; that of a ball points from its centre.
        """
        history = self._history
        radii = [history.shapes[body].rounding for body in (meeting.first, meeting.second)]
        cores = (points.first - radii[0] * points.normal, points.second + radii[1] * points.normal)
        here = []
        for body, core in zip((meeting.first, meeting.second), cores, strict=True):
            then, now = history.pose(body, listed - 1), history.pose(body, row - 1)
            here.append(now.place((core - then.position) @ then.rotation))
            if body == meeting.first:
                normal = points.normal @ then.rotation @ now.rotation.T
        apart = here[1] - here[0]
        if history.is_ball(meeting.first):
            return np.linalg.norm(apart, axis=1) - sum(radii)
        return np.sum(apart * normal, axis=1) - sum(radii)

    def _judge_tip(self, row: int) -> None:
        history = self._history
        assert self._tip is not None
        tick = history.ticks[row]
        alert = float(history.world["eps_alert"])
        distances, points = self._tip.along(row)
        for body, distance in distances.items():
            where = f"{history.names[body]}, tip"
            begun = self._begun.setdefault((body, history.tool), alert if not 0.0 < distance < alert else distance)
            bar = begun - TOLERANCE * alert - ROUNDING * self._size
            self.gap.judge(tick, distance, bar, where)
            self.between.judge(tick, distance, ROUNDING * self._size, where)
        report: Any = history.report[row]
        if report["degraded"] & DEGRADED_CONTACTS:
            self.told.leave("contacts may be missing")
        elif report["contact_count"] > 0:
            off = float(np.abs(np.array(points) - float(report["smallest_gap"])).min())
            self.told.judge(tick, off, 1e-9 * self._size, "tip")


class _Tip:
    """A sphere tip among meshes: it goes along straight ways, so that its distance is known all along them."""

    def __init__(self, history: History):
        self._history = history
        self._bounds = [(s.triangles.min(axis=1), s.triangles.max(axis=1)) for s in history.shapes[:-1]]

    def along(self, row: int) -> tuple[dict[int, float], list[float]]:
        """Least distance of the tip's surface to each body within reach on its way in a tick, and at each way point."""
        history = self._history
        report: Any = history.report[row]
        path = np.array(report["path"][: max(int(report["path_count"]), 1)])
        if len(path) == 1:
            path = np.concatenate([path, path])
        ways = np.stack([path[:-1], path[1:], path[1:]], axis=1)
        reach = history.tip_radius + float(history.world["eps_break"])
        found: dict[int, float] = {}
        at_points = np.full(len(path), np.inf)
        for body in range(history.tool):
            pose = history.pose(body, row)
            local = (ways - pose.position) @ pose.rotation
            triangles = history.shapes[body].triangles
            pairs = near_pairs(local, triangles, reach)
            if len(pairs):
                distance = float(pair_distances(local[pairs[:, 0]], triangles[pairs[:, 1]]).min())
                if distance <= reach:
                    found[body] = distance - history.tip_radius
                spots = np.repeat(((path - pose.position) @ pose.rotation)[:, None], 3, axis=1)
                pairs = near_pairs(spots, triangles, reach)
                if len(pairs):
                    np.minimum.at(at_points, pairs[:, 0], pair_distances(spots[pairs[:, 0]], triangles[pairs[:, 1]]))
            if history.shapes[body].closed and history.tip_radius > 0.0:
                middle = (path[-1] - pose.position) @ pose.rotation
                low, high = self._bounds[body]
                if (
                    np.all((middle > low.min(axis=0)) & (middle < high.max(axis=0)))
                    and abs(winding(middle, triangles)) > 0.5
                ):
                    found[body] = -history.tip_radius
        return found, [float(each) - history.tip_radius for each in at_points if np.isfinite(each)] or [np.inf]
