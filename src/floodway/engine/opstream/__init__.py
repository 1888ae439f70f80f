"""The operation stream: what a stage has collected is processed in micro-batches on Spark."""
