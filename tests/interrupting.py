"""Runs that stop, as if killed, as they are about to do a step."""


class Interrupted(Exception):
    pass


def interrupt_at(monkeypatch, work_class, step):
    """Make a run stop, as if killed, as it is about to do a step."""
    advance = work_class.advance

    def stop_or_advance(self):
        if self.step == step:
            raise Interrupted
        advance(self)

    monkeypatch.setattr(work_class, "advance", stop_or_advance)
