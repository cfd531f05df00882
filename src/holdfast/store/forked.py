"""What a child of a process is told of the store that its parent has opened."""

FORKED = (
    "The store was opened before this process was forked, and its connections belong to the parent. Open it here: "
    "enter `async with hf` in the child. Sync code (`enqueue_sync`, `hf.blocking`) does so by itself."
)
