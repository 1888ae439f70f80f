"""What every other layer is built on: records, types, schemas, durations, places and errors."""
