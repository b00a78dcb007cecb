"""The figure `stability` has the keys that are promised, and its guards make a difference."""

import argparse

from tools.bench import stability


def test_the_figure_on_one_stiff_and_one_soft_card():
    """delta3 asks for 5000 N/m: with nobody holding it that is stable with guards only; touch for 400 N/m."""
    parser = argparse.ArgumentParser()
    stability.FIGURE.add_arguments(parser)
    arguments = parser.parse_args(["--cards", "delta3,mouse,touch", "--no-limits"])
    result = stability.FIGURE.run(arguments, lambda _: None)
    figures = result.figures
    assert set(figures["cards"]) == {"delta3", "touch"}
    for name, stiffness in (("delta3", 5000.0), ("touch", 400.0)):
        card = figures["cards"][name]
        assert card["k_card"] == stiffness and card["stable"]
        assert 0.0 >= card["energy_min_J"] >= card["energy_floor_J"]
    assert figures["cards_unstable"] == [] and figures["guards_off_fails"] and result.ok
    without = figures["guards_off"]
    assert "none, clamp" in without["delta3"]["unsettled"] and without["touch"]["unsettled"] == []
    assert figures["guards_off_growth"] > 4.0 * max(card["growth"] for card in figures["cards"].values()) > 0.0
