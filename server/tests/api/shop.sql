CREATE TABLE idempotent_record (
  idempotent_id TEXT NOT NULL PRIMARY KEY, biz_type TEXT NOT NULL, biz_no TEXT, status TEXT NOT NULL,
  request_body TEXT, response_body TEXT, create_time TEXT NOT NULL, update_time TEXT NOT NULL
);
CREATE TABLE t_order (order_no TEXT PRIMARY KEY, status TEXT NOT NULL, amount TEXT NOT NULL, phone TEXT);
INSERT INTO t_order VALUES ('F1', 'PAID', '128.00', '13800138000'), ('M1', 'PAID', '99.00', '13900139000');
INSERT INTO idempotent_record
  SELECT key, 'ORDER', no, 'PROCESSING', '{"orderNo":"' || no || '","amount":128.00,"phone":"13800138000"}', NULL,
         strftime('%Y-%m-%d %H:%M:%f', 'now', age), strftime('%Y-%m-%d %H:%M:%f', 'now', age)
  FROM (SELECT 'found' AS key, 'F1' AS no, '-60 minutes' AS age
        UNION ALL SELECT 'absent', 'A1', '-50 minutes'
        UNION ALL SELECT 'mismatch', 'M1', '-40 minutes'
        UNION ALL SELECT 'young', 'Y1', '-1 minutes');
INSERT INTO idempotent_record VALUES ('done', 'ORDER', 'D1', 'SUCCESS', '{"card_no":"6222021234567894"}', '{"code":0}',
  strftime('%Y-%m-%d %H:%M:%f', 'now', '-2 days'), strftime('%Y-%m-%d %H:%M:%f', 'now', '-2 days'));
INSERT INTO idempotent_record VALUES ('<script>alert("1")</script>''; DROP TABLE t_order --', 'ORDER', '中文 🦀', 'FAILED', 'not json', '',
  strftime('%Y-%m-%d %H:%M:%f', 'now', '-3 days'), strftime('%Y-%m-%d %H:%M:%f', 'now', '-3 days'));
