"""What was predicted + what came → numbers: progressive validation, metrics, report."""
