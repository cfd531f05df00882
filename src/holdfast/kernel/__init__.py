"""What every layer shares and nothing of ours lies below: time, chance, ids, threads, errors, outcomes, codec."""
