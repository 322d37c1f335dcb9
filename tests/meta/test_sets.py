"""Files of rated candidates: what is read, what is refused, and which groups a sample takes."""

import pytest

from mars_score.data.reading import read_rows
from mars_score.errors import ColumnError
from mars_score.meta.sets import read_rated_set, read_rated_sets
from mars_score.rows import Row
from tests import jsonl


def row(number=0, **changes):
    plain = {
        "id": f"item-{number}",
        "group": f"g{number // 2}",
        "system": f"s{number % 2}",
        "context": f"context {number // 2}",
        "reference": [f"reference {number // 2}"],
        "prediction": f" candidate {number} ",
        "human": number / 2,
    }
    return {name: value for name, value in {**plain, **changes}.items() if value is not ...}


@pytest.fixture
def write(tmp_path):
    def write_rows(rows, name="rated.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        jsonl.write(path, rows)
        return path

    return write_rows


def test_reads_items_in_the_order_of_the_file(write):
    data = read_rated_set(write([row(0), row(1), row(2)]))
    assert data.name == "rated"
    assert data.rows == [Row(f"candidate {n}", (f"reference {n // 2}",), f"context {n // 2}") for n in range(3)]
    assert (data.ratings, data.groups, data.systems) == ([0.0, 0.5, 1.0], ["g0", "g0", "g1"], ["s0", "s1", "s0"])
    assert data.corpus == ("reference 0", "reference 1")
    assert data.notices == ()


def test_columns_may_have_other_names_and_missing_labels_are_said(write):
    names = {"prediction": "output", "reference": "target", "context": "source"}
    names |= {"rating": "score", "group": "doc", "system": "by"}
    rows = [{"output": "a", "target": "b", "source": "c", "score": 3, "doc": 7, "by": "x"}]
    data = read_rated_set(write(rows), names)
    assert (data.rows, data.ratings) == ([Row("a", ("b",), "c")], [3.0])
    assert (data.groups, data.systems, data.ids) == (["7"], ["x"], ["1"])
    data = read_rated_set(write([row(n, group=..., system=..., id=...) for n in range(4)]))
    assert [data.groups[0] == other for other in data.groups] == [True, True, False, False]
    assert data.systems == [""] * 4
    assert data.ids == ["1", "2", "3", "4"]
    assert ["'group'" in data.notices[0], "'system'" in data.notices[1]] == [True, True]


def test_items_without_a_rating_are_left_out_and_counted_but_stay_in_the_corpus(write):
    rows = [row(0), row(1, human=None), row(2, human=float("nan")), row(3, human=...)]
    data = read_rated_set(write(rows))
    assert data.ids == ["item-0"]
    assert data.corpus == ("reference 0", "reference 1")
    assert data.notices == ("3 of 4 items have no rating and are left out",)


def test_single_ratings_are_one_list_or_one_by_aspect(write, tmp_path):
    rows = [row(0, individual=[1, None, 2.5]), row(1), row(2, individual={"fluency": [4, 5]}), row(3, human=None)]
    data = read_rated_set(write(rows))
    single = [
        {name: [str(rating) for rating in ratings] for name, ratings in item.items()}
        for item in data.single_ratings
    ]
    assert single == [{"rating": ["1.0", "nan", "2.5"]}, {}, {"fluency": ["4.0", "5.0"]}]
    assert read_rated_set(write([row(0), row(1, individual=None)])).single_ratings == []
    (tmp_path / "cells.csv").write_text("prediction,reference,context,human,individual\na,b,c,3,x\n")
    data = read_rated_set(tmp_path / "cells.csv")
    assert data.single_ratings == []
    assert "column 'individual' is not read" in data.notices[-1]
    with pytest.raises(ValueError, match=r"cells.csv:2: column 'human' cannot be read: cells cannot hold lists"):
        read_rated_set(tmp_path / "cells.csv", {"single": "human"})


def test_columns_may_be_fields_of_objects(write):
    names = {"rating": "human", "group": "group", "system": "system", "id": "id", "single": "individual"}
    rows = [row(number, individual=[number, 1]) for number in range(3)]
    nested = [{**item, "m": {name: item.pop(name) for name in names.values()}} for item in map(dict, rows)]
    columns = {field: f"m.{name}" for field, name in names.items()}
    assert read_rated_set(write(nested), columns) == read_rated_set(write(rows))


@pytest.mark.parametrize("field", ["prediction", "reference", "context", "rating", "group", "samples"])
def test_an_error_of_a_column_names_no_option(write, field):
    with pytest.raises(ColumnError, match=r"; add it or name another$") as error:
        read_rated_set(write([row(0)]), {field: "x"})
    assert error.value.holds == (field,)
    with pytest.raises(TypeError, match="unknown column 'ratings'; did you mean 'rating'"):
        read_rated_set(write([row(0)]), {"ratings": "human"})


@pytest.mark.parametrize("field", ["rating", "group", "system", "id", "single"])
@pytest.mark.parametrize("name", ["m.other", "individual"])
def test_a_column_that_is_named_must_be_there(write, field, name):
    path = write([row(0, m={"human": 1}), row(1)])
    with pytest.raises(ValueError, match=rf"rated.jsonl:1: column '{name}' is missing"):
        read_rated_set(path, {field: name})


def test_cells_are_told_by_the_file_not_by_its_name(tmp_path):
    path = tmp_path / "rated.txt"
    path.write_text("prediction,reference,context,human\na,b,c,3\nd,b,c,\n")
    assert read_rated_set(path).ratings == [3.0]
    path.write_text("prediction,reference,context,human\na,b,c,3\nd,b,c,1_0\n")
    with pytest.raises(ValueError, match=r"rated.txt:3: column 'human' must be a finite number.*'1_0'"):
        read_rated_set(path)


@pytest.mark.parametrize("column", ["group", "system"])
@pytest.mark.parametrize("cell", ["", " "])
def test_a_label_is_not_blank(tmp_path, column, cell):
    path = tmp_path / "rated.csv"
    path.write_text(f"prediction,reference,context,human,{column}\na,b,c,3,x\nd,e,f,1,{cell}\n")
    with pytest.raises(ValueError, match=rf"rated.csv:3: column '{column}' is blank"):
        read_rated_set(path)


def test_tasks_are_said_by_column_set_or_type_of_the_context(write):
    rows = [row(0), row(1, context=["Hi.", "Hello."]), row(2, context={"name": "x"}), row(3, what="data")]

    def tasks(columns=None, task=None):
        return [item.task for item in read_rated_set(path, columns, task).rows]

    path = write([{"what": "", **item} for item in rows])
    assert tasks() == ["text", "dialogue", "data", "text"]
    assert tasks(task="dialogue") == ["dialogue"] * 4
    assert tasks({"task": "what"}) == ["text", "dialogue", "data", "data"]
    assert tasks({"task": "what"}, "dialogue") == ["dialogue"] * 3 + ["data"]
    assert [data.rows[0].task for data in read_rated_sets([path], tasks={"rated": "data"})] == ["data"]
    for wrong in ({"rated": "table"}, {"other": "data"}):
        with pytest.raises(ValueError, match=r"unknown (task|data set) .*choose among"):
            read_rated_sets([path], tasks=wrong)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([row(0), row(1, prediction=...)], r":2: column 'prediction' is missing .*add it or name"),
        ([row(0), row(1, reference=[])], r":2: column 'reference' is an empty list"),
        ([row(0), row(1, human="4")], r":2: column 'human' must be a finite number.*'4'"),
        ([row(0), row(1, human=True)], r":2: column 'human' must be a finite number"),
        ([row(0), row(1, human=float("inf"))], r":2: column 'human' must be a finite number"),
        ([row(0, human=...)], r"column 'human' is missing.*add it or name another"),
        ([row(0, human=None)], r"no item has a rating in column 'human'"),
        ([row(0), row(1, group=None)], r":2: column 'group' must be a string or an integer"),
        ([row(0, group=1), row(1, group="1")], r":2: column 'group' holds a string, but .*:1: .* an integer"),
        ([row(0), row(1, system=1)], r":2: column 'system' holds an integer, but .*:1: .* a string"),
        ([row(0), row(1, individual="4")], r":2: column 'individual' must hold a list"),
        ([row(0), row(1, individual={"fluency": [4, "5"]})], r":2: column 'individual' must hold a list"),
        ([row(0), row(1, system=...)], r":2: column 'system' is missing.*add it or name another"),
    ],
)
def test_faults_name_line_and_column(write, rows, message):
    with pytest.raises((ValueError, TypeError), match=message):
        read_rated_set(write(rows))


def test_a_sample_takes_whole_groups_by_their_hash_whatever_the_order(write):
    rows = [row(number) for number in range(60)]
    data = read_rated_set(write(rows))
    sample = data.sample(5)
    chosen = set(sample.groups)
    assert len(chosen) == 5
    assert sample.ids == [label for label, group in zip(data.ids, data.groups, strict=True) if group in chosen]
    assert sample.corpus == data.corpus  # document frequencies are those of the whole file
    assert set(read_rated_set(write(rows[::-1])).sample(5).groups) == chosen
    assert chosen < set(data.sample(9).groups)  # a larger sample holds the smaller one
    assert data.sample(1000) == data
    # By the sha256 of their names, as the command sha256sum gives it: 00d0... g9, 044e... g6, 0fcd... g8.
    assert set(read_rated_set(write(rows[:24])).sample(3).groups) == {"g9", "g6", "g8"}


def test_a_list_in_an_object_is_split_in_its_place(write):
    path = write([{"doc": {"answers": ["a", "b"], "id": 1}}, {"doc": {"answers": "c", "id": 2}}])
    rows = read_rows(path).one_value_each("doc.answers").rows
    assert rows == [{"doc": {"answers": text, "id": number}} for text, number in (("a", 1), ("b", 1), ("c", 2))]
    path = write([{"resps": [["a", "b"], ["c"]]}])
    rows = read_rows(path).one_value_each("resps.0").rows
    assert rows == [{"resps": ["a", ["c"]]}, {"resps": ["b", ["c"]]}]


def test_several_files(write, tmp_path):
    first, second = write([row(0), row(2)], "one.jsonl"), write([row(0)], "two.jsonl")
    assert [data.name for data in read_rated_sets([first, second])] == ["one", "two"]
    assert [len(data.rows) for data in read_rated_sets([first, second], groups=1)] == [1, 1]
    with pytest.raises(ValueError, match="at least 1"):
        read_rated_sets([first], groups=0)
    again = write([row(0)], "more/one.jsonl")
    with pytest.raises(ValueError, match=r"2 files are named one.*rename"):
        read_rated_sets([first, again])


@pytest.mark.parametrize("field", ["group", "system", "id"])
def test_names_of_labels_may_be_plural(write, field):
    plural = [
        {f"{name}s" if name == field else name: value for name, value in item.items()}
        for item in map(row, range(3))
    ]
    assert read_rated_set(write(plural)) == read_rated_set(write(list(map(row, range(3)))))
    both = [{**item, f"{field}s": "x"} for item in map(row, range(3))]
    with pytest.raises(
        ValueError, match=rf"columns '{field}' and '{field}s' could both hold the {field}s; .* name it$"
    ):
        read_rated_set(write(both))
    assert read_rated_set(write(both), {field: field}).ids == ["item-0", "item-1", "item-2"]
