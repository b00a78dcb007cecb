"""The plane of damping and stiffness is drawn."""

from matplotlib.image import imread

from bridge.certify_picture import draw
from haptics.cards import load_card


def test_a_picture_has_content(tmp_path):
    card = load_card("touch")
    draw(card, card.certified, tmp_path / "plane.png")
    image = imread(tmp_path / "plane.png")
    assert image.shape[0] > 300 and image.shape[1] > 600
    assert len({tuple(pixel) for pixel in image[::4, ::4, :3].reshape(-1, 3).round(2)}) > 10
