-- Version 2: qualifications, one a run; such a run has no records.
CREATE TABLE qualifications (
    run TEXT PRIMARY KEY NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    link TEXT NOT NULL,               -- of the dut, as the next three
    driver TEXT,
    kernel TEXT NOT NULL,
    machine TEXT NOT NULL,
    cases INTEGER NOT NULL,
    qualification TEXT NOT NULL       -- JSON, whole
) STRICT;
