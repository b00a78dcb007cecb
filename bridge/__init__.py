"""The outside: wire, servo process, ring, client library, log and replay, import, viewers, command line."""
