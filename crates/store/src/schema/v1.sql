-- Version 1. Times: `_at` is RFC 3339 text as it was given, `_ns` nanoseconds since 1970 UTC for order and filters.
-- Unsigned 64-bit numbers are text, for SQLite's integers are signed.
CREATE TABLE runs (
    id TEXT PRIMARY KEY NOT NULL,
    started_at TEXT NOT NULL,
    started_ns INTEGER NOT NULL,
    command TEXT NOT NULL,            -- JSON array of words
    linerate_version TEXT NOT NULL,
    plan TEXT,                        -- JSON, for --resume
    seed TEXT NOT NULL,
    ended_at TEXT,
    outcome TEXT                      -- NULL: under way, or killed
) STRICT;
CREATE INDEX runs_by_time ON runs (started_ns);

CREATE TABLE tags (
    run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    PRIMARY KEY (run, name)
) STRICT;
CREATE INDEX tags_by_name ON tags (name);

-- The columns of the filters speak of the dut. `record` is last and largest: reading the others leaves it on disk.
CREATE TABLE records (
    run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    sequence INTEGER NOT NULL,
    started_ns INTEGER NOT NULL,
    workload TEXT NOT NULL,
    link TEXT,
    driver TEXT,
    kernel TEXT NOT NULL,
    machine TEXT NOT NULL,
    trial TEXT NOT NULL,              -- JSON, the record's own `trial`
    summary TEXT NOT NULL,            -- JSON, the record's own `summary`
    record TEXT NOT NULL,             -- JSON, whole
    PRIMARY KEY (run, sequence)
) STRICT;
CREATE INDEX records_by_time ON records (started_ns);
CREATE INDEX records_by_workload ON records (workload, started_ns);
CREATE INDEX records_by_link ON records (link, started_ns);
CREATE INDEX records_by_driver ON records (driver, started_ns);
CREATE INDEX records_by_kernel ON records (kernel, started_ns);
CREATE INDEX records_by_machine ON records (machine, started_ns);
