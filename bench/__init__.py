"""How fast it is. `python -m bench` measures Holdfast beside its peers; `bench.schema` and `bench.verbs` look deeper."""
