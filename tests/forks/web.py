"""A web program for `gunicorn --preload`: it enqueues while it is imported, in the master, and in each request, in a worker."""

import os

from holdfast import Holdfast

hf = Holdfast(os.environ["SHOP_URL"])


@hf.task
def count(n: int) -> int:
    return n


FIRST = count.enqueue_sync(0)


def app(environ, start_response):
    n = int(environ["QUERY_STRING"])
    if n % 2:
        with hf.blocking.transaction() as tx:
            count.options(tx=tx).enqueue_sync(n)
    else:
        count.enqueue_sync(n)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{os.getpid()}".encode()]
