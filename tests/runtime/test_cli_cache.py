"""`holdfast cache` on both stores: what is kept, and forgetting it."""

from holdfast.store.cache_records import Load


async def kept(store):
    for key, fresh, tags in (("gallery:7", 60, ["user:7"]), ("gallery:8", 0, ["user:8", "all"])):
        load = await store.cache.begin(key, tags=tags, lease=5)
        assert isinstance(load, Load)
        assert await store.cache.put(load, "[1]", fresh=fresh, stale=7200)
    await store.cache.begin("new", tags=[], lease=60)


def keys(shop):
    return [value["key"] for value in shop.json("cache")["values"]]


def test_values_are_listed(shop, on_store):
    assert shop("cache") == 0
    assert shop.out == "No value is kept in the store.\n"
    on_store(kept)
    assert shop("cache") == 0
    for words in (
        ["gallery:7", "fresh for"],
        ["gallery:8", "stale, served for", "user:8, all"],
        ["new", "is being loaded"],
    ):
        assert any(all(word in line for word in words) for line in shop.out.splitlines()), shop.out
    [first, *_] = shop.json("cache", "list")["values"]
    assert (first["key"], first["size"], first["tags"], first["is_loading"]) == (
        "gallery:7",
        3,
        ["user:7"],
        False,
    )
    assert len(shop.json("cache", "--limit", "1")["values"]) == 1


def test_values_are_forgotten(shop, on_store):
    on_store(kept)
    assert shop("cache", "invalidate", "gallery:7") == 0
    assert shop.out.startswith("Forgotten.")
    assert keys(shop) == ["gallery:8", "new"]
    assert shop.json("cache", "invalidate", "--tag", "all", "--tag", "none") == {
        "keys": [],
        "tags": ["all", "none"],
        "done": True,
    }
    assert keys(shop) == ["new"]


def test_nothing_to_forget_is_wrong_use(shop):
    assert shop("cache", "invalidate") == 2
    assert "Say what to forget" in shop.err
