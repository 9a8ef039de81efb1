"""Whether to go there: acceptance tests."""
