"""Record bytes to Arrow columns and back."""
