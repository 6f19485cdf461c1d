-- The console's own tables. Ids and hashes are text, times are milliseconds since 1970 UTC, documents are JSON text.
-- A *_ref is the SHA-256 of something too long or too wild to be indexed itself.

CREATE TABLE IF NOT EXISTS users (
  name VARCHAR(191) NOT NULL PRIMARY KEY,
  role VARCHAR(32) NOT NULL,
  password_hash VARCHAR(255) NOT NULL
);

CREATE TABLE IF NOT EXISTS tokens (
  sha256 VARCHAR(64) NOT NULL PRIMARY KEY,
  name VARCHAR(191) NOT NULL,
  role VARCHAR(32) NOT NULL
);

CREATE TABLE IF NOT EXISTS sessions (
  session_ref VARCHAR(64) NOT NULL PRIMARY KEY,
  data TEXT NOT NULL,
  expires_at BIGINT NOT NULL
);

CREATE INDEX IF NOT EXISTS sessions_by_expiry ON sessions (expires_at);

CREATE TABLE IF NOT EXISTS evidence (
  id VARCHAR(64) NOT NULL PRIMARY KEY,
  record_ref VARCHAR(64) NOT NULL,
  checked_at BIGINT NOT NULL,
  document TEXT NOT NULL
);

CREATE INDEX IF NOT EXISTS evidence_by_record ON evidence (record_ref, checked_at, id);

-- open_ref is the record's ref while the compensation is unfinished, so that a record has one at a time.
CREATE TABLE IF NOT EXISTS compensations (
  id VARCHAR(64) NOT NULL PRIMARY KEY,
  command_ref VARCHAR(64) NOT NULL UNIQUE,
  open_ref VARCHAR(64) UNIQUE,
  record_ref VARCHAR(64) NOT NULL,
  actor VARCHAR(191) NOT NULL,
  reason TEXT NOT NULL,
  phase VARCHAR(32) NOT NULL,
  owner VARCHAR(191) NOT NULL,
  lease_until BIGINT NOT NULL,
  started_at BIGINT NOT NULL,
  finished_at BIGINT,
  ending VARCHAR(32),
  late_check_at BIGINT,
  intent TEXT NOT NULL,
  outcome TEXT
);

CREATE INDEX IF NOT EXISTS compensations_by_record ON compensations (record_ref, started_at, id);
CREATE INDEX IF NOT EXISTS compensations_by_actor ON compensations (actor, started_at);
CREATE INDEX IF NOT EXISTS compensations_by_finish ON compensations (finished_at, lease_until);
CREATE INDEX IF NOT EXISTS compensations_by_late_check ON compensations (late_check_at);

CREATE TABLE IF NOT EXISTS audit_entries (
  seq BIGINT NOT NULL PRIMARY KEY,
  happened_at BIGINT NOT NULL,
  actor VARCHAR(191) NOT NULL,
  action VARCHAR(191) NOT NULL,
  record_ref VARCHAR(64),
  record TEXT,
  record_key TEXT,
  biz_type TEXT,
  biz_no TEXT,
  reason TEXT,
  verdict VARCHAR(32),
  evidence_id VARCHAR(64),
  compensation_id VARCHAR(64),
  before_value TEXT,
  after_value TEXT,
  result TEXT,
  prev_hash VARCHAR(64) NOT NULL,
  hash VARCHAR(64) NOT NULL
);

CREATE INDEX IF NOT EXISTS audit_by_actor ON audit_entries (actor, seq);
CREATE INDEX IF NOT EXISTS audit_by_record ON audit_entries (record_ref, seq);
CREATE INDEX IF NOT EXISTS audit_by_time ON audit_entries (happened_at);

-- One row: where the chain ends. Whoever appends holds it.
CREATE TABLE IF NOT EXISTS audit_head (
  id SMALLINT NOT NULL PRIMARY KEY,
  seq BIGINT NOT NULL,
  hash VARCHAR(64) NOT NULL
);

INSERT INTO audit_head (id, seq, hash) SELECT 1, 0, '' WHERE NOT EXISTS (SELECT 1 FROM audit_head);

CREATE TABLE IF NOT EXISTS rate_reports (
  producer VARCHAR(191) NOT NULL,
  sequence_no BIGINT NOT NULL,
  PRIMARY KEY (producer, sequence_no)
);

CREATE TABLE IF NOT EXISTS rate_counts (
  minute_no BIGINT NOT NULL,
  source VARCHAR(191) NOT NULL,
  biz_type VARCHAR(191) NOT NULL,
  outcome VARCHAR(32) NOT NULL,
  happened BIGINT NOT NULL,
  PRIMARY KEY (minute_no, source, biz_type, outcome)
);

CREATE TABLE IF NOT EXISTS rate_biz_types (
  source VARCHAR(191) NOT NULL,
  biz_type VARCHAR(191) NOT NULL,
  PRIMARY KEY (source, biz_type)
);

CREATE TABLE IF NOT EXISTS stuck_samples (
  minute_no BIGINT NOT NULL,
  source VARCHAR(191) NOT NULL,
  biz_type VARCHAR(191) NOT NULL,
  stuck BIGINT NOT NULL,
  oldest_seconds BIGINT NOT NULL,
  PRIMARY KEY (minute_no, source, biz_type)
);

CREATE TABLE IF NOT EXISTS alert_rules (
  id VARCHAR(64) NOT NULL PRIMARY KEY,
  version BIGINT NOT NULL,
  spec TEXT NOT NULL,
  updated_at BIGINT NOT NULL,
  updated_by VARCHAR(191) NOT NULL
);

-- open_rule is the rule's id while the episode is pending or firing, so that a rule has one at a time.
CREATE TABLE IF NOT EXISTS alerts (
  id VARCHAR(64) NOT NULL PRIMARY KEY,
  open_rule VARCHAR(64) UNIQUE,
  pending_since BIGINT NOT NULL,
  document TEXT NOT NULL,
  acknowledged_by VARCHAR(191),
  acknowledged_at BIGINT,
  silenced_until BIGINT
);

CREATE INDEX IF NOT EXISTS alerts_by_time ON alerts (pending_since, id);
