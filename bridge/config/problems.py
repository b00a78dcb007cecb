"""What is wrong with a configuration, in words: one sentence for each finding of pydantic, with what would be right."""

import difflib
import types
import typing
from typing import Any

from pydantic import BaseModel, ValidationError

Section = type[BaseModel]


def problems_of(error: ValidationError, data: dict[str, Any], root: Section) -> list[str]:
    """Sentences for the findings of an error, each once: key, value given, what would be right.

    data: what was validated, as nested dictionaries. root: the model that it was validated as, whose keys' descriptions
    and names are used. A finding of the type "cross_check" has the context key, value and right.
    """
    problems: list[str] = []
    for finding in error.errors(include_url=False):
        if not _branch_matters(finding, data):
            continue
        problem = _explain(finding, data, root)
        if problem not in problems:
            problems.append(problem)
    return problems


def _explain(finding: Any, data: dict[str, Any], root: Section) -> str:
    """One problem in one sentence: dotted key, value given, what would be right."""
    kind = finding["type"]
    location = list(finding["loc"])
    context = finding.get("ctx", {})
    unknown = location.pop() if kind in ("extra_forbidden", "missing") else None
    location = _known_part(location, data)
    key = _dotted(location, data)
    if kind == "extra_forbidden":
        known = list(_fields_at(root, location))
        near = difflib.get_close_matches(str(unknown), known, 1, cutoff=0.5)
        hint = f"did you mean `{near[0]}`?" if near else f"known keys here: {', '.join(known)}"
        return f"{_join(key, str(unknown))}: unknown key (value {_show(finding['input'])}); {hint}"
    if kind == "missing" and isinstance(unknown, int):
        count = _tuple_length(root, location)
        return f"{key}: must be an array of {count} numbers; given {_show(_value_at(location, data))}"
    if kind == "missing":
        description = _description(root, location, str(unknown))
        return f"{_join(key, str(unknown))}: is missing" + (f" ({description})" if description else "")
    if kind == "cross_check":
        if context["key"]:
            key = _join(key, context["key"])
        given = context["value"]
        return f"{key}: {context['right']}" + (f"; given {_show(given)}" if given is not None else "")
    where = _description(root, location[:-1], str(location[-1])) if location else ""
    text = _right(kind, context, finding["msg"])
    given = _show(finding["input"])
    hint = ""
    if kind == "literal_error" and isinstance(finding["input"], str):
        near = difflib.get_close_matches(finding["input"], _literals(context["expected"]), 1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"{key or 'file'}: {text}; given {given}{hint}" + (f" ({where})" if where else "")


def _right(kind: str, context: dict[str, Any], message: str) -> str:
    """What a value should have been, from the validator's error type."""
    bounds = {
        "greater_than": ("gt", "must be greater than"),
        "greater_than_equal": ("ge", "must be at least"),
        "less_than": ("lt", "must be less than"),
        "less_than_equal": ("le", "must be at most"),
    }
    if kind in bounds:
        name, words = bounds[kind]
        return f"{words} {context[name]:g}"
    plain = {
        "float_type": "must be a number",
        "float_parsing": "must be a number",
        "int_type": "must be a whole number",
        "int_parsing": "must be a whole number",
        "int_from_float": "must be a whole number",
        "bool_type": "must be true or false",
        "bool_parsing": "must be true or false",
        "string_type": "must be a text in quotes",
        "finite_number": "must be a finite number",
        "tuple_type": "must be an array of numbers",
        "list_type": "must be an array of tables, written [[scene.body]]",
        "dict_type": "must be a table",
        "model_type": "must be a table",
        "string_pattern_mismatch": "may hold only letters, digits, `_`, `-` and `.`",
        "string_too_short": "must not be empty",
    }
    if kind in plain:
        return plain[kind]
    if kind == "literal_error":
        return f"must be one of {', '.join(_literals(context['expected']))}"
    if kind == "too_long":
        return f"must have {context['max_length']} entries and no more"
    if kind == "too_short":
        return f"must have at least {context['min_length']} entries"
    return message[0].lower() + message[1:]


def _literals(expected: str) -> list[str]:
    return [word.strip().strip("'") for word in expected.replace(" or ", ", ").split(",")]


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _known_part(location: list[Any], data: Any) -> list[Any]:
    """Keep what leads through the data: for a union, the validator also names the branch that it tried."""
    kept: list[Any] = []
    for part in location:
        is_key = isinstance(data, dict) and part in data
        is_index = isinstance(data, list) and isinstance(part, int) and part < len(data)
        if is_key or is_index:
            data = data[part]
            kept.append(part)
    return kept


def _value_at(location: list[Any], data: Any) -> Any:
    for part in location:
        data = data[part]
    return data


def _branch_matters(finding: Any, data: dict[str, Any]) -> bool:
    """For a value that may be a number or an array: only the complaint about what the user meant is of use."""
    location = list(finding["loc"])
    known = _known_part(location, data)
    branch = next((part for part in location[len(known) :] if isinstance(part, str)), "")
    value = _value_at(known, data)
    if branch in ("float", "constrained-float") and isinstance(value, list):
        return False
    return not (branch.startswith("tuple[") and not isinstance(value, list))


def _tuple_length(root: Section, location: list[Any]) -> int:
    """How many numbers the array at a place must hold."""
    section = _section_at(root, location[:-1])
    annotation = next(
        (f.annotation for n, f in section.model_fields.items() if location[-1] in (n, f.alias))
        if section
        else iter(()),
        None,
    )
    candidates = [annotation, *typing.get_args(annotation)]
    return max((len(typing.get_args(c)) for c in candidates if typing.get_origin(c) is tuple), default=0)


def _dotted(location: list[Any], data: Any) -> str:
    text = ""
    for part in location:
        value = data.get(part) if isinstance(data, dict) else None
        if isinstance(data, list) and isinstance(part, int) and part < len(data):
            value = data[part]
        if isinstance(part, int):
            text += f"[{part}]"
            if isinstance(value, dict) and isinstance(value.get("name"), str):
                text += f" ({value['name']!r})"
        else:
            text = _join(text, str(part))
        data = value
    return text


def _join(left: str, right: str) -> str:
    return f"{left}.{right}" if left and right else left or right


def _models(annotation: Any) -> list[Section]:
    """The sections that an annotation can hold."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return [annotation] if issubclass(annotation, BaseModel) else []
    return [model for part in typing.get_args(annotation) for model in _models(part)]


def _section_at(root: Section, location: list[Any]) -> Section | None:
    section = root
    for part in location:
        if isinstance(part, int):
            continue
        field = next((f for n, f in section.model_fields.items() if part in (n, f.alias)), None)
        models = _models(field.annotation) if field else []
        if not models:
            return None
        section = models[0]
    return section


def _fields_at(root: Section, location: list[Any]) -> dict[str, str]:
    """Keys of the section at a place, each with its description."""
    section = _section_at(root, location)
    if section is None:
        return {}
    return {field.alias or name: field.description or "" for name, field in section.model_fields.items()}


def _description(root: Section, location: list[Any], key: str) -> str:
    return _fields_at(root, location).get(key, "").replace("\n", " ").rstrip(".")
