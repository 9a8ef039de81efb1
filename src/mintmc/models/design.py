"""The design of a regression: a response and one column for each term, from a formula and a table.

The matrix is made in float64 and kept in JAX's precision. Before anything is sampled, what would make coefficients
arbitrary is refused: a column that is constant beside an intercept, columns that are linear functions of others, and
columns that vary less than float32 can tell beside their mean (``center(x)`` in the formula helps).
"""

from __future__ import annotations

import ast
import builtins
import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from mintmc import check
from mintmc.models.read import Table

INTERCEPT = "Intercept"
_BLOCK = 2**15
"""Rows that are looked at together."""
_DEPENDENT = 1e-9
"""What part of its variance a column must have for itself."""
_ROUNDED = 1e-3
"""How much of its standard deviation rounding may take from a column."""


@dataclass(frozen=True, eq=False)
class Design:
    """Rows of a regression.

    Attributes
    ----------
    terms
        Names of the columns of ``x``.
    x
        The matrix, shape (n, d).
    means, deviations
        Of the columns, in float64.
    response
        As it stands in the formula.
    y
        Its values, numbers or codes.
    levels
        What codes of the response stand for; None if it is numbers.
    """

    formula: str
    terms: tuple[str, ...]
    x: np.ndarray
    means: np.ndarray
    deviations: np.ndarray
    response: str
    y: np.ndarray
    levels: tuple[Any, ...] | None

    @classmethod
    def of(cls, formula: Any, table: Any) -> Design:
        """From what a user wrote; ``formula`` and ``table`` are the names of the arguments."""
        known = Table.of(table)
        if not known.names:
            raise ValueError(f"table must have at least one column, got {check.shown(table)}")
        parsed = _parsed(formula, known.names)
        frame = known.frame(_columns(parsed, known.names, formula))
        y, levels = _response(parsed.lhs, frame, formula)
        matrix, terms = _matrix(parsed.rhs, frame, formula)
        if len(matrix) < len(terms):
            wanted = f"at least as many rows as the design has terms, d={len(terms)}"
            raise ValueError(f"table must have {wanted}, got n={len(matrix)}")
        means, deviations, products = _moments(matrix, terms)
        _check_independent(terms, means, deviations, products)
        x = matrix.astype(jax.dtypes.canonicalize_dtype(np.float64), order="C")
        _check_rounding(terms, matrix, x, deviations)
        (response,) = (str(term) for term in parsed.lhs)
        _check_rounding([response], y[:, None], y[:, None].astype(x.dtype), np.array([y.std()]))
        return cls(formula, terms, x, means, deviations, response, y, levels)

    @property
    def intercept(self) -> int | None:
        """The number of the column of ones; None if there is none."""
        return self.terms.index(INTERCEPT) if INTERCEPT in self.terms else None


def _formulaic() -> Any:
    try:
        import formulaic
    except ImportError:
        raise ImportError("glm needs formulaic and pandas: pip install 'mintmc[glm]'") from None
    return formulaic


def _parsed(formula: Any, names: list[str]) -> Any:
    """The two sides of a formula."""
    formulaic, wanted = _formulaic(), "'response ~ terms', such as 'y ~ x + C(group)'"
    if not isinstance(formula, str):
        raise TypeError(f"formula must be {wanted}, got {check.shown(formula)}")
    try:
        # What . stands for.
        parsed = formulaic.Formula(formula, _context={"__formulaic_variables_available__": names})
        sides = parsed.lhs, parsed.rhs
    except AttributeError:
        raise ValueError(f"formula must be {wanted}, got {check.shown(formula)}: it has no response") from None
    except Exception as error:  # of formulaic's own many kinds
        raise ValueError(f"formula must be {wanted}, got {check.shown(formula)}: {check.first_line(error)}") from None
    if not all(isinstance(side, formulaic.SimpleFormula) for side in sides):
        raise ValueError(f"formula must be {wanted}, got {check.shown(formula)}: it has more than two sides")
    if len(sides[0]) != 1 or len(sides[1]) == 0:
        part = "response" if len(sides[0]) != 1 else "term"
        count = "one" if part == "response" else "at least one"
        raise ValueError(f"formula must be {wanted}, with {count} {part}, got {check.shown(formula)}")
    return parsed


def _columns(parsed: Any, names: Sequence[str], formula: str) -> list[str]:
    """The columns that a formula needs, in the order of the table; refuses names that are not there."""
    from formulaic.transforms import TRANSFORMS

    asked = {name for side in (parsed.lhs, parsed.rhs) for term in side for name in _names(term, names)}
    for name in sorted(asked - set(names) - set(TRANSFORMS) - set(dir(builtins))):
        near = "".join(f": did you mean {one!r}?" for one in difflib.get_close_matches(name, names, 1, 0.0))
        raise ValueError(
            f"formula must name columns of table, {check.shown(list(names))}, or functions, got {name!r}{near}"
        )
    return [name for name in names if name in asked]


def _names(term: Any, names: Sequence[str]) -> Iterator[str]:
    """What a term names: columns (also in quotes, or as a string) and functions."""
    for factor in term.factors:
        if factor.eval_method.value == "lookup":
            yield factor.expr
        elif factor.eval_method.value == "python":
            quoted = re.findall(r"`([^`]*)`", factor.expr)
            yield from quoted
            tree = ast.parse(re.sub(r"`[^`]*`", "quoted", factor.expr), mode="eval")
            found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            yield from found - ({"quoted"} if quoted else set())
            strings = {str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)}
            yield from strings & set(names)


def _computed(side: Any, frame: Any, formula: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """One side of a formula, and the names of its columns."""
    try:
        with np.errstate(all="ignore"):  # what is not finite is refused, by row
            matrix = side.get_model_matrix(frame, output="numpy", na_action="ignore", context={})
    except Exception as error:  # of a function in the formula, or of formulaic
        reason = check.first_line(error)
        raise ValueError(f"formula must work for the columns of table, got {check.shown(formula)}: {reason}") from None
    names = tuple(matrix.model_spec.column_names)
    values = np.asarray(matrix)
    if values.dtype.kind not in "biuf":
        raise TypeError(f"formula must give real numbers, got dtype {values.dtype} for {check.shown(formula)}")
    for first in range(0, len(values), _BLOCK):
        good = np.isfinite(values[first : first + _BLOCK])
        if not good.all():
            row, column = np.argwhere(~good)[0]
            got = f"{values[first + row, column]} in row {first + row}"
            raise ValueError(f"{names[column]!r} in formula must be finite, got {got}")
    return values, names


def _matrix(side: Any, frame: Any, formula: str) -> tuple[np.ndarray, tuple[str, ...]]:
    matrix, terms = _computed(side, frame, formula)
    return matrix.astype(np.float64, copy=False), terms


def _response(side: Any, frame: Any, formula: str) -> tuple[np.ndarray, tuple[Any, ...] | None]:
    """The values of the response, or codes and what they stand for."""
    (term,) = side
    column = frame.get(str(term).strip("`"))
    if column is not None:
        if column.dtype == "category":
            return column.cat.codes.to_numpy(np.float64), tuple(column.cat.categories.tolist())
        return column.to_numpy(np.float64), None
    values, names = _computed(side, frame, formula)
    if len(names) != 1:
        raise ValueError(f"formula must have a response of one column, got {check.shown(list(names))}")
    return values[:, 0].astype(np.float64), None


def _moments(matrix: np.ndarray, terms: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means and standard deviations of columns, and their products with one another once each has length 1.

    Beside an intercept, they are centred.
    """
    means = matrix.mean(axis=0)
    # A column that is the same in all rows must come out as such, whatever rounding makes of its mean.
    constant = matrix.max(axis=0) == matrix.min(axis=0)
    means = np.where(constant, matrix[0], means)
    blocks = [matrix[first : first + _BLOCK] for first in range(0, len(matrix), _BLOCK)]
    squares = sum(((block - means) ** 2).sum(axis=0) for block in blocks)
    deviations = np.sqrt(squares / max(len(matrix) - 1, 1))
    centre = np.where(np.array(terms) == INTERCEPT, 0.0, means) if INTERCEPT in terms else np.zeros_like(means)
    products = sum((block - centre).T @ (block - centre) for block in blocks)
    lengths = np.sqrt(np.diagonal(products))
    return means, deviations, products / np.outer(*[np.where(lengths > 0, lengths, 1.0)] * 2)


def _check_independent(terms: tuple[str, ...], means: np.ndarray, deviations: np.ndarray, products: np.ndarray) -> None:
    """Refuse columns whose coefficients the data cannot tell apart."""
    for term, mean, deviation in zip(terms, means, deviations, strict=True):
        if deviation == 0 and term != INTERCEPT and (INTERCEPT in terms or mean == 0):
            beside = " beside the intercept" if mean else ""
            raise ValueError(f"formula must give no constant column{beside}, got {term!r}, {mean:g} in all rows")
    if np.linalg.eigvalsh(products)[0] > _DEPENDENT:
        return
    for i in range(1, len(terms)):
        others = np.linalg.lstsq(products[:i, :i], products[:i, i], rcond=_DEPENDENT)[0]
        if products[i, i] - products[:i, i] @ others < 10 * _DEPENDENT:
            used = [terms[j] for j in range(i) if abs(others[j]) > 1e-4]
            raise ValueError(
                f"formula must give columns that are not linear functions of others, got {terms[i]!r}, which is one of "
                f"{check.shown(used)}"
            )


def _check_rounding(terms: Sequence[str], matrix: np.ndarray, kept: np.ndarray, deviations: np.ndarray) -> None:
    worst = np.zeros(len(terms))
    for first in range(0, len(matrix), _BLOCK):
        block = slice(first, first + _BLOCK)
        worst = np.maximum(worst, np.abs(matrix[block] - kept[block]).max(axis=0))
    for i in map(int, np.flatnonzero((worst > _ROUNDED * deviations) & (deviations > 0))):
        raise ValueError(
            f"{terms[i]!r} in formula must vary by more than {kept.dtype} rounds it by (center() helps), got a "
            f"standard deviation of {deviations[i]:g} and rounding of {worst[i]:g}"
        )
