-- Events that can be used. Events are delivered at least once: copies are equal in all columns.
SELECT DISTINCT event, session, product, campaign, ts, position,
       CAST(round(dwell * 1000) AS BIGINT) AS dwell_ms, -- whole numbers add up to the same in any order
       coalesce(query, '') AS query
FROM events
WHERE event IS NOT NULL
  AND session IN (SELECT session FROM sessions)
  AND position BETWEEN 1 AND 20
  AND dwell BETWEEN 0 AND 3600
  AND ts >= TIMESTAMP '2026-01-01' AND ts < TIMESTAMP '2026-03-02'
