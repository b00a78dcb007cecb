"""Scenes of moving bodies whose course is known by a formula, run through the daemon's own step.

Each function builds a world, runs it and returns a :class:`tools.truths.truth.Truth`.
"""
