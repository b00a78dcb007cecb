"""Scene import: meshes, primitives and robots, the preprocessed-mesh cache, and what `inspect` finds out about them."""

from bridge.scene.errors import MeshError, SceneError

__all__ = ["MeshError", "SceneError"]
