"""What every other room stands on: records, types, schemas, durations, places and errors."""
