-- What clean.sql leaves out, and why: each loaded event is counted once.
WITH judged AS (
    SELECT CASE
               WHEN event IS NULL THEN 'null key'
               WHEN session NOT IN (SELECT session FROM sessions) THEN 'orphan'
               WHEN position NOT BETWEEN 1 AND 20 OR dwell NOT BETWEEN 0 AND 3600
                    OR ts < TIMESTAMP '2026-01-01' OR ts >= TIMESTAMP '2026-03-02' THEN 'out of range'
               ELSE 'kept'
           END AS reason,
           count(*) AS n
    FROM events
    GROUP BY event, session, product, campaign, ts, position, dwell, query
), counted AS (
    SELECT reason, CASE WHEN reason = 'kept' THEN count(*) ELSE sum(n) END::BIGINT AS events FROM judged GROUP BY reason
    UNION ALL
    SELECT 'duplicate', sum(n - 1)::BIGINT FROM judged WHERE reason = 'kept'
)
SELECT reason, events FROM counted
