"""SQL conditions, drawn for property tests."""

from hypothesis import strategies as st


def combined(one):
    """Draws conditions, and combinations of them by `and`, `or` and `not`."""
    return st.recursive(
        one,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda drawn: f"({drawn[0]}) {drawn[1]} ({drawn[2]})"),
            inner.map(lambda one: f"not ({one})"),
        ),
        max_leaves=4,
    )
