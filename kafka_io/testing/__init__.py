"""The embedded broker: a real log on disk, served in the 0.7 dialect; from 0.8 on in `modern`."""
