"""Places of a state: where they are, who may read them, and names that libraries refuse."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.engines.plain_paths import engine_uri
from storage.errors import StorageError
from storage.state.location import REFUSED_BY_DELTA, State, state_of, temporary_state


def test_where_the_state_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, here = tmp_path / "w", tmp_path / "h"
    here.mkdir()
    monkeypatch.chdir(here)
    assert state_of("p", workspace) == State(f"{workspace}/.errata/p")
    assert state_of("p", workspace, configured="state") == State(f"{workspace}/state/p")
    assert state_of("p", workspace, named="state", configured="other") == State(f"{here}/state/p")
    assert state_of("p", workspace, named="s3://bucket/x/") == State("s3://bucket/x/p")


def test_the_places_of_its_tables() -> None:
    state = State("s3://bucket/p")
    assert not state.local
    assert state.changelog("orders.errors") == state.table("changelog/orders.errors") == "s3://bucket/p/changelog/orders.errors"


def test_a_new_state_is_its_owners_alone_and_out_of_version_control(tmp_path: Path) -> None:
    state = State(str(tmp_path / ".errata" / "p"))
    state.prepare()
    state.prepare()
    for folder in (Path(state.root), Path(state.root).parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert Path(state.root, ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("name", ["a[b", "a]b", "a^b", "a|b", "a\\b", "a%20b", "a\nb"])
def test_a_folder_that_delta_cannot_use_is_refused_with_a_way_out(tmp_path: Path, name: str) -> None:
    with pytest.raises(StorageError, match="--state"):
        State(str(tmp_path / name / "p")).prepare()
    assert not (tmp_path / name).exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="file/p"):
        State(str(tmp_path / "file" / "p")).prepare()


def test_a_temporary_state_goes_when_it_is_forgotten() -> None:
    state = temporary_state("p")
    state.prepare()
    Path(state.ledger).mkdir()
    state.forget()
    assert list(Path(state.root).iterdir()) == []


@given(
    name=st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
        lambda name: name not in (".", "..")
    )
)
def test_engines_see_plain_paths_that_lead_to_the_same_place(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    folder = tmp_path_factory.mktemp("f") / name
    folder.mkdir()
    (folder / "t").mkdir()
    seen = engine_uri(f"{folder}/t")
    assert Path(seen).samefile(folder / "t")
    assert not REFUSED_BY_DELTA.search(seen)
    assert seen.isascii()
    assert " " not in seen


def test_object_stores_keep_their_names() -> None:
    assert engine_uri("s3://bucket/a b/t") == "s3://bucket/a b/t"
