"""What every section of a configuration has in common: the base of all, types of values, findings, and poses."""

import math
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

QUATERNION_TOLERANCE = 1e-3
"""Farthest a given quaternion's norm may be from 1; nearer ones are normalised."""

Vector3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]
Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
NOWHERE: Vector3 = (0.0, 0.0, 0.0)


class Section(BaseModel):
    """What all sections share: no unknown keys, no infinities, read-only after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


def wrong(key: str, value: object, right: str) -> PydanticCustomError:
    """A cross-check's finding about one key of the section at hand."""
    return PydanticCustomError("cross_check", "{right}", {"key": key, "value": value, "right": right})


def unit(quaternion: Quaternion) -> Quaternion:
    """The same with norm 1; an error if its norm is not near it."""
    norm = math.sqrt(sum(c * c for c in quaternion))
    if abs(norm - 1.0) > QUATERNION_TOLERANCE:
        raise PydanticCustomError(
            "not_unit",
            "must be a unit quaternion [x, y, z, w] (norm within 1e-3 of 1; its norm is {norm})",
            {"norm": f"{norm:.6g}"},
        )
    x, y, z, w = (c / norm for c in quaternion)
    return (x, y, z, w)


class Pose(Section):
    """Where something stands: its coordinates -> the scene frame."""

    position: Vector3 = (0.0, 0.0, 0.0)
    """m"""
    orientation: Annotated[Quaternion, AfterValidator(unit)] = (0.0, 0.0, 0.0, 1.0)
    """[x, y, z, w]; normalised, norm within 1e-3 of 1"""
