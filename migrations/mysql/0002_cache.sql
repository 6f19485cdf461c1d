-- Changes of the cache beside a source that were not confirmed with their compensation. next_at is empty once they are.
CREATE TABLE IF NOT EXISTS cache_changes (
  compensation_id VARCHAR(64) NOT NULL PRIMARY KEY,
  source VARCHAR(191) NOT NULL,
  record_ref VARCHAR(64) NOT NULL,
  record LONGTEXT NOT NULL,
  since BIGINT NOT NULL,
  attempts BIGINT NOT NULL,
  why LONGTEXT NOT NULL,
  next_at BIGINT,
  confirmed_at BIGINT,
  KEY cache_changes_by_next (next_at),
  KEY cache_changes_by_record (record_ref, since)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Records whose cache entry says something else than the table, until it does not.
CREATE TABLE IF NOT EXISTS cache_disagreements (
  record_ref VARCHAR(64) NOT NULL PRIMARY KEY,
  source VARCHAR(191) NOT NULL,
  seen_at BIGINT NOT NULL,
  document LONGTEXT NOT NULL,
  KEY cache_disagreements_by_source (source, seen_at, record_ref)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Where the comparison of a source with its cache goes on, and who is at it.
CREATE TABLE IF NOT EXISTS cache_walks (
  source VARCHAR(191) NOT NULL PRIMARY KEY,
  owner VARCHAR(191) NOT NULL,
  lease_until BIGINT NOT NULL,
  place LONGTEXT
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
