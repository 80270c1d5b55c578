"""A server in its own JVM. Its data and its log are in one folder."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from resources.machines.processes import dying_with_parent, end

_LOG_LINES = 20


class JavaServer:
    """A server that is not started yet.

    On Linux the kernel kills the server when the thread that started it ends, so that thread must run as long.
    """

    def __init__(self, folder: Path, log_name: str) -> None:
        """`folder` is created by the first start. `log_name` is the name of the log file in it."""
        self.folder = folder.resolve()
        self.log = self.folder / log_name
        """The file with the output of the server since its first start."""
        self._jvm: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._jvm is not None
        return self._jvm.pid

    @property
    def runs(self) -> bool:
        """Whether the server was started and has not ended."""
        return self._jvm is not None and self._jvm.poll() is None

    def start(self, command: Sequence[str]) -> None:
        """Start the server with this command line; its output is appended to the log."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._jvm = subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,  # Ctrl-C reaches only the tests, which then stop the server
                preexec_fn=dying_with_parent(),  # noqa: PLW1509 - two system calls, looked up before the fork
            )

    def stop(self) -> None:
        """Stop the server, and kill it if it does not end. A second call does nothing."""
        if self._jvm is not None:
            end(self._jvm)
            self._jvm = None

    def kill(self) -> None:
        """Kill the server. It can be started again."""
        if self._jvm is not None:
            self._jvm.kill()
            self._jvm.wait()
            self._jvm = None

    def log_end(self) -> str:
        """The last lines of the log, without the frames of Java's stack traces, for an error."""
        lines = self.log.read_text(errors="replace").splitlines()
        log_lines = [line for line in lines if line and not line.startswith("\tat ")]
        return "\n".join([f"The end of {self.log}:", *log_lines[-_LOG_LINES:]])
