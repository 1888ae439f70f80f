"""The helper functions that generated code calls where no inlined operation will do."""
