"""Servers on this machine that play other people's services, for tests that go over the wire."""
