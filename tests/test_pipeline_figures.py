"""Figures by what stands on them: lines, bands, signs, scales, labels; and wrong requests by their messages."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from predcube.pipeline.drawing import is_geometric
from predcube.pipeline.failures import BadInput
from predcube.pipeline.figures import check_format, draw, plot, save, svg
from predcube.pipeline.opening import read_surfaces


def legend_of(figure: Figure) -> list[str]:
    return [t.get_text() for legend in figure.legends for t in legend.get_texts()]


def lines_of(figure: Figure, panel: int = 0) -> list[Any]:
    """The solid lines of a panel: the measurements."""
    return [line for line in figure.axes[panel].lines if line.get_linestyle() == "-"]


def test_a_line_shows_the_means_against_the_axis_and_leaves_a_gap_where_there_is_none(store: str) -> None:
    figure = plot(store, x="n", y="excess_error", at={"noise": 0.1})
    surfaces = read_surfaces(store)
    lines = lines_of(figure)
    assert len(lines) == 3
    for line, gamma in zip(lines, surfaces["gamma"].values, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), [20, 40, 80, 160])
        np.testing.assert_array_equal(line.get_ydata(), surfaces["excess_error"].sel(gamma=gamma, noise=0.1).values)
    assert np.isnan(lines[0].get_ydata()[0])
    assert figure.axes[0].get_xscale() == "log"
    assert [t.get_text() for t in figure.axes[0].get_xticklabels()] == ["20", "40", "80", "160"]


def test_the_legend_explains_everything_that_is_drawn(store: str) -> None:
    words = legend_of(plot(store, x="n", y="excess_error", at={"noise": 0.1}))
    assert words == ["gamma", "0.04", "0.1", "0.2", "95% interval", "target 0.1", "infeasible"]
    words = legend_of(plot(store, x="n", y="stability"))
    assert "guaranteed" in words
    assert "guaranteed" not in legend_of(plot(store, x="n", y="stability", bounds=False))
    words = legend_of(plot(store, x="n", y="privacy_loss"))
    assert "∞" in words


def test_infinite_values_stand_above_the_panel_and_not_on_the_line(store: str) -> None:
    figure = plot(store, x="n", y="privacy_loss", hue="gamma", at={"noise": 0.1})
    signs = [line for line in figure.axes[0].lines if line.get_marker() == "^"]
    assert len(signs) == 1
    np.testing.assert_array_equal(signs[0].get_xdata(), [20, 40, 80, 160])
    assert all(y > 1 for y in signs[0].get_ydata())
    assert np.isnan(lines_of(figure)[2].get_ydata()).all()


def test_axes_that_are_left_over_become_hue_and_facet(store: str) -> None:
    figure = plot(store, x="n", y="stability")
    assert [a.get_title() for a in figure.axes] == ["noise = 0", "noise = 0.1"]
    assert legend_of(figure)[0] == "gamma"
    figure = plot(store, x="gamma", y="stability", hue="n")
    assert [a.get_title() for a in figure.axes] == ["noise = 0", "noise = 0.1"]


def test_a_fixed_axis_is_named_above_the_picture(store: str) -> None:
    figure = plot(store, x="n", y="stability", at={"noise": 0.1, "gamma": 0.2})
    assert figure.get_suptitle() == "gamma = 0.2, noise = 0.1"
    assert len(lines_of(figure)) == 1


def test_more_axes_than_places_are_an_error_that_names_them() -> None:
    surfaces = xr.Dataset(
        {"error": (("n", "a", "b", "c"), np.zeros((2, 2, 2, 3)))},
        coords={"n": [1, 2], "a": [1, 2], "b": [1, 2], "c": [0.1, 0.2, 0.3]},
        attrs={"quantities": '["error"]'},
    )
    with pytest.raises(BadInput, match=r"error also runs over c: choose one value each, as in --at c=0.1 \(c has 0.1"):
        draw(surfaces, x="n", y="error")
    assert len(lines_of(draw(surfaces, x="n", y="error", at={"c": 0.2}))) == 2


def test_the_smallest_n_is_drawn_with_bars_and_signs_for_what_is_not_reached(store: str) -> None:
    figure = plot(store, x="gamma", y="smallest_n", hue="noise")
    axes = figure.axes[0]
    assert axes.get_yscale() == "log"
    assert [t.get_text() for t in axes.get_yticklabels()] == ["20", "40", "80", "160"]
    reached = read_surfaces(store)["smallest_n_status"].values
    assert ("not reached within the grid" in legend_of(figure)) == bool((reached == 2).any())


def test_labels_are_not_joined_by_lines(labelled: str) -> None:
    figure = plot(labelled, x="learner", y="error", hue="n")
    assert lines_of(figure) == []
    assert [t.get_text() for t in figure.axes[0].get_xticklabels()] == ["[red]stable[/red] <b>", "erm"]


def test_an_axis_as_y_makes_a_heat_map_of_the_hue(store: str) -> None:
    figure = plot(store, x="n", y="gamma", hue="excess_error", at={"noise": 0.1})
    panel, bar = figure.axes
    assert "infeasible" in [t.get_text() for t in panel.texts]
    assert len(panel.texts) == 12
    assert bar.get_ylabel() == "mean error above the best hypothesis"
    with pytest.raises(BadInput, match="name the quantity as --hue, one of excess_error, stability, privacy_loss"):
        plot(store, x="n", y="gamma")


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"x": "m", "y": "stability"}, r"--x m: no axis 'm'"),
        ({"x": "n", "y": "stabilty"}, r"--y stabilty: no quantity 'stabilty' in this store; did you mean 'stability'"),
        ({"x": "n", "y": "status"}, r"--y status: a code"),
        ({"x": "n", "y": "stability", "hue": "n"}, r"--x n: the axis has two roles"),
        ({"x": "n", "y": "smallest_n"}, r"--x n: smallest_n does not run over it, only over gamma, noise"),
        ({"x": "n", "y": "stability", "at": {"noise": 0.3}}, r"noise=0.3: not on the axis"),
    ],
)
def test_a_request_that_does_not_fit_names_the_cure(store: str, request_: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        plot(store, **request_)


def test_pictures_are_written_by_their_ending_and_always_the_same(store: str, tmp_path: Path) -> None:
    figure = plot(store, x="n", y="stability")
    starts = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    for ending, start in starts.items():
        save(figure, tmp_path / f"a{ending}")
        assert (tmp_path / f"a{ending}").read_bytes().startswith(start)
    assert svg(plot(store, x="n", y="stability")) == svg(plot(store, x="n", y="stability"))


@pytest.mark.parametrize(("name", "message"), [("a.jpg", "ending '.jpg'"), ("a", "no ending")])
def test_other_endings_are_refused(name: str, message: str) -> None:
    with pytest.raises(BadInput, match=rf"{name}: {message}; name a file that ends in .png, .svg or .pdf"):
        check_format(name)


def test_a_place_that_cannot_be_written_is_a_message(store: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be written"):
        save(plot(store, x="n", y="stability"), tmp_path / "nowhere" / "a.png")


@pytest.mark.parametrize(
    ("values", "geometric"),
    [
        ([20, 40, 80, 160], True),
        ([20, 57, 113, 160], False),
        ([0.01, 0.1, 1.0], True),
        ([1, 2, 3], False),
        ([0.0, 0.1, 10.0], False),
        ([10, 1000], False),
        (["a", "b", "c"], False),
    ],
)
def test_an_axis_is_logarithmic_where_its_spacing_is(values: list[Any], geometric: bool) -> None:
    assert is_geometric(np.array(values)) == geometric
