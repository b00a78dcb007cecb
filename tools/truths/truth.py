"""What a scene showed, what it should have shown, and how far the two may be apart."""

from dataclasses import dataclass, field
from typing import Any

from tools.scenes.bodies import Ledger


@dataclass(frozen=True)
class Truth:
    """One number of a scene beside its analytic value."""

    value: float
    truth: float
    error: float
    """Absolute or relative, as `what` says."""
    bar: float
    """Largest error that is well."""
    what: str
    """What value and truth are, and how the error is taken."""
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return bool(self.error <= self.bar)

    def row(self) -> dict[str, Any]:
        """For a table."""
        told = {name: float(f"{getattr(self, name):.9g}") for name in ("value", "truth")}
        told["error"] = float(f"{self.error:.2g}")
        return {**told, "bar": self.bar, "ok": self.ok, "what": self.what, **self.more}


def relative(value: float, truth: float) -> float:
    return abs(value - truth) / abs(truth)


def books(ledger: Ledger) -> dict[str, float]:
    """What a ledger has to say: gains and drifts, J, N s, N m s."""
    energy, momentum, angular = ledger.drift()
    return {
        "energy_gain_J": float(f"{ledger.gain:.2g}"),
        "energy_drift_J": float(f"{energy:.2g}"),
        "momentum_drift_Ns": float(f"{momentum:.2g}"),
        "angular_drift_Nms": float(f"{angular:.2g}"),
        "residual": float(f"{max(ledger.residual, default=0.0):.2g}"),
        "degraded": ledger.degraded,
    }
