"""What the broker answers, one file per API: `(received, node) -> answer`, None where nothing goes back."""
