"""What can go wrong while a scene is imported."""


class SceneError(ValueError):
    """A scene, robot or mesh file that cannot be used; the text is one clear sentence."""


class MeshError(SceneError):
    """A mesh that cannot be used; the text names the file."""
