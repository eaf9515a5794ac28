-- Events that clean.sql leaves out, each with the reason.
WITH judged AS (
    SELECT CASE
               WHEN event IS NULL THEN 'null key'
               WHEN session NOT IN (SELECT session FROM sessions) THEN 'orphan'
               WHEN position NOT BETWEEN 1 AND 20 OR dwell NOT BETWEEN 0 AND 3600 OR ts >= TIMESTAMP '2026-03-02'
                   THEN 'out of range'
               WHEN ts < TIMESTAMP '2026-01-01' THEN 'late' -- of a year that was closed before it came
           END AS reason, *
    FROM events
), twice AS (
    SELECT event FROM judged WHERE reason IS NULL GROUP BY event HAVING count(*) > 1
), numbered AS (
    SELECT *, row_number() OVER (PARTITION BY event ORDER BY session, product, ts) AS copy
    FROM judged SEMI JOIN twice USING (event)
    WHERE reason IS NULL
), rejected AS (
    SELECT * FROM judged WHERE reason IS NOT NULL
    UNION ALL
    SELECT * EXCLUDE (copy) REPLACE ('duplicate' AS reason) FROM numbered WHERE copy > 1
)
SELECT reason, row_number() OVER (PARTITION BY reason ORDER BY session, product, ts, position, dwell, campaign, query, event) AS n,
       * EXCLUDE (reason)
FROM rejected
