"""A substitute for the paper's private data: pairs of items of a search, and which item was clicked first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ITEM_COLUMNS = 239
COLUMNS = 2 * ITEM_COLUMNS
SEARCH_COLUMNS = 39  # columns of an item that describe the search
TRAITS, WISHES = 30, 4
PLEASING, WISHED, TOGETHER = 1.2, 0.6, 1.2  # weights of the three parts of an item's worth
SATURATION = 3.0
COLUMN_NOISE, CLICK_NOISE = 0.4, 0.55
BLOCK = 1000  # rows drawn together, so that the first rows do not depend on the number of rows
WORLD, TRAIN, TEST = range(3)  # streams of random numbers


def ebay_like(
    rows: int = 500_000, test_rows: int = 100_000, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return pairs of items and which of them was clicked first, in the shape of the paper's eBay data.

    The model, with all directions drawn at random once per ``seed``:

    - A search has 4 hidden *wishes* h, an item 30 hidden *traits* t: normal numbers, the traits with standard
      deviations 1, 1/sqrt(2), 1/sqrt(3) and so on.
    - An item is worth ``u = 3 tanh(v / 3)``, where
      ``v = 1.2 <a, t> + sum over k of g_k h_k (0.6 <b_k, t> + 1.2 <c_k, t> <d_k, t>)``: some of its traits
      please everybody, others only those who wish for them, and some only in combination with another trait.
      Later wishes count less: g is proportional to 1, 0.8, 0.64, 0.512, with norm 1.
    - The label is +1 if the first item was clicked first: ``u_1 - u_2 + noise > 0``, with logistic noise.
    - A row shows the two items, 239 columns each, one item after the other: 200 are mixtures of its traits
      and 39 are mixtures of the wishes of the search. All have independent noise and a mean between 0 and
      0.5, because real columns are not centred; a third are exponentials, like prices and counts.

    So the best boundary is close to a polynomial of degree 3, of a wish and two traits, but not equal to one
    because of tanh, exponentials and noise. A Tensor Machine of rank 5 cannot represent it: two items with 4
    products each make 8 terms of degree 3, in addition to the 4 terms of degree 2. A linear model sees only
    the first part. An oracle that knows the hidden numbers has an error of 0.14.

    The constants were chosen by a few fits, so that the errors of Tensor Machines of rank 5 and of 800 random
    features are close to those printed in the paper for the private data. So the set is no evidence for these
    two figures. The change of errors and times with the number of rows was not a goal, but was examined for
    two numbers of rows, and is weak evidence.

    Parameters
    ----------
    rows, test_rows : int
        The first rows do not depend on these numbers.
    seed : int
        Seed of the model and of the rows.

    Returns
    -------
    X_train, y_train, X_test, y_test : arrays
        X in float32 with 478 columns, y -1 or +1.
    """
    world = _World.draw(np.random.default_rng([seed, WORLD]))
    return *_pairs(world, rows, [seed, TRAIN]), *_pairs(world, test_rows, [seed, TEST])


@dataclass(frozen=True)
class _World:
    """The parameters that all searches share.

    Directions of traits are of shape (TRAITS, number), scaled so that their linear forms have variance 1.
    """

    deviations: np.ndarray
    pleasing: np.ndarray
    wished: np.ndarray
    together: tuple[np.ndarray, np.ndarray]
    importance: np.ndarray  # importance of the wishes
    trait_mixture: np.ndarray  # (TRAITS, columns)
    wish_mixture: np.ndarray  # (WISHES, columns)
    means: np.ndarray
    exponential: np.ndarray  # columns

    @staticmethod
    def draw(rng: np.random.Generator) -> _World:
        deviations = (1 + np.arange(TRAITS)) ** -0.5

        def directions(number: int) -> np.ndarray:
            drawn = rng.standard_normal((TRAITS, number))
            return drawn / np.linalg.norm(drawn * deviations[:, None], axis=0)

        importance = 0.8 ** np.arange(WISHES)
        return _World(
            deviations=deviations,
            pleasing=directions(1),
            wished=directions(WISHES),
            together=(directions(WISHES), directions(WISHES)),
            importance=importance / np.linalg.norm(importance),
            trait_mixture=rng.standard_normal((TRAITS, ITEM_COLUMNS - SEARCH_COLUMNS))
            / np.linalg.norm(deviations),
            wish_mixture=rng.standard_normal((WISHES, SEARCH_COLUMNS)) / np.sqrt(WISHES),
            means=rng.uniform(0, 0.5, ITEM_COLUMNS),
            exponential=rng.permutation(ITEM_COLUMNS)[: ITEM_COLUMNS // 3],
        )

    def worth(self, traits: np.ndarray, wishes: np.ndarray) -> np.ndarray:
        first, second = self.together
        wished = WISHED * (traits @ self.wished) + TOGETHER * (traits @ first) * (traits @ second)
        value = PLEASING * (traits @ self.pleasing)[:, 0] + (wishes * self.importance * wished).sum(axis=1)
        return SATURATION * np.tanh(value / SATURATION)

    def columns(self, traits: np.ndarray, wishes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        seen = np.hstack([traits @ self.trait_mixture, wishes @ self.wish_mixture]).astype(np.float32)
        seen += COLUMN_NOISE * rng.standard_normal(seen.shape, dtype=np.float32)
        seen[:, self.exponential] = np.exp(0.3 * seen[:, self.exponential])
        return seen + self.means

    def block(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        wishes = rng.standard_normal((BLOCK, WISHES))
        items = [self.deviations * rng.standard_normal((BLOCK, TRAITS)) for _ in range(2)]
        advantage = self.worth(items[0], wishes) - self.worth(items[1], wishes)
        advantage = advantage + CLICK_NOISE * rng.logistic(size=BLOCK)
        X = np.hstack([self.columns(traits, wishes, rng) for traits in items])
        return X, np.where(advantage > 0, 1, -1)


def _pairs(world: _World, rows: int, stream: list[int]) -> tuple[np.ndarray, np.ndarray]:
    X, y = np.empty((rows, COLUMNS), dtype=np.float32), np.empty(rows, dtype=np.int64)
    for number, start in enumerate(range(0, rows, BLOCK)):
        block, labels = world.block(np.random.default_rng([*stream, number]))
        X[start : start + BLOCK], y[start : start + BLOCK] = block[: rows - start], labels[: rows - start]
    return X, y
