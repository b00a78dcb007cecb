"""What goes wrong for a client, each with a code for programs and a text for people."""


class HapticdError(RuntimeError):
    """What the daemon refused or could not do: ``code`` for programs (``docs/protocol.md``), ``text`` for people."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{text} [{code}]")
        self.code = code
        self.text = text


class NoDaemonError(HapticdError):
    """No daemon of that name runs here, or none answers at that address. Code ``no_daemon``."""

    def __init__(self, text: str) -> None:
        super().__init__("no_daemon", text)


class NoReplyError(HapticdError):
    """The daemon did not answer in time. Code ``no_reply``."""

    def __init__(self, text: str) -> None:
        super().__init__("no_reply", text)
