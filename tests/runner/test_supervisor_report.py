"""Reports: whole lines, whatever happens to the disk, the writer or the reader."""

import resource
from contextlib import closing

import pytest

from lessor.clock import ManualClock
from lessor.runner.report import EventKind as Kind
from lessor.runner.report import ReportReader, ReportWriter, read_report


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "report")


@pytest.fixture
def writer(path):
    with closing(ReportWriter(path, ManualClock(wall_ms=5))) as opened:
        yield opened


def test_events_come_back_as_they_were_written(path, writer):
    writer.append(Kind.STARTED, pid=7)
    writer.append(Kind.LIMIT, kind="quiet", limit_ms=1)
    started, limit = read_report(path)
    assert (started.kind, started.at_ms, started.facts) == (Kind.STARTED, 5, {"pid": 7})
    assert limit.facts == {"kind": "quiet", "limit_ms": 1}


def test_a_reader_gives_each_event_once_and_never_half_a_line(tmp_path, writer):
    writer.append(Kind.LOST, reason="é")
    whole = (tmp_path / "report").read_bytes()
    reader = ReportReader(str(tmp_path / "growing"))
    seen = []
    for end in range(len(whole) + 1):
        (tmp_path / "growing").write_bytes(whole[:end])
        seen.append([event.facts for event in reader.read_new()])
    assert seen == [[]] * len(whole) + [[{"reason": "é"}]]


def test_there_is_nothing_to_read_where_there_is_no_report(tmp_path):
    assert read_report(str(tmp_path / "none")) == []


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b'"gone"',
        b'{"event": "gone"}',
        b'{"at_ms": 1}',
        b'{"event": "promised", "at_ms": 1}',
        b'{"event": "gone", "at_ms": "x"}',
        b"\xff\x00",
    ],
)
def test_a_line_that_says_nothing_is_passed_over(path, tmp_path, writer, line):
    (tmp_path / "report").write_bytes(line + b"\n")
    writer.append(Kind.CANCELLED)
    assert [event.kind for event in read_report(path)] == [Kind.CANCELLED]


def test_a_full_disk_loses_no_event_and_breaks_no_line(path, tmp_path, writer):
    writer.append(Kind.STARTED, pid=7)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "report").stat().st_size + 10, hard))
    try:
        writer.append(Kind.LOST, reason="the first ten bytes fit")
        writer.append(Kind.CANCELLED)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [event.kind for event in read_report(path)] == [Kind.STARTED]
    writer.append(Kind.GONE, proof="p")
    kinds = [event.kind for event in read_report(path)]
    assert kinds == [Kind.STARTED, Kind.LOST, Kind.CANCELLED, Kind.GONE]
