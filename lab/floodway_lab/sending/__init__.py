"""What data engines do for benchmarks, beyond what they do for the demonstration."""
