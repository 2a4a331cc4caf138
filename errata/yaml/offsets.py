"""The file offsets of a scalar's characters, for each of YAML's five styles.

`offsets` returns an offset for every character of the value, and one for its end, never decreasing. It follows the rules by
which the parser folded, unindented and unescaped the text.
"""

import re

_BLANKS = " \t"
_BREAKS = "\r\n\x85\u2028\u2029"
_SPACE_RUN = re.compile(f"[{_BLANKS}{_BREAKS}]+")
_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_LONG_ESCAPES = {"x": 2, "u": 4, "U": 8}


def offsets(text: str, start: int, end: int, style: str, value: str) -> list[int]:
    """Return an offset into `text` for every character of `value`, and one for its end."""
    if style in ("|", ">"):
        places = _block(text, start, end, value)
    else:
        places = _flow(text, start + 1, end - 1, style) if style else _flow(text, start, end, style)
    return _fit(places, len(value), end)


def _fit(places: list[int], count: int, end: int) -> list[int]:
    """As many offsets as characters. A text that breaks lines in a rare way gets the nearest known offset."""
    fitted = places[:count]
    behind = min(fitted[-1] + 1, end) if fitted else (places[0] if places else end)
    fitted += [behind] * (count + 1 - len(fitted))
    return fitted


def _flow(text: str, position: int, end: int, style: str) -> list[int]:
    """Plain and quoted scalars: line breaks fold to a blank; quotes and escapes take more characters than they mean."""
    places: list[int] = []
    while position < end:
        run = _SPACE_RUN.match(text, position, end)
        if run:
            places += _folded(run)
            position = run.end()
        elif style == '"' and text[position] == "\\":
            position = _escape(text, position, end, places)
        else:
            places.append(position)
            position += 2 if style == "'" and text[position] == "'" else 1
    return places


def _folded(run: re.Match[str]) -> list[int]:
    """Blanks without a break stay. One break is a blank; several are one line end fewer."""
    breaks = [match.start() + run.start() for match in _BREAK.finditer(run.group())]
    if not breaks:
        return list(range(run.start(), run.end()))
    return breaks[:1] if len(breaks) == 1 else breaks[1:]


def _escape(text: str, position: int, end: int, places: list[int]) -> int:
    """One escape of a double quoted scalar. An escaped line end means nothing and includes the next line's blanks."""
    mark = text[position + 1 : position + 2]
    if mark and mark in _BREAKS:
        run = _SPACE_RUN.match(text, position + 1, end)
        breaks = [match.start() + position + 1 for match in _BREAK.finditer(run.group())] if run else []
        places += breaks[1:]
        return run.end() if run else end
    places.append(position)
    return position + 2 + _LONG_ESCAPES.get(mark, 0)


def _block(text: str, start: int, end: int, value: str) -> list[int]:
    """Block scalars: each source line without its indentation, found in the value in order."""
    lines = _content_lines(text, start, end)
    indent = _indentation(lines, value)
    places: list[int] = []
    for offset, line in lines:
        content = line[indent:]
        found = _next(value, len(places), content)
        if content and found is not None:
            places += [max(offset - 1, start)] * (found - len(places))
            places += range(offset + indent, offset + indent + len(content))
    return places


def _content_lines(text: str, start: int, end: int) -> list[tuple[int, str]]:
    """Offset and text of the lines below the block's header."""
    lines: list[tuple[int, str]] = []
    breaks = list(_BREAK.finditer(text, start, end))
    for index, match in enumerate(breaks):
        stop = breaks[index + 1].start() if index + 1 < len(breaks) else end
        lines.append((match.end(), text[match.end() : stop]))
    return lines


def _indentation(lines: list[tuple[int, str]], value: str) -> int:
    """The block's indentation: what the first line with text has more than the value."""
    wanted = value.lstrip("\n")
    first = next((line for _, line in lines if line.strip(" ")), "")
    leading = len(first) - len(first.lstrip(" "))
    return next((count for count in range(leading + 1) if wanted.startswith(first[count:])), leading)


def _next(value: str, position: int, content: str) -> int | None:
    """The place in `value` where `content` continues, after breaks and folded blanks only."""
    while not value.startswith(content, position):
        if value[position : position + 1] not in ("\n", " "):
            return None
        position += 1
    return position
