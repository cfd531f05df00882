"""The stores' own verbs, as shipped, beside the raw limit of the same run."""
