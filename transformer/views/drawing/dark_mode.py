"""Light figures shown in the dark: which colour becomes which."""

from __future__ import annotations

from transformer.views.drawing import style


def in_the_dark() -> dict[str, str]:
    """What each colour of a light figure is in the same figure made for the dark.

    "rgba(r, g, b," stands for the colour of that start at any opacity.
    """
    pairs = {
        "rgba(255,255,255,0.8)": "rgba(34,39,46,0.75)",  # behind a note on a picture
        "#000000": "#ffffff",  # on a cell of weights
        "#ffffff": "#000000",
    }
    for name in ("text", "muted", "line", "accent", "key", "hatch"):
        light, dark = getattr(style.LIGHT, name), getattr(style.DARK, name)
        pairs[light] = dark
        if light.startswith("#"):
            pairs[_channels(light)] = _channels(dark)
    for scale in ("diverging", "weights"):
        light, dark = getattr(style.LIGHT, scale), getattr(style.DARK, scale)
        pairs |= dict(zip(light, dark, strict=True))
    return pairs


def _channels(colour: str) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red}, {green}, {blue},"
