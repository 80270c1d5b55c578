"""The demo: real servers, a real data set, two runs, and the proof, all in `.demo/`."""
