"""Tables as data: columns keep their names, words become codes, and all kinds of tables and files agree."""

from functools import partial

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import mintmc
from mintmc.data import coded
from mistakes import each_refused

ORDER = ["low", "middle", "high"]
FRAME = pandas.DataFrame(
    {
        "x": np.linspace(0, 1, 6),
        "count": np.arange(6),
        "is_new": [True, False, False, True, True, False],
        "country": ["peru", "chad", "mali", "chad", "peru", "chad"],
        "grade": pandas.Categorical(["low", "high", "middle"] * 2, ORDER, ordered=True),
    }
)
CODES = {"country": [2, 0, 1, 0, 2, 0], "grade": [0, 2, 1, 0, 2, 1]}
CATEGORIES = {"country": ["chad", "mali", "peru"], "grade": ORDER}


def of_polars():
    enum = polars.Series("grade", FRAME["grade"].astype(str).tolist(), dtype=polars.Enum(ORDER))
    return polars.from_pandas(FRAME.drop(columns="grade")).with_columns(enum)


TABLES = {
    "pandas": lambda: FRAME,
    "pandas, with nulls allowed": FRAME.convert_dtypes,
    "pandas on Arrow": lambda: FRAME.convert_dtypes(dtype_backend="pyarrow"),
    "pandas, by another index": lambda: FRAME.set_index(np.arange(6)[::-1]),
    "Polars": of_polars,
    "pyarrow": lambda: pyarrow.Table.from_pandas(FRAME),
    "pyarrow, in chunks": lambda: pyarrow.concat_tables(
        [pyarrow.Table.from_pandas(FRAME[:2]), pyarrow.Table.from_pandas(FRAME[2:])]
    ),
    "pyarrow, a batch": lambda: pyarrow.RecordBatch.from_pandas(FRAME),
}


def log_likelihood(shift, row):
    return -0.5 * (row["x"] - shift) ** 2 * row["country"]


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_is_a_dict_of_its_columns(kind):
    posterior = mintmc.Posterior(log_likelihood, TABLES[kind]())
    rows = posterior.data.read(0, 6)
    assert posterior.data.categories == CATEGORIES
    for name, expected in {**FRAME, **CODES}.items():
        np.testing.assert_allclose(rows[name], np.asarray(expected, float), rtol=1e-6)
    assert rows["is_new"].dtype == bool
    assert posterior.energy(0.0) == pytest.approx(0.5 * np.sum(FRAME["x"] ** 2 * CODES["country"]))


WRITERS = {
    "parquet": lambda path: pyarrow.parquet.write_table(pyarrow.Table.from_pandas(FRAME), path, row_group_size=2),
    "arrow": lambda path: of_polars().write_ipc(path),
    "csv": lambda path: FRAME.to_csv(path, index=False),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_files_give_the_same(kind, tmp_path):
    WRITERS[kind](tmp_path / f"t.{kind}")
    data = mintmc.open_data(tmp_path / f"t.{kind}")
    # A CSV file knows of no order.
    categories = CATEGORIES | ({"grade": sorted(ORDER)} if kind == "csv" else {})
    codes = CODES | ({"grade": [1, 0, 2] * 2} if kind == "csv" else {})
    assert data.categories == categories
    for name, expected in {**FRAME, **codes}.items():
        np.testing.assert_allclose(data.read(0, 6)[name], np.asarray(expected, float), rtol=1e-6)
        np.testing.assert_allclose(data.take([5, 0])[name], np.asarray(expected, float)[[5, 0]], rtol=1e-6)
    prepared = mintmc.prepare(tmp_path / f"t.{kind}", tmp_path / "prepared")
    assert prepared.categories == categories
    rows = prepared.read(0, 6)
    np.testing.assert_array_equal(rows["country"], np.array(codes["country"])[rows["count"]])


def test_only_columns_that_are_asked_for_are_read(tmp_path):
    FRAME.assign(day=pandas.Timestamp("2020-01-01")).to_csv(tmp_path / "t.csv", index=False)
    data = mintmc.open_data(tmp_path / "t.csv", columns=["country"])
    assert list(data.read(0, 1)) == ["country"]


def test_categories_of_every_group_are_known(tmp_path):
    """Also unordered ones, whose dictionaries differ from group to group."""
    parts = [pyarrow.table({"g": pyarrow.array(part).dictionary_encode()}) for part in (["b", "c"], ["a", "b"])]
    with pyarrow.parquet.ParquetWriter(tmp_path / "t.parquet", parts[0].schema) as file:
        for part in parts:
            file.write_table(part)
    data = mintmc.open_data(tmp_path / "t.parquet")
    assert data.categories == {"g": ["a", "b", "c"]}
    np.testing.assert_array_equal(data.read(0, 4)["g"], [1, 2, 0, 1])


def test_a_changed_csv_file_is_noticed(tmp_path):
    (tmp_path / "t.csv").write_text("x\n1\n2\n")
    data = mintmc.open_data(tmp_path / "t.csv")
    before = data.fingerprint()
    (tmp_path / "t.csv").write_text("x\n1\n3\n4\n")
    data._look_again = 0.0
    with pytest.raises(OSError, match="must not change while it is open"):
        data.read(0, 1)
    assert mintmc.open_data(tmp_path / "t.csv").fingerprint() != before


def test_text_is_no_category(monkeypatch):
    monkeypatch.setattr(coded, "MOST_CATEGORIES", 2)
    with pytest.raises(ValueError, match=r"data\['country'\] must be .* at most 2 categories, got 3 or more"):
        mintmc.Posterior(log_likelihood, TABLES["pyarrow"]())


def test_a_csv_file_must_be_one(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1\n")
    with pytest.raises(ValueError, match=r"t\.csv must be a CSV file, got an error"):
        mintmc.open_data(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("x,g\n1,a\n2,\n")
    with pytest.raises(ValueError, match=r"data\['g'\] must not have nulls, got one in row 1"):
        mintmc.open_data(tmp_path / "t.csv").read(0, 2)


make = partial(mintmc.Posterior, log_likelihood)
MISTAKES = {
    "objects": (lambda: make(FRAME.assign(o=[[1]] * 6)), TypeError, r"data\['o'\] must be .*numbers or of words"),
    "mixed": (
        lambda: make(FRAME.assign(o=[1, "a"] * 3)),
        TypeError,
        r"data\['o'\] must be .*, got dtype object, mixed",
    ),
    "dates": (
        lambda: make(FRAME.assign(d=pandas.Timestamp("2020-01-01"))),
        TypeError,
        r"data\['d'\] must be a column of numbers or of words, got dtype datetime",
    ),
    "NaN": (lambda: make(FRAME.replace({"x": {0.0: np.nan}})), r"data\['x'\] must be finite, got nan in row 0"),
    "null": (
        lambda: make(FRAME.assign(g=["a", "b", None] * 2)),
        r"data\['g'\] must not have nulls, got one in row 2 \(2 such values\)",
    ),
    "null of Arrow": (lambda: make(pyarrow.table({"x": [1, None]})), r"data\['x'\] must not have nulls, got .* row 1"),
    "no rows": (lambda: make(FRAME[:0]), "data must have at least one row, got none in columns"),
    "no columns": (lambda: make(FRAME[[]]), "columns must name at least one of"),
    "names": (
        lambda: make(pandas.DataFrame(np.zeros((2, 2)))),
        TypeError,
        "data must have columns with names,.*got 0",
    ),
    "twice": (lambda: make(FRAME[["x", "x"]]), r"data must have columns of different names, got \['x', 'x'\]"),
    "lazy": (lambda: make(of_polars().lazy()), TypeError, "data must be a table in memory, got a LazyFrame"),
}
test_a_mistake_is_refused = each_refused(MISTAKES)
