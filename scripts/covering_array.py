"""Rows of option values that cover much with few runs; for the scripts that run the program over many options."""
import itertools


def pairs_of(row):
    return set(itertools.combinations(enumerate(row), 2))


def pairwise(factors, rng):
    """Rows with every value of every factor beside every value of every other. Greedy: each row is the best of several
    that start from a pair that is still missing."""
    values = list(factors.values())
    missing = {((i, a), (j, b)) for i, j in itertools.combinations(range(len(values)), 2)
               for a in values[i] for b in values[j]}
    rows = []
    while missing:
        best, best_new = None, -1
        for (i, a), (j, b) in rng.sample(sorted(missing), min(8, len(missing))):
            row = [None] * len(values)
            row[i], row[j] = a, b
            for k in rng.sample(range(len(values)), len(values)):
                if row[k] is None:
                    def gain(value, k=k):
                        return sum(tuple(sorted(((k, value), (m, row[m])))) in missing
                                   for m in range(len(values)) if row[m] is not None)
                    row[k] = max(rng.sample(values[k], len(values[k])), key=gain)
            new = len(pairs_of(row) & missing)
            if new > best_new:
                best, best_new = row, new
        rows.append(best)
        missing -= pairs_of(best)
    return rows


def once(factors):
    """As few rows as have every value of every factor."""
    longest = max(len(values) for values in factors.values())
    return [[values[i % len(values)] for values in factors.values()] for i in range(longest)]


def product(factors):
    return [list(row) for row in itertools.product(*factors.values())]
