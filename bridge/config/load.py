"""From a file, a text or nested dictionaries to a configuration, or to an error that names all that is wrong."""

import difflib
import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bridge.config.problems import problems_of
from bridge.config.whole import Config
from haptics.toml_text import MAX_BYTES, parse_toml

MAX_FILE_BYTES = MAX_BYTES
"""A larger configuration file is surely not one."""


class ConfigError(ValueError):
    """A configuration that cannot be used.

    The text names the file, each key, the value given and what would be right; ``problems`` holds one entry per line.
    """

    def __init__(self, source: str, problems: list[str]) -> None:
        self.source = source
        self.problems = problems
        super().__init__("\n".join(f"{source}: {problem}" for problem in problems))


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a configuration file, with the description of every key, for editors."""
    schema = Config.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "hapticd configuration"}


def load_config(path: str | Path) -> Config:
    """Read and check one TOML file.

    Args:
        path: the file; relative paths inside it stay as written and are meant relative to its folder.

    Raises:
        ConfigError: naming the file, every wrong key, the value given and what would be right.
    """
    path = Path(path)
    source = str(path)
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ConfigError(source, [f"is {path.stat().st_size} bytes long; a configuration has at most a megabyte"])
        raw = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(source, [_missing_file(path)]) from None
    except IsADirectoryError:
        raise ConfigError(source, ["is a folder; give a TOML file"]) from None
    except OSError as error:
        raise ConfigError(source, [f"cannot be read: {error.strerror or error}"]) from None
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(source, [f"is not a text file: line {line} is not UTF-8"]) from None
    return parse_config(text, source)


def parse_config(text: str, source: str = "configuration") -> Config:
    """Check the text of a TOML configuration; ``source`` is what errors call it.

    Raises:
        ConfigError: as :func:`load_config`.
    """
    try:
        data = parse_toml(text.encode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise ConfigError(source, [str(error)]) from None
    return validate_config(data, source)


def validate_config(data: dict[str, Any], source: str = "configuration") -> Config:
    """Check a configuration given as nested dictionaries (what TOML parses to, or ``model_dump(by_alias=True)``).

    Raises:
        ConfigError: as :func:`load_config`.
    """
    try:
        # By way of JSON, because only there does strict validation still take an array for a tuple. Strict: "yes" is
        # not true and "5" is not a number.
        return Config.model_validate_json(json.dumps(data, default=str), strict=True)
    except ValidationError as error:
        raise ConfigError(source, problems_of(error, data, Config)) from None


def _missing_file(path: Path) -> str:
    near: list[str] = []
    if path.parent.is_dir():
        near = difflib.get_close_matches(path.name, [p.name for p in path.parent.glob("*.toml")], 1)
    return "does not exist" + (f"; did you mean {path.parent / near[0]}?" if near else "")
