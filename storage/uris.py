"""Places of tables and files: which are local, which are on S3, and which settings S3 needs from the environment."""

import os
from collections.abc import Iterable
from pathlib import Path

__all__ = ["SCHEMES", "below", "is_local", "is_object", "kind_of", "on_s3", "settings_missing", "settings_refused"]

SCHEMES = ("s3", "gs", "az")
"""Object stores whose files Errata reads and writes."""

PROFILES = ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE")


def is_local(uri: str) -> bool:
    """Return whether a path or URI names a place in the local file system."""
    return "://" not in uri or uri.startswith("file://")


def below(place: str, folder: Path) -> str:
    """Return a path relative to a folder; a URI unchanged."""
    return os.path.relpath(place, folder) if is_local(place) else place


def is_object(place: str) -> bool:
    """Return whether a URI names a place in an object store whose files Errata reads and writes."""
    return place.startswith(tuple(f"{one}://" for one in SCHEMES))


def kind_of(uri: str) -> str:
    """Return the scheme of a URI."""
    return uri.partition("://")[0]


def on_s3(place: str) -> bool:
    """Return whether a path or URI names a place on S3."""
    return place.startswith(("s3://", "s3a://"))


def settings_refused(place: str) -> str:
    """Return which setting certainly keeps a place on S3 out of reach, with the remedy. Empty where a try may succeed."""
    if not on_s3(place):
        return ""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    if endpoint.startswith("http://") and os.environ.get("AWS_ALLOW_HTTP", "").lower() not in ("1", "true", "yes"):
        return f"the endpoint {endpoint} is without encryption, which has to be allowed: set AWS_ALLOW_HTTP=true, or name an https endpoint"
    return ""


def settings_missing(place: str) -> str:
    """Return what the environment may lack for a place on S3, with the remedy. A machine with a role needs no settings."""
    refused = settings_refused(place)
    if refused or not on_s3(place):
        return refused
    if not any(name.startswith("AWS_") for name in os.environ) and not any(file.exists() for file in _profiles()):
        return "nothing says how to reach S3: set AWS_REGION, and AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, unless this machine has a role"
    return ""


def _profiles() -> Iterable[Path]:
    folder = Path("~/.aws").expanduser()
    return (folder / "config", folder / "credentials", *(Path(os.environ[name]) for name in PROFILES if name in os.environ))
