"""Job queues on Postgres that are measured side by side; `benchmarks/queue.py` runs them."""
