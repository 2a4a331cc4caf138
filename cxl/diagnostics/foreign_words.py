"""Help for words and signs of other languages."""

_CASELESS = ("let", "emit", "filter", "distinct", "trace", "use", "and", "or", "not", "then", "else", "true", "false", "null", "now")
_FOREIGN = {
    "is": "whether a value is null says value.is_null()", "like": "texts have contains, starts_with, ends_with, matches and find",
    "in": "compare with == and join the comparisons with or", "between": "write value >= low and value <= high",
    "coalesce": "the first of two values that is not null is written value ?? other", "ifnull": "write value ?? other", "nvl": "write value ?? other",
    "elif": "write else if", "none": "write null", "nil": "write null", "=": "equality is written ==",
}  # fmt: skip


def help_for(word: str) -> str:
    """Return how CXL writes a word or sign of another language, or a keyword in capitals; empty where it is neither."""
    lower = word.lower()
    if lower != word and lower in _CASELESS:
        return f"did you mean '{lower}'? Words of the language have small letters"
    return _FOREIGN.get(lower, "")
