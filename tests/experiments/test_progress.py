import io

from tensormachines.experiments.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_what_is_left_is_guessed_by_how_good_the_guesses_were():
    clock = Clock()
    progress = Progress({"a": 10.0, "b": 20.0, "c": 5.0}, io.StringIO(), clock=clock)
    assert progress.seconds_left() == 35
    progress.start("a")
    clock.now = 30.0  # three times as long as guessed
    progress.finish()
    assert progress.seconds_left() == 3 * 25


def test_parts_that_were_done_before_say_nothing_about_the_guesses():
    progress = Progress({"a": 100.0, "b": 20.0}, io.StringIO(), clock=Clock())
    progress.start("a")
    progress.finish()
    assert progress.seconds_left() == 20


def test_a_part_may_come_twice():
    """As it does where a set and its relative are requested, and the relative replaces the set."""
    progress = Progress({"a": 10.0}, io.StringIO(), clock=Clock())
    for _ in range(2):
        progress.start("a")
        progress.finish()
    assert progress.seconds_left() == 0


def test_lines_in_a_file_and_one_line_on_a_terminal():
    for stream in (io.StringIO(), Terminal()):
        progress = Progress({"a": 10.0}, stream, clock=Clock())
        progress.start("a")
        progress.fitting("adult: KRR")
        progress.fitted("error 0.15")
        progress.tick()
        progress.finish()
        progress.end()
        text = stream.getvalue()
        assert "[0/1] adult: KRR" in text
        assert text.endswith("1 fit in 0 s.\n")
        assert ("\r" in text) == stream.isatty()
        assert ("error 0.15" in text) != stream.isatty()


def test_bytes_of_a_download():
    stream = Terminal()
    show = Progress({}, stream).downloading("year")
    show(5 << 20, 200 << 20)
    show(6 << 20, None)
    assert "year: downloading, 5 MB of 200" in stream.getvalue()
    assert "year: downloading, 6 MB |" in stream.getvalue()


def test_no_line_is_wider_than_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    progress = Progress({"a": 10.0}, stream := Terminal(), clock=Clock())
    progress.start("a")
    progress.fitting("a method with a name of many words, " * 5)
    shown = stream.getvalue().split("\r\x1b[K")[-1]
    assert shown.startswith("[0/1] a method")
    assert len(shown) == 79
