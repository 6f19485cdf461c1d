-- Changes of the cache beside a source that were not confirmed with their compensation. next_at is empty once they are.
CREATE TABLE IF NOT EXISTS cache_changes (
  compensation_id VARCHAR(64) NOT NULL PRIMARY KEY,
  source VARCHAR(191) NOT NULL,
  record_ref VARCHAR(64) NOT NULL,
  record TEXT NOT NULL,
  since BIGINT NOT NULL,
  attempts BIGINT NOT NULL,
  why TEXT NOT NULL,
  next_at BIGINT,
  confirmed_at BIGINT
);

CREATE INDEX IF NOT EXISTS cache_changes_by_next ON cache_changes (next_at);

CREATE INDEX IF NOT EXISTS cache_changes_by_record ON cache_changes (record_ref, since);

-- Records whose cache entry says something else than the table, until it does not.
CREATE TABLE IF NOT EXISTS cache_disagreements (
  record_ref VARCHAR(64) NOT NULL PRIMARY KEY,
  source VARCHAR(191) NOT NULL,
  seen_at BIGINT NOT NULL,
  document TEXT NOT NULL
);

CREATE INDEX IF NOT EXISTS cache_disagreements_by_source ON cache_disagreements (source, seen_at, record_ref);

-- Where the comparison of a source with its cache goes on, and who is at it.
CREATE TABLE IF NOT EXISTS cache_walks (
  source VARCHAR(191) NOT NULL PRIMARY KEY,
  owner VARCHAR(191) NOT NULL,
  lease_until BIGINT NOT NULL,
  place TEXT
);
