"""What a program uses to read and write a cluster."""
