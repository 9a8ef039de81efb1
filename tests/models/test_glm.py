"""A regression on a table: its density, its design from every kind of table, and what is refused."""

import jax
import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
import scipy.special
from scipy import stats

import mintmc
from mintmc.models import families, priors
from mistakes import each_refused

N = 60
rng = np.random.default_rng(0)
TABLE = pandas.DataFrame(
    {
        "year": rng.normal(2015, 5, N),
        "dose": rng.gamma(2.0, 0.01, N),
        "group": rng.choice(["a", "b", "c"], N),
    }
)
SIGNAL = 0.1 * (TABLE["year"] - 2015) + 20 * TABLE["dose"] + (TABLE["group"] == "b")
TABLE["yes"] = rng.random(N) < 1 / (1 + np.exp(-SIGNAL))
TABLE["word"] = np.where(TABLE["yes"], "survived", "died")
TABLE["count"] = rng.poisson(np.exp(SIGNAL))
TABLE["height"] = 170 + 8 * SIGNAL + rng.normal(0, 3, N)
TERMS = ("Intercept", "year", "dose", "C(group)[T.b]", "C(group)[T.c]")
X = np.column_stack([np.ones(N), TABLE["year"], TABLE["dose"], TABLE["group"] == "b", TABLE["group"] == "c"])
RIGHT = "year + dose + C(group)"

CASES = {
    # family, link, response, settings, log-likelihood of y given eta and sigma
    "logit": ("binomial", "logit", "yes", {}, lambda y, e, s: stats.bernoulli.logpmf(y, scipy.special.expit(e))),
    "probit": ("binomial", "probit", "yes", {}, lambda y, e, s: stats.bernoulli.logpmf(y, stats.norm.cdf(e))),
    "log": ("poisson", "log", "count", {}, lambda y, e, s: stats.poisson.logpmf(y, np.exp(e))),
    "softplus": ("poisson", "softplus", "count", {}, lambda y, e, s: stats.poisson.logpmf(y, np.logaddexp(0, e))),
    "gaussian": ("gaussian", None, "height", {}, lambda y, e, s: stats.norm.logpdf(y, e, s)),
    "student": ("student", None, "height", {}, lambda y, e, s: stats.t.logpdf(y, 4, e, s)),
    "student, nu": ("student", None, "height", {"nu": 2.5}, lambda y, e, s: stats.t.logpdf(y, 2.5, e, s)),
    "fixed": ("gaussian", None, "height", {"sigma": 3.0}, lambda y, e, s: stats.norm.logpdf(y, e, 3.0)),
}


def model_of(case, **settings):
    family, link, response, given, _ = CASES[case]
    return mintmc.glm(f"{response} ~ {RIGHT}", TABLE, family, link=link, **given, **settings)


def log_prior(case, beta, sigma, scale=2.5):
    """As the docstring has it."""
    family, _, response, _, _ = CASES[case]
    y = TABLE[response]
    spread, location = (y.std(), y.mean()) if family in ("gaussian", "student") else (1.0, 0.0)
    result = stats.norm.logpdf(X.mean(axis=0) @ beta, location, scale * spread)
    result += stats.norm.logpdf(beta[1:], 0, scale * spread / X[:, 1:].std(axis=0, ddof=1)).sum()
    return result + (0.0 if sigma is None else stats.expon.logpdf(sigma, scale=spread))


def errors(case):
    """Differences from the energy by scipy, at random params."""
    model, (_, _, response, _, log_likelihood) = model_of(case), CASES[case]
    draw = np.random.default_rng(1)
    found = []
    for _ in range(5):
        # Around where rows are likely: far out, float32 has only its own precision to offer.
        beta = draw.normal(0, 0.3, 5) / np.maximum(X.std(axis=0), 0.1)
        beta[0] += model.init["beta"][0] - X.mean(axis=0)[1:] @ beta[1:]
        beta = beta.astype(np.float32).astype(float)
        params = {"beta": beta}
        if model.family.has_sigma:
            params["sigma"] = float(np.float32(draw.gamma(5.0)))
        sigma = params.get("sigma")
        expected = log_likelihood(TABLE[response].to_numpy(float), X @ beta, sigma).sum() + log_prior(case, beta, sigma)
        found.append(model.energy(params) + expected)
    return np.abs(found)


@pytest.mark.parametrize("case", CASES)
def test_the_density_is_that_of_scipy(case):
    assert errors(case).max() < 1e-3


@pytest.mark.parametrize("case", ["logit", "gaussian"])
def test_a_wrong_prior_scale_would_be_caught(case, monkeypatch):
    """The broken twin: priors twice as wide."""
    right = priors.Prior.of
    wrong = lambda design, family, scale: right(design, family, 2 * scale)  # noqa: E731
    monkeypatch.setattr(mintmc.models.glm.Prior, "of", wrong)
    assert errors(case).max() > 1


def test_a_wrong_likelihood_would_be_caught(monkeypatch):
    monkeypatch.setattr(families.Family, "_binomial", lambda self, eta, row, sigma: jax.nn.log_sigmoid(eta))
    assert errors("logit").max() > 1


def test_a_flat_prior_leaves_the_likelihood():
    model = model_of("logit", prior_scale=None)
    assert not model.has_prior
    beta = model.init["beta"].astype(float)
    assert model.energy(model.init) == pytest.approx(-CASES["logit"][-1](TABLE["yes"], X @ beta, None).sum(), rel=1e-5)


@pytest.mark.parametrize("case", ["log", "softplus"])
def test_large_counts_keep_their_precision(case):
    """l_i of counts of 10^5 is a difference of numbers of size 10^6, which float32 rounds by 0.1."""
    table = {"y": np.full(1000, 100_000) + np.arange(1000), "x": np.linspace(-1, 1, 1000)}
    link, exact = CASES[case][1], CASES[case][-1]
    model = mintmc.glm("y ~ x", table, "poisson", link=link, prior_scale=None)
    beta = model.init["beta"].astype(float)
    assert model.energy(model.init) == pytest.approx(-exact(table["y"], beta[0], None).sum(), abs=10)


def test_draws_from_the_prior_have_its_law():
    """z of draws is standard normal, where predictors are at their means."""
    model = model_of("gaussian")
    draws = jax.vmap(model.sample_prior)(jax.random.split(jax.random.key(0), 4000))
    beta, sd = np.asarray(draws["beta"], float), TABLE["height"].std()
    z = (beta @ X.mean(axis=0) - TABLE["height"].mean()) / (2.5 * sd)
    z = np.column_stack([z, beta[:, 1:] * X[:, 1:].std(axis=0, ddof=1) / (2.5 * sd)])
    assert np.abs(z.mean(axis=0)).max() < 4 / 4000**0.5
    assert np.abs(z.var(axis=0) - 1).max() < 4 * (2 / 4000) ** 0.5
    assert abs(np.mean(draws["sigma"]) / sd - 1) < 4 / 4000**0.5


def test_what_a_model_has():
    model = model_of("gaussian")
    assert model.design.terms == TERMS
    np.testing.assert_allclose(model.design.x, X, rtol=1e-6)
    assert model.design.x.dtype == np.float32
    assert model.init["beta"][0] == pytest.approx(TABLE["height"].mean())
    assert model.init["sigma"] == pytest.approx(TABLE["height"].std())
    shown = model.presented
    assert (shown.dims["beta"], list(shown.coords["term"])) == (["term"], list(TERMS))
    assert repr(model) == (
        "glm('height ~ year + dose + C(group)', family='gaussian', link='identity', n=60, "
        "terms=['Intercept', 'year', 'dose', 'C(group)[T.b]', 'C(group)[T.c]'])"
    )


@pytest.mark.parametrize("case", [case for case in CASES if case != "fixed"])
def test_the_start_has_the_mean_of_the_response(case):
    model, (_, link, response, *_) = model_of(case), CASES[case]
    inverse = {"logit": scipy.special.expit, "probit": stats.norm.cdf, "log": np.exp}
    inverse["softplus"] = lambda eta: np.logaddexp(0, eta)
    mean = inverse.get(link, lambda eta: eta)(float(model.init["beta"][0]))
    assert mean == pytest.approx(TABLE[response].mean(), rel=0.02)


def saved(kind, folder):
    path = folder / f"t.{kind}"
    if kind == "csv":
        TABLE.to_csv(path, index=False)
    elif kind == "parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pandas(TABLE), path, row_group_size=17)
    else:
        polars.from_pandas(TABLE).write_ipc(path)
    return path


KINDS = {
    "Polars": lambda f: polars.from_pandas(TABLE),
    "Polars, categorical": lambda f: polars.from_pandas(TABLE).cast({"group": polars.Categorical}),
    "pandas, categorical": lambda f: TABLE.astype({"group": "category"}),
    "pandas, with a category that no row has": lambda f: TABLE.assign(
        group=pandas.Categorical(TABLE["group"], ["a", "aa", "b", "c"])
    ),
    "pandas, with nulls allowed": lambda f: TABLE.convert_dtypes(),
    "pyarrow": lambda f: pyarrow.Table.from_pandas(TABLE),
    "a dict": lambda f: {name: column.to_numpy() for name, column in TABLE.items()},
    "a dict of lists": lambda f: TABLE.to_dict("list"),
    "Parquet": lambda f: saved("parquet", f),
    "CSV": lambda f: str(saved("csv", f)),
    "Arrow": lambda f: saved("arrow", f),
}


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_tables_give_the_same_design(kind, tmp_path):
    for response, family in (("height", "gaussian"), ("word", "binomial"), ("yes", "binomial")):
        expected = mintmc.glm(f"{response} ~ {RIGHT}", TABLE, family)
        found = mintmc.glm(f"{response} ~ {RIGHT}", KINDS[kind](tmp_path), family)
        assert found.design.terms == expected.design.terms == TERMS
        np.testing.assert_array_equal(found.design.x, expected.design.x)
        np.testing.assert_array_equal(found.design.y, expected.design.y)
        assert found.design.levels == expected.design.levels == (("died", "survived") if response == "word" else None)
    np.testing.assert_array_equal(found.design.y, TABLE["yes"])  # the second of two words is 1


FORMULAS = {
    "0 + C(group)": ("C(group)[a]", "C(group)[b]", "C(group)[c]"),
    "center(year) + np.log(dose)": ("Intercept", "center(year)", "np.log(dose)"),
    "group:dose": ("Intercept", "group[a]:dose", "group[b]:dose", "group[c]:dose"),
    "{year + dose} + Q('dose')": ("Intercept", "year + dose", "Q('dose')"),
    "1": ("Intercept",),
}


@pytest.mark.parametrize("right", FORMULAS)
def test_formulas(right):
    model = mintmc.glm(f"np.log(height) ~ {right}", TABLE)
    assert model.design.terms == FORMULAS[right]
    assert np.isfinite(model.energy(model.init))
    np.testing.assert_allclose(model.design.y, np.log(TABLE["height"]))


def test_a_dot_is_all_other_columns():
    table = TABLE[["height", "year", "group"]].rename(columns={"year": "the year"})
    terms = ("Intercept", "the year", "group[T.b]", "group[T.c]")
    assert mintmc.glm("height ~ .", table).design.terms == terms
    assert mintmc.glm("height ~ `the year` + group", table).design.terms == terms


ROWS = {
    "y": np.array([0, 1, 1, 0, 1, 0.0]),
    "x": np.arange(6.0),
    "other": np.array([1, 5, 2, 8, 3, 9.0]),
    "three": list("abcabc"),
    "one": np.ones(6),
    "time": 1.7e9 + np.arange(6.0),
    "gap": np.array([1, 2, np.nan, np.nan, 3, 4]),
    "odd": np.array([object()] * 6),
    "wide": np.ones((6, 2)),
}


def fit(formula="y ~ x", table=ROWS, **settings):
    return lambda: mintmc.glm(formula, table, **settings)


FORM = "formula must be 'response ~ terms', such as 'y ~ x . C.group.', got "
MISTAKES = {
    "column": (fit("y ~ othr"), r"formula must name columns of table, .*, got 'othr': did you mean 'other'\?"),
    "function": (fit("y ~ foo(x)"), "formula must name columns of table, .*, or functions, got 'foo'"),
    "syntax": (fit("y ~ x +* other"), FORM + r"'y ~ x \+\* other': FormulaSyntaxError: Operator"),
    "brackets": (fit("y ~ (x"), FORM + r"'y ~ \(x': FormulaSyntaxError"),
    "no response": (fit("x + other"), FORM + r"'x \+ other': it has no response"),
    "two responses": (fit("y + x ~ other"), r"with one response, got 'y \+ x ~ other'"),
    "three sides": (fit("y ~ x | other"), FORM + r"'y ~ x \| other': it has more than two sides"),
    "no terms": (fit("y ~ 0"), "with at least one term, got 'y ~ 0'"),
    "no formula": (fit(3), TypeError, FORM + "3"),
    "a function that fails": (
        fit("y ~ C(three, contr.no)"),
        "formula must work for the columns of table, got 'y ~ C.three",
    ),
    "constant": (fit("y ~ x + one"), "no constant column beside the intercept, got 'one', 1 in all rows"),
    "collinear": (
        fit("y ~ x + other + I(2 * x - other)"),
        r"not linear functions of others, got 'I\(2 \* x - other\)', which is one of \['x', 'other'\]",
    ),
    "all indicators": (fit("y ~ 0 + C(three) + one"), r"got 'one', which is one of \['C\(three\)\[a\]'"),
    "too few rows": (fit("y ~ C(x) + other"), "at least as many rows as the design has terms, d=7, got n=6"),
    "missing": (fit("y ~ gap"), r"table\['gap'\] must not have missing values, got nan in row 2 \(2 such values\)"),
    "missing response": (fit("gap ~ x"), r"table\['gap'\] must not have missing values, got nan in row 2"),
    "logarithm of 0": (fit("y ~ log(x)"), r"'log\(x\)' in formula must be finite, got -inf in row 0"),
    "objects": (fit("y ~ odd"), TypeError, r"table\['odd'\] must be a column of numbers or of words, got dtype object"),
    "two columns in one": (fit("y ~ wide"), TypeError, r"table\['wide'\] must be an array of one value a row"),
    "rounding": (
        fit("y ~ time"),
        r"'time' in formula must vary by more than float32 rounds it by \(center\(\) helps\)",
    ),
    "binomial counts": (fit("x ~ other", family="binomial"), "response 'x' must be 0 or 1, .*, got 2 in row 2"),
    "three words": (fit("three ~ x", family="binomial"), r"two categories .*, got 3: \['a', 'b', 'c'\]"),
    "words": (fit("three ~ x"), r"response 'three' must be numbers for family 'gaussian', got \('a', 'b', 'c'\)"),
    "negative": (fit("I(x - 1) ~ other", family="poisson"), "must be counts, .*, got -1 in row 0"),
    "half": (fit("I(x / 2) ~ other", family="poisson"), "must be counts, .*, got 0.5 in row 1"),
    "constant response": (fit("one ~ x"), "response 'one' must vary for family 'gaussian', got 1 in all rows"),
    "a response of many columns": (fit("C(three) ~ x"), "formula must have a response of one column, got"),
    "family": (fit(family="gamma"), "family must be one of 'binomial', 'poisson', .*, got 'gamma'"),
    "link": (fit(family="poisson", link="logit"), "link of family 'poisson' must be one of .*, got 'logit'"),
    "nu": (fit(family="student", nu=0), r"nu must be in \(0, inf\), got 0"),
    "nu of another": (fit(nu=3), "nu must be None for family 'gaussian': it is of 'student', got 3"),
    "sigma of another": (fit(family="poisson", sigma=3), "sigma must be None for family 'poisson', got 3"),
    "prior_scale": (fit(prior_scale=-1.0), r"prior_scale must be in \(0, inf\), got -1"),
    "no rows": (fit(table=pandas.DataFrame({"x": [], "y": []})), "table must have at least one row, got none"),
    "no columns": (fit(table={}), "table must have at least one column, got {}"),
    "lengths": (fit(table={"x": [1, 2, 3], "y": [1, 2]}), "table must have columns of one length, got .*'y': 2"),
    "no table": (fit(table=3), TypeError, "table must be a table of pandas, Polars or pyarrow, .*, got 3"),
    "no such file": (fit(table="no.csv"), FileNotFoundError, "table must be an existing file, got 'no.csv'"),
    "another file": (fit(table="rows.npy"), "table must be .*, got 'rows.npy'"),
    "lazy": (fit(table=polars.LazyFrame({"x": [1]})), TypeError, "table must be a table in memory, got a LazyFrame"),
    "bounds of log": (lambda: fit(family="poisson")().bounds, "bounds must be .*, got link 'log': link='softplus' has"),
    "bounds with sigma": (lambda: fit(family="student")().bounds, "whose sigma is fixed .*, got family 'student'"),
    "draws of flat": (
        lambda: fit(prior_scale=None)().sample_prior(jax.random.key(0)),
        "prior_scale must be a number for draws from the prior, got None",
    ),
}
test_a_mistake_is_refused = each_refused(MISTAKES)
